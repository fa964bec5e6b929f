"""Starting a worker: how many slots, which app, and one clear line for each mistake."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from asyncjob.errors import ConfigError
from asyncjob_worker.cli import main
from asyncjob_worker.cpus import usable_cpus
from asyncjob_worker.loading import load_app
from asyncjob_worker.settings import Settings, identify

APP = """
from asyncjob import JobContext, WorkerApp
app = WorkerApp()
empty = WorkerApp()
number = 7

@app.handler("t")
async def t(job: JobContext) -> None: ...
"""
POD = {"POD_NAME": "p", "POD_UID": "u", "KUBECONFIG": "/nonexistent/kubeconfig"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


def test_an_app_is_found_in_the_current_folder(folder: Path) -> None:
    module(folder, "good_app", APP)
    assert set(load_app("good_app:app").handlers) == {"t"}
    assert set(load_app("good_app").handlers) == {"t"}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere:app", "no module named 'nowhere'"),
        ("bad_names:other", "module bad_names has no 'other'"),
        ("bad_names:number", "is a int, not a WorkerApp"),
        ("bad_names:empty", "has no handlers"),
        ("broken_import:app", r"no module named 'nonexistent_library'"),
        ("broken_syntax:app", r"SyntaxError.*broken_syntax\.py:2"),
        ("broken_code:app", r"ZeroDivisionError.*broken_code\.py:2"),
        ("two_handlers:app", "two handlers for job type 't'"),
        ("bad_handler:app", "it takes 0 parameters"),
        ("no_resource:app", "no resource of type float"),
        (":app", "names no module"),
        ("..up:app", "names no module"),
    ],
)
def test_each_mistake_is_one_clear_line(folder: Path, target: str, words: str) -> None:
    module(folder, "bad_names", APP)
    module(folder, "broken_import", "import nonexistent_library")
    module(folder, "broken_syntax", "\ndef f(:")
    module(folder, "broken_code", "\n1 / 0")
    module(folder, "two_handlers", APP + '\n@app.handler("t")\nasync def u(job): ...')
    module(folder, "bad_handler", APP + '\n@app.handler("u")\nasync def u(): ...')
    module(folder, "no_resource", APP + '\n@app.handler("u")\nasync def u(job, *, x: float): ...')
    with pytest.raises(ConfigError, match=words) as error:
        load_app(target)
    assert "\n" not in str(error.value)


def run(*arguments: str, **env: str | None) -> Result:
    return CliRunner().invoke(main, ["run", *arguments], env={**POD, **env})


def test_without_a_pod_the_command_says_what_is_missing() -> None:
    result = run("x:app", POD_NAME=None)
    assert result.exit_code == 1
    assert result.output.startswith("Error: POD_NAME and POD_UID are not set")


def test_without_a_cluster_the_command_says_what_to_do(folder: Path) -> None:
    module(folder, "some_app", APP)
    result = run("some_app:app")
    assert result.exit_code == 1
    assert "no cluster is configured" in result.output
    assert "make up" in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("option", ["--concurrency=-1", "--grace=-1", "--log-format=xml"])
def test_an_impossible_option_is_refused(option: str) -> None:
    assert run("x:app", option).exit_code == 2


def test_options_have_environment_variables(folder: Path) -> None:
    result = run("x:app", ASYNCJOB_WORKER_CONCURRENCY="many")
    assert result.exit_code == 2
    assert "concurrency" in result.output


@pytest.mark.parametrize(
    ("files", "most"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "max 100000"}, 4096),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 4096),
        ({"cpu.max": "nonsense"}, 4096),
        ({}, 4096),
    ],
)
def test_the_usable_cpus_are_those_of_the_containers_quota(
    tmp_path: Path, files: dict[str, str], most: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    all_of_them = usable_cpus(tmp_path / "none")
    assert usable_cpus(tmp_path) == min(all_of_them, most)


def test_concurrency_is_as_told_or_the_usable_cpus() -> None:
    assert Settings(concurrency=7).slots() == 7
    assert Settings().slots() == usable_cpus()


def test_no_two_starts_of_a_process_share_an_identity() -> None:
    assert identify("p", "u").worker != identify("p", "u").worker
