"""`--reload` in development: the worker follows the code, and loses no job over it."""

import os
import signal
from pathlib import Path

import pytest

from support.processes.signals import ignoring
from support.processes.workers import ROOT, WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

APP = """
import asyncio
from asyncjob import JobContext, WorkerApp

app = WorkerApp()

@app.handler("say")
async def say(job: JobContext) -> str:
    return {word!r}

@app.handler("stay")
async def stay(job: JobContext) -> str:
    if {word!r} == "first version":
        await asyncio.Event().wait()
    return {word!r}
"""


def test_the_worker_follows_the_code_and_outlasts_a_mistake(
    ns: WorkerNamespace, tmp_path: Path
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    code = folder / "live_app.py"
    code.write_text(APP.format(word="first version"))
    env = {"PYTHONPATH": f"{folder}:{ROOT / 'tests'}"}
    options = ("--reload", "--concurrency=2")
    worker = ns.worker("worker-0", *options, app="live_app:app", env=env)
    assert say(ns, "one") == "first version"
    ns.create("stays", "stay")
    ns.until_phase("stays", "Running")

    code.write_text(APP.format(word="a second one"))
    status = ns.until_phase("stays", "Succeeded", within=30)
    assert (status["result"], status["attempt"]) == ("a second one", 2)
    assert (status.get("releases", 0), status.get("retries", 0), status.get("crashes", 0)) == (
        1,
        0,
        0,
    )
    first, second = (entry["worker"] for entry in status["history"])
    assert first != second
    assert say(ns, "two") == "a second one"

    code.write_text("def broken(:\n")
    ns.until_log(worker, f"SyntaxError: invalid syntax ({code}:1)")
    assert worker.process.running
    code.write_text(APP.format(word="number three"))
    assert say(ns, "three") == "number three"

    begun = ns.log(worker).count("worker started")
    worker.terminate()
    worker.wait_ended(15)
    assert worker.process.returncode == 0
    until(lambda: ns.log(worker).count("worker stopped") == begun, 5, lambda: ns.log(worker))


def say(ns: WorkerNamespace, name: str) -> object:
    ns.create(name, "say")
    return ns.until_phase(name, "Succeeded", within=30)["result"]


def test_ctrl_c_ends_it_even_if_it_was_started_with_that_ignored(
    ns: WorkerNamespace, tmp_path: Path
) -> None:
    (tmp_path / "live_app.py").write_text(APP.format(word="said"))
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT / 'tests'}"}
    with ignoring(signal.SIGINT):
        worker = ns.worker("worker-0", "--reload", app="live_app:app", env=env)
    assert say(ns, "one") == "said"
    os.kill(worker.process.pid or 0, signal.SIGINT)
    worker.wait_ended(30)
    assert worker.process.returncode == 0
    until(lambda: "worker stopped" in ns.log(worker), 5, lambda: ns.log(worker))
