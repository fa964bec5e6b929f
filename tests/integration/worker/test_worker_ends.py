"""How workers end, and what becomes of what they hold: SIGTERM, SIGKILL, SIGSTOP."""

import signal
from typing import Any

import pytest

from asyncjob_dev.supervisor import DevWorker
from support.processes.probes import Probes
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(120)]

AT_ONCE: dict[str, Any] = {"retryPolicy": {"initialDelaySeconds": 0, "jitter": 0}}


def ended(worker: DevWorker, within: float = 20.0) -> int | None:
    worker.wait_ended(within)
    return worker.process.returncode


def test_sigterm_lets_handlers_finish_within_the_grace_and_claims_nothing_more(
    ns: WorkerNamespace,
) -> None:
    worker = ns.worker("worker-0", "--concurrency=2")
    ns.create("running", "wait", "go")
    ns.until_trace("begin running 1")
    worker.terminate()
    ns.until_log(worker, "worker draining")
    ns.create("later", "echo", 1)
    ns.open("go")
    assert ended(worker) == 0
    status = ns.status("running")
    assert (status["phase"], status["attempt"], status.get("retries", 0)) == ("Succeeded", 1, 0)
    assert status.get("releases", 0) == 0
    assert ns.status("later")["attempt"] == 0


@pytest.mark.parametrize("type_", ["wait", "wait-sync"])
def test_what_outlasts_the_grace_is_released_at_no_cost(ns: WorkerNamespace, type_: str) -> None:
    worker = ns.worker("worker-0", "--grace=0.2", "--stop-wait=0.5")
    ns.create("j", type_, "never")
    ns.until_trace("begin j 1")
    worker.terminate()
    assert ended(worker) == 0
    status = ns.status("j")
    assert (status["phase"], status["reason"]) == ("Queued", "Released")
    assert (status.get("releases", 0), status.get("retries", 0), status.get("crashes", 0)) == (
        1,
        0,
        0,
    )


@pytest.mark.parametrize("type_", ["stubborn", "stubborn-sync"])
def test_what_ignores_its_stop_is_released_at_no_cost_once_the_process_is_gone(
    ns: WorkerNamespace, type_: str
) -> None:
    worker = ns.worker("worker-0", "--grace=0.2", "--stop-wait=0.5")
    ns.create("j", type_, "never")
    ns.until_trace("begin j 1")
    worker.terminate()
    assert ended(worker) == 0
    status = ns.until_phase("j", "Queued")
    assert status["reason"] == "WorkerGone"
    assert (status.get("releases", 0), status.get("retries", 0), status.get("crashes", 0)) == (
        1,
        0,
        0,
    )
    assert "stays leased" in ns.log(worker)


def test_a_second_signal_ends_the_grace_at_once(ns: WorkerNamespace) -> None:
    worker = ns.worker("worker-0", "--grace=100")
    ns.create("j", "wait", "never")
    ns.until_trace("begin j 1")
    worker.terminate()
    ns.until_log(worker, "worker draining")
    worker.terminate()
    assert ended(worker) == 0
    assert ns.status("j")["phase"] == "Queued"


def test_a_cancel_during_the_drain_is_honoured(ns: WorkerNamespace) -> None:
    probes = Probes.on_free_port()
    worker = ns.worker("worker-0", "--grace=100", probes.option)
    ns.create("j", "wait", "never")
    ns.until_trace("begin j 1")
    assert probes.ask("/readyz") == (200, "ok\n")
    worker.terminate()
    ns.until_log(worker, "worker draining")
    assert probes.ask("/readyz") == (503, "draining: no more jobs are claimed\n")
    assert probes.ask("/livez") == (200, "ok\n")
    ns.cancel("j")
    assert ended(worker) == 0
    status = ns.status("j")
    assert (status["phase"], status.get("retries", 0), status.get("releases", 0)) == (
        "Cancelled",
        0,
        0,
    )


def test_a_draining_worker_leaves_its_share_to_the_others_at_once(ns: WorkerNamespace) -> None:
    first = ns.worker("worker-0", "--grace=100")
    ns.create("j", "wait", "go")
    ns.until_trace("begin j 1")
    second = ns.worker("worker-1")
    ns.until_log(second, "live=2")
    first.terminate()
    ns.until_log(second, "live=1")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{ns.namespace}/leases"
    announced = ns.api.get(f"{lease}/asyncjob-worker-worker-0")
    assert announced["spec"]["holderIdentity"] == ns.status("j")["lease"]["worker"]
    ns.open("go")
    assert ended(first) == 0
    emptied = ns.api.get(f"{lease}/asyncjob-worker-worker-0")["spec"]
    assert not emptied.get("holderIdentity")


def test_a_killed_workers_job_is_finished_by_another_from_its_checkpoint(
    ns: WorkerNamespace,
) -> None:
    workers = {name: ns.worker(name) for name in ("worker-0", "worker-1")}
    ns.create("j", "steps", {"rows": 6, "hold": 3, "gate": "go"}, **AT_ONCE)
    stored = ns.until_status("j", lambda status: status.get("checkpoint") == {"row": 2})
    victim = stored["lease"]["holder"]
    workers[victim].kill()
    ns.open("go")
    status = ns.until_phase("j", "Succeeded")
    assert (status["attempt"], status.get("crashes", 0), status.get("retries", 0)) == (2, 1, 0)
    assert status["result"] == [3, 4, 5]
    assert ns.trace("from") == ["from0 j 1", "from3 j 2"]
    assert not status["history"][-1]["worker"].startswith(victim)


def test_a_worker_that_wakes_after_its_jobs_were_recovered_writes_nothing_and_says_so(
    ns: WorkerNamespace,
) -> None:
    sleeper = ns.worker("worker-0", "--concurrency=2")
    for name, gate in (("ended", "go"), ("running", "never")):
        ns.create(name, "wait", gate, leaseDurationSeconds=5, **AT_ONCE)
        ns.until_trace(f"begin {name} 1")
    sleeper.process.pause()
    for name in ("worker-1", "worker-2"):
        ns.worker(name)
    for name in ("ended", "running"):
        ns.until_trace(f"begin {name} 2", within=20)
    ns.open("go")
    ns.until_phase("ended", "Succeeded")
    before = ns.get("ended")
    sleeper.process.resume()
    ns.until_log(sleeper, "attempt ended without an outcome")
    sleeper.terminate()
    assert ended(sleeper) == 0
    log = ns.log(sleeper)
    assert "fenced" in log
    assert ns.get("ended") == before
    status = ns.status("running")
    assert (status["phase"], status["attempt"]) == ("Running", 2)
    assert status["lease"]["holder"] != "worker-0"


def test_a_poison_pill_does_not_kill_the_jobs_beside_it(ns: WorkerNamespace) -> None:
    worker = ns.worker("worker-0", "--concurrency=4", restart=True)
    policy: dict[str, Any] = {
        "retryPolicy": {"initialDelaySeconds": 0.2, "jitter": 0, "maxCrashes": 2}
    }
    neighbours = [f"good-{number}" for number in range(3)]
    for name in neighbours:
        ns.create(name, "linger", 1.0, **policy)
        ns.until_trace(f"begin {name} 1")
    ns.create("poison", "kill", **policy)
    status = ns.until_phase("poison", "DeadLetter", within=60)
    assert (status["reason"], status.get("crashes", 0)) == ("CrashBudgetExhausted", 3)
    for name in neighbours:
        assert ns.until_phase(name, "Succeeded", within=30).get("crashes", 0) <= 1
    assert worker.restarts >= 2


def test_a_process_ends_after_its_drain_whatever_hangs_in_its_threads(ns: WorkerNamespace) -> None:
    worker = ns.worker("worker-0", "--concurrency=8", "--grace=0.2", "--stop-wait=0.5")
    for number in range(8):
        ns.create(f"j{number}", "long-call")
    until(lambda: len(ns.trace("begin")) == 8, 15, lambda: str(ns.trace()))
    worker.terminate()
    assert ended(worker) == 0


@pytest.mark.timeout(300)
def test_jobs_beside_many_pills_are_charged_once_at_most(ns: WorkerNamespace) -> None:
    """16 slots, and a third of what is queued kills the process at once."""
    policy: dict[str, Any] = {
        "retryPolicy": {"initialDelaySeconds": 0.2, "jitter": 0, "maxCrashes": 1}
    }
    pills = [f"pill-{number}" for number in range(4)]
    innocent = [f"good-{number}" for number in range(12)]
    for number, name in enumerate(innocent):
        ns.create(name, "linger", 0.3, **policy)
        if number % 3 == 0:
            ns.create(pills[number // 3], "kill", **policy)
    ns.start_worker("worker-0", "--concurrency=16", restart=True)
    for name in pills:
        status = ns.until_phase(name, "DeadLetter", within=90)
        assert status["reason"] == "CrashBudgetExhausted"
    for name in innocent:
        assert ns.until_phase(name, "Succeeded", within=60).get("crashes", 0) <= 1


def test_sigint_drains_like_sigterm(ns: WorkerNamespace) -> None:
    worker = ns.worker()
    assert worker.process.pid
    worker.process._subprocess.signal(signal.SIGINT)  # type: ignore[union-attr]
    assert ended(worker) == 0
    assert "worker stopped" in ns.log(worker)
