"""How workers end, and what becomes of what they hold: SIGTERM, SIGKILL, SIGSTOP."""

import signal
import subprocess
import sys
from typing import Any

import pytest

from asyncjob_dev.supervisor import DevWorker
from support.jobs import now
from support.probes import Probes
from support.workers import Field, until

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(120)]

AT_ONCE: dict[str, Any] = {"retryPolicy": {"initialDelaySeconds": 0, "jitter": 0}}


def ended(worker: DevWorker, within: float = 20.0) -> int | None:
    worker.wait_ended(within)
    return worker.process.returncode


def test_sigterm_lets_handlers_finish_within_the_grace_and_claims_nothing_more(
    field: Field,
) -> None:
    worker = field.worker("worker-0", "--concurrency=2")
    field.create("running", "wait", "go")
    field.until_trace("begin running 1")
    worker.terminate()
    field.until_log(worker, "worker draining")
    field.create("later", "echo", 1)
    field.open("go")
    assert ended(worker) == 0
    status = field.status("running")
    assert (status["phase"], status["attempt"], status["retries"]) == ("Succeeded", 1, 0)
    assert status["releases"] == 0
    assert field.status("later")["attempt"] == 0


@pytest.mark.parametrize("type_", ["wait", "wait-sync"])
def test_what_outlasts_the_grace_is_released_at_no_cost(field: Field, type_: str) -> None:
    worker = field.worker("worker-0", "--grace=0.2", "--stop-wait=0.5")
    field.create("j", type_, "never")
    field.until_trace("begin j 1")
    worker.terminate()
    assert ended(worker) == 0
    status = field.status("j")
    assert (status["phase"], status["reason"]) == ("Queued", "Released")
    assert (status["releases"], status["retries"], status["crashes"]) == (1, 0, 0)


@pytest.mark.parametrize("type_", ["stubborn", "stubborn-sync"])
def test_what_ignores_its_stop_is_released_at_no_cost_once_the_process_is_gone(
    field: Field, type_: str
) -> None:
    worker = field.worker("worker-0", "--grace=0.2", "--stop-wait=0.5")
    field.create("j", type_, "never")
    field.until_trace("begin j 1")
    worker.terminate()
    assert ended(worker) == 0
    status = field.until_phase("j", "Queued")
    assert status["reason"] == "WorkerGone"
    assert (status["releases"], status["retries"], status["crashes"]) == (1, 0, 0)
    assert "stays leased" in field.log(worker)


Stamps = dict[tuple[str, str], list[float]]


def stamps(field: Field) -> Stamps:
    """Return by job and attempt when its handler was at work, as it has written itself."""
    lives: Stamps = {}
    for line in field.trace("at "):
        _, job, attempt, at = line.split()
        lives.setdefault((job, attempt), []).append(float(at))
    return lives


def overlaps(lives: Stamps) -> list[str]:
    """Return the attempts that began before the last sign of life of an earlier one."""
    return [
        f"{job}: attempt {later} began {max(one) - min(other):.3f} s before {earlier} was over"
        for (job, earlier), one in lives.items()
        for (same, later), other in lives.items()
        if job == same and int(earlier) < int(later) and min(other) < max(one)
    ]


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("slots", [4, 8], ids=["no slot left", "slots left"])
@pytest.mark.parametrize("type_", ["stamps-sync", "stamps-thread"])
def test_no_two_attempts_of_a_job_run_at_any_moment_of_a_rolling_update(
    field: Field, signals: int, slots: int, type_: str
) -> None:
    """Threads that ignore their stop, by what they themselves write into a file."""
    options = (f"--concurrency={slots}", "--grace=0.2", "--stop-wait=0.3")
    names = [f"j{number}" for number in range(4)]
    before = field.worker("w-0", *options)
    for name in names:
        field.create(name, type_, "go", leaseDurationSeconds=5)
    until(lambda: len(stamps(field)) == len(names), 20, lambda: str(field.jobs()))
    for generation in (1, 2):
        after = field.worker(f"w-{generation}", *options)
        for _ in range(signals):
            before.terminate()
        code = ended(before)
        everywhere = (generation + 1) * len(names)
        until(lambda: len(stamps(field)) == everywhere, 20, lambda: str(field.jobs()))  # noqa: B023
        assert code == 0
        before = after
    field.open("go")
    for name in names:
        status = field.until_phase(name, "Succeeded", within=30)
        assert (status["crashes"], status["retries"], status["releases"]) == (0, 0, 2)
    assert overlaps(stamps(field)) == []


def test_a_second_signal_ends_the_grace_at_once(field: Field) -> None:
    worker = field.worker("worker-0", "--grace=100")
    field.create("j", "wait", "never")
    field.until_trace("begin j 1")
    worker.terminate()
    field.until_log(worker, "worker draining")
    worker.terminate()
    assert ended(worker) == 0
    assert field.status("j")["phase"] == "Queued"


def test_a_cancel_during_the_drain_is_honoured(field: Field) -> None:
    probes = Probes.on_free_port()
    worker = field.worker("worker-0", "--grace=100", probes.option)
    field.create("j", "wait", "never")
    field.until_trace("begin j 1")
    assert probes.ask("/readyz") == (200, "ok\n")
    worker.terminate()
    field.until_log(worker, "worker draining")
    assert probes.ask("/readyz") == (503, "draining: no more jobs are claimed\n")
    assert probes.ask("/livez") == (200, "ok\n")
    field.cancel("j")
    assert ended(worker) == 0
    status = field.status("j")
    assert (status["phase"], status["retries"], status["releases"]) == ("Cancelled", 0, 0)


def test_a_draining_worker_leaves_its_share_to_the_others_at_once(field: Field) -> None:
    first = field.worker("worker-0", "--grace=100")
    field.create("j", "wait", "go")
    field.until_trace("begin j 1")
    second = field.worker("worker-1")
    field.until_log(second, "live=2")
    first.terminate()
    field.until_log(second, "live=1")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{field.namespace}/leases"
    announced = field.api.get(f"{lease}/asyncjob-worker-worker-0")
    assert announced["spec"]["holderIdentity"] == field.status("j")["lease"]["worker"]
    field.open("go")
    assert ended(first) == 0
    emptied = field.api.get(f"{lease}/asyncjob-worker-worker-0")["spec"]
    assert not emptied.get("holderIdentity")


def test_a_killed_workers_job_is_finished_by_another_from_its_checkpoint(field: Field) -> None:
    workers = {name: field.worker(name) for name in ("worker-0", "worker-1")}
    field.create("j", "steps", {"rows": 6, "hold": 3, "gate": "go"}, **AT_ONCE)
    stored = field.until_status("j", lambda status: status.get("checkpoint") == {"row": 2})
    victim = stored["lease"]["holder"]
    workers[victim].kill()
    field.open("go")
    status = field.until_phase("j", "Succeeded")
    assert (status["attempt"], status["crashes"], status["retries"]) == (2, 1, 0)
    assert status["result"] == [3, 4, 5]
    assert field.trace("from") == ["from0 j 1", "from3 j 2"]
    assert not status["history"][-1]["worker"].startswith(victim)


def test_a_worker_that_wakes_after_its_jobs_were_recovered_writes_nothing_and_says_so(
    field: Field,
) -> None:
    sleeper = field.worker("worker-0", "--concurrency=2")
    for name, gate in (("ended", "go"), ("running", "never")):
        field.create(name, "wait", gate, leaseDurationSeconds=5, **AT_ONCE)
        field.until_trace(f"begin {name} 1")
    sleeper.process.pause()
    for name in ("worker-1", "worker-2"):
        field.worker(name)
    for name in ("ended", "running"):
        field.until_trace(f"begin {name} 2", within=20)
    field.open("go")
    field.until_phase("ended", "Succeeded")
    before = field.get("ended")
    sleeper.process.resume()
    field.until_log(sleeper, "attempt ended without an outcome")
    sleeper.terminate()
    assert ended(sleeper) == 0
    log = field.log(sleeper)
    assert "fenced" in log
    assert field.get("ended") == before
    status = field.status("running")
    assert (status["phase"], status["attempt"]) == ("Running", 2)
    assert status["lease"]["holder"] != "worker-0"


def skewed(field: Field, name: str, seconds: int, **more: Any) -> DevWorker:
    """Start a worker whose wall clock is wrong."""
    env = {"WORKER_SKEW_SECONDS": str(seconds)}
    return field.worker(
        name, "--concurrency=1", app="support.skewed_worker_app:app", env=env, **more
    )


def test_wrong_wall_clocks_cause_no_false_recovery_and_hide_no_true_one(field: Field) -> None:
    workers = [skewed(field, f"worker-{number}", skew) for number, skew in enumerate((-600, 600))]
    names = ("a", "b")
    for name in names:
        field.create(name, "wait", "go", leaseDurationSeconds=5, **AT_ONCE)
    for name in names:
        status = field.until_status(name, lambda found: renewals(found) >= 4)
        assert (status["attempt"], status["crashes"]) == (1, 0)
    holders = {field.status(name)["lease"]["holder"] for name in names}
    assert holders == {"worker-0", "worker-1"}
    for worker in workers:
        worker.process.pause()
    skewed(field, "worker-2", 600)
    field.open("go")
    for name in names:
        assert field.until_phase(name, "Succeeded", within=25)["attempt"] == 2


@pytest.mark.parametrize("skew", [-600, 600])
def test_a_wrong_wall_clock_costs_no_job_after_the_container_was_restarted(
    field: Field, skew: int
) -> None:
    worker = skewed(field, "worker-0", skew, restart=True)
    worker.kill()
    worker.await_restart(1, within=20)
    field.create("j", "wait", "go", leaseDurationSeconds=5)
    field.until_trace("begin j 1")
    field.until_status("j", lambda found: renewals(found) >= 4)
    field.open("go")
    status = field.until_phase("j", "Succeeded")
    assert (status["attempt"], status["crashes"]) == (1, 0)


def renewals(status: dict[str, Any]) -> int:
    count: int = status.get("lease", {}).get("renewals", 0)
    return count


def test_a_fast_wall_clock_starts_no_job_before_its_time(field: Field) -> None:
    worker = skewed(field, "worker-0", 600)
    field.create("later", "echo", 1, notBefore=now(300))
    field.until_phase("later", "Scheduled")
    field.create("now", "echo", 1)
    field.until_phase("now", "Succeeded")
    assert field.status("later")["attempt"] == 0
    assert "claim refused" not in field.log(worker)


def test_a_poison_pill_does_not_kill_the_jobs_beside_it(field: Field) -> None:
    worker = field.worker("worker-0", "--concurrency=4", restart=True)
    policy: dict[str, Any] = {
        "retryPolicy": {"initialDelaySeconds": 0.2, "jitter": 0, "maxCrashes": 2}
    }
    neighbours = [f"good-{number}" for number in range(3)]
    for name in neighbours:
        field.create(name, "linger", 1.0, **policy)
        field.until_trace(f"begin {name} 1")
    field.create("poison", "kill", **policy)
    status = field.until_phase("poison", "DeadLetter", within=60)
    assert (status["reason"], status["crashes"]) == ("CrashBudgetExhausted", 3)
    for name in neighbours:
        assert field.until_phase(name, "Succeeded", within=30)["crashes"] <= 1
    assert worker.restarts >= 2


def test_a_process_ends_after_its_drain_whatever_hangs_in_its_threads(field: Field) -> None:
    worker = field.worker("worker-0", "--concurrency=8", "--grace=0.2", "--stop-wait=0.5")
    for number in range(8):
        field.create(f"j{number}", "long-call")
    until(lambda: len(field.trace("begin")) == 8, 15, lambda: str(field.trace()))
    worker.terminate()
    assert ended(worker) == 0


@pytest.mark.timeout(300)
def test_jobs_beside_many_pills_are_charged_once_at_most(field: Field) -> None:
    """16 slots, and a third of what is queued kills the process at once."""
    policy: dict[str, Any] = {
        "retryPolicy": {"initialDelaySeconds": 0.2, "jitter": 0, "maxCrashes": 1}
    }
    pills = [f"pill-{number}" for number in range(4)]
    innocent = [f"good-{number}" for number in range(12)]
    for number, name in enumerate(innocent):
        field.create(name, "linger", 0.3, **policy)
        if number % 3 == 0:
            field.create(pills[number // 3], "kill", **policy)
    field.start_worker("worker-0", "--concurrency=16", restart=True)
    for name in pills:
        status = field.until_phase(name, "DeadLetter", within=90)
        assert status["reason"] == "CrashBudgetExhausted"
    for name in innocent:
        assert field.until_phase(name, "Succeeded", within=60)["crashes"] <= 1


def test_short_leases_on_an_overloaded_machine_never_let_two_attempts_run(field: Field) -> None:
    """Twenty seconds of six busy processes beside two workers with leases of 5 s."""
    for number in range(2):
        field.worker(f"worker-{number}", "--concurrency=2")
    busy = "import os, time\nend = time.monotonic() + 20\nwhile time.monotonic() < end: pass"
    load = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(6)]
    try:
        names = [f"j{number}" for number in range(4)]
        for name in names:
            field.create(name, "stamps-heeding", 10.0, leaseDurationSeconds=5, **AT_ONCE)
        for name in names:
            field.until_phase(name, "Succeeded", within=75)
    finally:
        for one in load:
            one.kill()
            one.wait()
    assert {job for job, _ in stamps(field)} == set(names)
    assert overlaps(stamps(field)) == []


def test_sigint_drains_like_sigterm(field: Field) -> None:
    worker = field.worker()
    assert worker.process.pid
    worker.process._subprocess.signal(signal.SIGINT)  # type: ignore[union-attr]
    assert ended(worker) == 0
    assert "worker stopped" in field.log(worker)
