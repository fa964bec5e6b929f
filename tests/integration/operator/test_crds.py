"""The CRDs disappear under a running operator, and come back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.installation import ROOT, install
from support.driven.crons import Crons
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.processes.operator import JOB_WATCHES, QUICK, OperatorProcess, operator_kubeconfig

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

CRDS = ROOT / "crds"
ADVICE = "apply the CRDs: kubectl apply -f crds/"


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """Run a control plane to delete the CRDs from."""
    with ControlPlane() as running:
        install(running)
        yield running


@pytest.mark.parametrize("job_watch", JOB_WATCHES)
def test_with_the_crds_deleted_and_applied_again_jobs_and_schedules_are_seen_without_a_resync(
    plane: ControlPlane, tmp_path: Path, job_watch: str
) -> None:
    jobs, access = Jobs(plane.api), operator_kubeconfig(plane, tmp_path / "kubeconfig")
    crons = Crons(jobs)
    options = (*QUICK, f"--job-watch={job_watch}")
    with OperatorProcess(access, tmp_path / "log", *options) as operator:
        operator.until_ready().until_leading()
        jobs.create("before")
        until(lambda: operator.metric("asyncjob_jobs") == 1, 10)
        for crd in ("asyncjobs", "asyncqueues", "asynccronjobs", "asyncarrays"):
            plane.kubectl("delete", f"--filename={CRDS / crd}.yaml", "--wait=true")
        until(lambda: ADVICE in operator.logs(), 30)
        plane.kubectl("apply", f"--filename={CRDS}")
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        until(lambda: operator.metric("asyncjob_jobs") == 0, 10)
        jobs.create("after", retryPolicy={"initialDelaySeconds": 1, "jitter": 0})
        worker = FakeWorker(jobs)
        worker.claim("after")
        worker.fail("after")
        jobs.until_phase("after", "Queued", within=15)
        crons.create("daily")
        crons.change("daily", trigger=1)
        crons.until_runs("daily", 1)
        # Which types are missing changes as they are deleted, one after the other.
        advice = [line.partition(" ")[2] for line in operator.logs().splitlines() if ADVICE in line]
        assert len(set(advice)) == len(advice)
        assert operator.stop() == 0
