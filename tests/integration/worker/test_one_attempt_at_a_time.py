"""No two attempts of a job at once: as workers are replaced, and on an overloaded machine."""

import subprocess
import sys
from typing import Any

import pytest

from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(120)]

AT_ONCE: dict[str, Any] = {"retryPolicy": {"initialDelaySeconds": 0, "jitter": 0}}

Stamps = dict[tuple[str, str], list[float]]


def stamps(ns: WorkerNamespace) -> Stamps:
    """Return by job and attempt when its handler was at work, as it has written itself."""
    lives: Stamps = {}
    for line in ns.trace("at "):
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
    ns: WorkerNamespace, signals: int, slots: int, type_: str
) -> None:
    """Threads that ignore their stop, by what they themselves write into a file."""
    options = (f"--concurrency={slots}", "--grace=0.2", "--stop-wait=0.3")
    names = [f"j{number}" for number in range(4)]
    before = ns.worker("w-0", *options)
    for name in names:
        ns.create(name, type_, "go", leaseDurationSeconds=5)
    until(lambda: len(stamps(ns)) == len(names), 20, lambda: str(ns.jobs()))
    for generation in (1, 2):
        after = ns.worker(f"w-{generation}", *options)
        for _ in range(signals):
            before.terminate()
        before.wait_ended(20)
        code = before.process.returncode
        everywhere = (generation + 1) * len(names)
        until(lambda: len(stamps(ns)) == everywhere, 20, lambda: str(ns.jobs()))  # noqa: B023
        assert code == 0
        before = after
    ns.open("go")
    for name in names:
        status = ns.until_phase(name, "Succeeded", within=30)
        assert (status.get("crashes", 0), status.get("retries", 0), status.get("releases", 0)) == (
            0,
            0,
            2,
        )
    assert overlaps(stamps(ns)) == []


def test_short_leases_on_an_overloaded_machine_never_let_two_attempts_run(
    ns: WorkerNamespace,
) -> None:
    """Twenty seconds of six busy processes beside two workers with leases of 5 s."""
    for number in range(2):
        ns.worker(f"worker-{number}", "--concurrency=2")
    busy = "import os, time\nend = time.monotonic() + 20\nwhile time.monotonic() < end: pass"
    load = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(6)]
    try:
        names = [f"j{number}" for number in range(4)]
        for name in names:
            ns.create(name, "stamps-heeding", 10.0, leaseDurationSeconds=5, **AT_ONCE)
        for name in names:
            ns.until_phase(name, "Succeeded", within=75)
    finally:
        for one in load:
            one.kill()
            one.wait()
    assert {job for job, _ in stamps(ns)} == set(names)
    assert overlaps(stamps(ns)) == []
