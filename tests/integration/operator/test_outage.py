"""The API server dies under the operator, and comes back."""

import time
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, now, until
from support.processes.operator import JOB_WATCHES, QUICK, OperatorProcess

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("job_watch", JOB_WATCHES)
@pytest.mark.parametrize(
    "outage",
    [1.0, pytest.param(14.0, marks=pytest.mark.soak)],
    ids=["short", "longer than leadership lasts"],
)
def test_the_operator_outlives_a_killed_api_server_and_goes_on(
    fragile_plane: ControlPlane,
    operator_access: Path,
    tmp_path: Path,
    outage: float,
    job_watch: str,
) -> None:
    jobs = Jobs(fragile_plane.api)
    options = (
        *QUICK,
        f"--namespace={jobs.namespace}",
        f"--lease-namespace={jobs.namespace}",
        f"--job-watch={job_watch}",
    )
    with OperatorProcess(operator_access, tmp_path / "log", *options) as operator:
        operator.until_ready().until_leading()
        worker = FakeWorker(jobs)
        jobs.create("retrying", retryPolicy={"initialDelaySeconds": outage + 2, "jitter": 0})
        worker.claim("retrying")
        worker.fail("retrying")
        jobs.create("scheduled", notBefore=now(outage + 2))
        jobs.create("orphan")
        worker.claim("orphan", lease=5)
        jobs.until_phase("scheduled", "Scheduled")
        fragile_plane.kill_apiserver()
        time.sleep(outage)
        fragile_plane.start_apiserver()
        jobs.until_phase("scheduled", "Queued", within=25)
        jobs.until_phase("retrying", "Queued", within=25)
        until(lambda: jobs.status("orphan").get("crashes", 0) == 1, 25)
        jobs.create("afterwards", cancel=True)
        jobs.until_phase("afterwards", "Cancelled", within=25)
        assert operator.process
        assert operator.process.poll() is None
        assert operator.stop() == 0
