"""Whether an app can be run is found out before anything is started or ended for it."""

from pathlib import Path

import pytest

from asyncjob_dev.errors import HandlersNotLoadedError
from asyncjob_dev.server.app_check import job_types

APP = """
from asyncjob import JobContext, WorkerApp

print("imported")
app = WorkerApp()


@app.handler("wave")
async def wave(job: JobContext) -> None: ...


@app.handler("greet")
async def greet(job: JobContext) -> None: ...
"""


def test_the_job_types_are_known(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(APP)
    assert job_types("hello:app", tmp_path) == ["greet", "wave"]
    assert job_types("hello", tmp_path) == ["greet", "wave"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "app = WorkerApp(",
            r"'hello:app' cannot be run: cannot import hello: SyntaxError: .*hello\.py:1",
        ),
        ("1 / 0", r"ZeroDivisionError: division by zero \(.*hello\.py:1\)"),
        ("app = 1", "hello:app is a int, not a WorkerApp"),
        ("import os; os._exit(3)", "its import ended the process"),
    ],
)
def test_what_keeps_it_from_being_run_is_said(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "hello.py").write_text(text)
    with pytest.raises(HandlersNotLoadedError, match=why):
        job_types("hello:app", tmp_path)


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HandlersNotLoadedError, match="no module named 'shop'"):
        job_types("shop:app", tmp_path)
