"""The CRDs disappear under a running operator, and come back."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob.kube import load_access
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_operator.kube.kopf_watch import watch_queues
from support.fake_worker import FakeWorker
from support.installation import ROOT, install
from support.jobs import Jobs, until
from support.operator import QUICK, OperatorProcess, operator_kubeconfig

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

CRDS = ROOT / "crds"
ADVICE = "apply the CRDs (kubectl apply -f crds/)"


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """Run a control plane to delete the CRDs from."""
    with ControlPlane() as running:
        install(running)
        yield running


async def _watch_nothing(kubeconfig: Path) -> None:
    access = await load_access(str(kubeconfig))
    await asyncio.wait_for(watch_queues(access, (), lambda *_: None, lambda: None), 20)


def test_with_the_crds_deleted_and_applied_again_jobs_are_seen_without_a_resync(
    plane: ControlPlane, tmp_path: Path
) -> None:
    jobs, access = Jobs(plane.api), operator_kubeconfig(plane, tmp_path / "kubeconfig")
    with OperatorProcess(access, tmp_path / "log", *QUICK) as operator:
        operator.until_ready().until_leading()
        jobs.create("before")
        until(lambda: operator.metric("asyncjob_jobs") == 1, 10)
        for crd in ("asyncjobs", "asyncqueues"):
            plane.kubectl("delete", f"--filename={CRDS / crd}.yaml", "--wait=true")
        until(lambda: ADVICE in operator.logs(), 30)
        asyncio.run(_watch_nothing(access))  # left to itself, kopf would wait for ever
        plane.kubectl("apply", f"--filename={CRDS}")
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        until(lambda: "AsyncJobs are served again" in operator.logs(), 20)
        until(lambda: operator.metric("asyncjob_jobs") == 0, 10)
        jobs.create("after", retryPolicy={"initialDelaySeconds": 1, "jitter": 0})
        worker = FakeWorker(jobs)
        worker.claim("after")
        worker.fail("after")
        jobs.until_phase("after", "Queued", within=15)
        assert operator.logs().count(ADVICE) <= 2
        assert operator.stop() == 0
