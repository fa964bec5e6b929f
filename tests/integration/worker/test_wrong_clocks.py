"""Workers whose wall clock is wrong: they lose no job, hold none and start none early."""

from typing import Any

import pytest

from asyncjob_dev.supervisor import DevWorker
from support.driven.jobs import now
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(120)]

AT_ONCE: dict[str, Any] = {"retryPolicy": {"initialDelaySeconds": 0, "jitter": 0}}


def skewed(ns: WorkerNamespace, name: str, seconds: int, **more: Any) -> DevWorker:
    """Start a worker whose wall clock is wrong."""
    env = {"WORKER_SKEW_SECONDS": str(seconds)}
    return ns.worker(name, "--concurrency=1", app="support.apps.skewed_worker:app", env=env, **more)


def test_wrong_wall_clocks_cause_no_false_recovery_and_hide_no_true_one(
    ns: WorkerNamespace,
) -> None:
    workers = [skewed(ns, f"worker-{number}", skew) for number, skew in enumerate((-600, 600))]
    names = ("a", "b")
    for name in names:
        ns.create(name, "wait", "go", leaseDurationSeconds=5, **AT_ONCE)
    for name in names:
        status = ns.until_status(name, lambda found: renewals(found) >= 4)
        assert (status["attempt"], status.get("crashes", 0)) == (1, 0)
    holders = {ns.status(name)["lease"]["holder"] for name in names}
    assert holders == {"worker-0", "worker-1"}
    for worker in workers:
        worker.process.pause()
    skewed(ns, "worker-2", 600)
    ns.open("go")
    for name in names:
        assert ns.until_phase(name, "Succeeded", within=25)["attempt"] == 2


@pytest.mark.parametrize("skew", [-600, 600])
def test_a_wrong_wall_clock_costs_no_job_after_the_container_was_restarted(
    ns: WorkerNamespace, skew: int
) -> None:
    worker = skewed(ns, "worker-0", skew, restart=True)
    worker.kill()
    worker.await_restart(1, within=20)
    ns.create("j", "wait", "go", leaseDurationSeconds=5)
    ns.until_trace("begin j 1")
    ns.until_status("j", lambda found: renewals(found) >= 4)
    ns.open("go")
    status = ns.until_phase("j", "Succeeded")
    assert (status["attempt"], status.get("crashes", 0)) == (1, 0)


def renewals(status: dict[str, Any]) -> int:
    count: int = status.get("lease", {}).get("renewals", 0)
    return count


def test_a_fast_wall_clock_starts_no_job_before_its_time(ns: WorkerNamespace) -> None:
    worker = skewed(ns, "worker-0", 600)
    ns.create("later", "echo", 1, notBefore=now(300))
    ns.until_phase("later", "Scheduled")
    ns.create("now", "echo", 1)
    ns.until_phase("now", "Succeeded")
    assert ns.status("later")["attempt"] == 0
    assert "claim refused" not in ns.log(worker)
