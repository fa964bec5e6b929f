"""Handlers with processes of their own: their deaths, and their ends with the worker's."""

from pathlib import Path
from typing import Any, Final

import pytest

from asyncjob_worker.claiming.selector import EMPTYING_SECONDS, MIN_OTHERS_SECONDS
from support.parts.isolation import is_alive
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(120)]

SOON: dict[str, Any] = {
    "retryPolicy": {"initialDelaySeconds": 0.2, "jitter": 0, "maxCrashes": 1, "maxRetries": 0}
}


TURNS: Final = 2 * (EMPTYING_SECONDS + MIN_OTHERS_SECONDS) + 20.0
"""A worker empties itself for each of two crashed jobs, the second after the others had theirs."""


def reasons(status: dict[str, Any]) -> list[str]:
    return [entry["reason"] for entry in status["history"] if entry.get("reason")]


def test_the_death_of_a_handler_is_a_crash_of_its_own_attempt_only(ns: WorkerNamespace) -> None:
    worker = ns.worker("worker-0", "--concurrency=4", "--stop-wait=0.2")
    neighbours = {"loop": "wait", "thread": "wait-sync"}
    for name, type_ in neighbours.items():
        ns.create(name, type_, "go")
        ns.until_trace(f"begin {name} 1")
    # Long enough for a process to start on a busy machine; the operator would look 7 s later.
    ns.create("hung", "hang", executionTimeoutSeconds=12, **SOON)
    ns.create("poison", "die", **SOON)
    ns.create("resumed", "resume", **SOON)

    poison = ns.until_phase("poison", "DeadLetter", within=TURNS)
    assert (poison["reason"], poison.get("crashes", 0), poison.get("retries", 0)) == (
        "CrashBudgetExhausted",
        2,
        0,
    )
    assert "HandlerCrashed" in reasons(poison)
    assert "the handler's process died by SIGSEGV" in poison["message"]
    assert poison["error"]["category"] == "Crash"
    assert ns.trace("die") == ["die poison 1", "die poison 2"]

    resumed = ns.until_phase("resumed", "Succeeded", within=TURNS)
    assert (resumed["result"], resumed.get("crashes", 0), resumed["attempt"]) == ({"row": 1}, 1, 2)

    hung = ns.until_phase("hung", "DeadLetter", within=30)
    assert (hung["error"]["category"], hung.get("crashes", 0)) == ("Timeout", 0)
    assert not is_alive(process_of(ns, "hung"))

    ns.open("go")
    for name in neighbours:
        status = ns.until_phase(name, "Succeeded")
        assert (status["attempt"], status.get("crashes", 0)) == (1, 0)
    worker.terminate()
    worker.wait_ended(20.0)
    assert worker.process.returncode == 0


def process_of(ns: WorkerNamespace, name: str) -> int:
    """Return the process that the job's handler has noted last."""
    lines = [line.split() for line in ns.trace("pid-")]
    return int([line[0] for line in lines if line[1] == name][-1].removeprefix("pid-"))


def test_a_worker_leaves_no_process_however_it_ends(ns: WorkerNamespace, tmp_path: Path) -> None:
    drained = ns.worker("worker-0", "--grace=0.2", "--stop-wait=0.5")
    ns.create("j", "hang")
    until(lambda: ns.trace("pid-"), 15.0, lambda: ns.log(drained))
    first = process_of(ns, "j")
    drained.terminate()
    drained.wait_ended(20.0)
    assert drained.process.returncode == 0
    assert not is_alive(first)
    status = ns.status("j")
    assert (status["phase"], status["reason"], status.get("crashes", 0)) == (
        "Queued",
        "Released",
        0,
    )

    killed = ns.worker("worker-1")
    until(lambda: len(ns.trace("pid-")) > 1, 15.0, lambda: ns.log(killed))
    second = process_of(ns, "j")
    assert is_alive(second)
    killed.kill()
    until(lambda: not is_alive(second), 10.0, lambda: "the handler's process lives on")


def test_an_isolated_parent_waits_for_children_that_run_one_at_a_time(ns: WorkerNamespace) -> None:
    worker = ns.worker("worker-0", "--concurrency=4", app="support.apps.shared:app")
    trace_id = "ab" * 16
    ns.create("p", "isolated-parent", traceparent=f"00-{trace_id}-{'cd' * 8}-01")
    result = ns.until_phase("p", "Succeeded", within=30)["result"]
    assert result["results"] == [[0, "p", trace_id], [1, "p", trace_id]]
    words = [line.split()[0] for line in ns.trace("leaf-")]
    assert words == ["leaf-begin", "leaf-end"] * 2
    # Opened in its process alone, and closed before the worker's own.
    assert result["own"]
    assert ns.trace("open private") == [f"open private {result['pid']}"]
    worker.terminate()
    worker.wait_ended(20.0)
    assert worker.process.returncode == 0
    closed = [line.split()[1] for line in ns.trace("close")]
    assert closed == ["private", "pool", "files", "pool"]
