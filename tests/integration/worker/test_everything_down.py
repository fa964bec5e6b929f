"""Operator, workers and API server all die at once; what they leave is taken up again."""

from pathlib import Path

import pytest

from support.processes.operator import OperatorProcess
from support.processes.workers import WorkerNamespace

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.soak,
    pytest.mark.timeout(120),
]

RUNNING = [f"running-{number}" for number in range(4)]
WAITING = [f"waiting-{number}" for number in range(8)]
QUICK = ("--lease-margin=0.3", "--backoff-initial=0.2", "--backoff-max=2", "--no-retention")


def operator(ns: WorkerNamespace, log: Path) -> OperatorProcess:
    return OperatorProcess(ns.plane.kubeconfig, log, *QUICK)


def test_every_job_ends_although_everything_went_down_at_once(
    fragile: WorkerNamespace, tmp_path: Path
) -> None:
    with operator(fragile, tmp_path / "before.log") as first:
        first.until_ready().until_leading()
        worker = fragile.worker("worker-0", f"--concurrency={len(RUNNING)}")
        for name in RUNNING:
            fragile.create(name, "wait", "go", leaseDurationSeconds=5)
        for name in RUNNING:
            fragile.until_trace(f"begin {name} 1")
        for name in WAITING:
            fragile.create(name, "wait", "go")
        fragile.plane.kill_apiserver()
        worker.kill()
        assert first.process
        first.process.kill()
        first.process.wait()

    fragile.plane.start_apiserver()
    fragile.open("go")
    with operator(fragile, tmp_path / "after.log") as second:
        second.until_ready()
        fragile.worker("worker-1", "--concurrency=4")
        for name in RUNNING:
            status = fragile.until_phase(name, "Succeeded", within=40)
            assert (status["attempt"], status.get("crashes", 0), status.get("retries", 0)) == (
                2,
                1,
                0,
            )
        for name in WAITING:
            assert fragile.until_phase(name, "Succeeded")["attempt"] == 1
    assert len(fragile.trace("end")) == len(RUNNING) + len(WAITING)
