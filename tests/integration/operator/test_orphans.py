"""A thousand jobs lose their worker at once."""

import asyncio
import time
from pathlib import Path

import pytest

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession, load_access
from asyncjob.names import JOBS, collection_path, job_status_path
from asyncjob_dev.controlplane import ControlPlane
from support.driven.fake_worker import FakeWorker, worker_kubeconfig
from support.driven.jobs import Jobs, until

pytestmark = [pytest.mark.integration, pytest.mark.soak]

ORPHANS = 1000
AT_ONCE = 16
BOUND_SECONDS = 15.0
LEASE = 600
"""So long that nothing but the end of the container explains a requeue."""


class Crowd:
    """Creates jobs as a user and claims each with its pod's own token, many at once."""

    def __init__(self, worker: FakeWorker, user: KubeSession, pod: KubeSession) -> None:
        self._worker, self._user, self._pod = worker, user, pod
        self._namespace = worker.jobs.namespace
        self._places = asyncio.Semaphore(AT_ONCE)

    async def gather(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(ORPHANS):
                group.create_task(self._claimed(f"many-{number}"))

    async def _claimed(self, name: str) -> None:
        async with self._places:
            obj = await self._created(name)
            body = self._worker.claim_of(dict(obj), LEASE)
            await self._pod.merge_patch(job_status_path(self._namespace, name), body)

    async def _created(self, name: str) -> JsonObject:
        body: JsonObject = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name},
            "spec": {"type": "test"},
        }
        return await self._user.create(collection_path(self._namespace, JOBS), body)


async def gather(worker: FakeWorker, admin: Path, own: Path) -> None:
    async with (
        KubeSession(await load_access(str(admin)), field_manager="user") as user,
        KubeSession(await load_access(str(own)), field_manager="asyncjob-worker") as pod,
    ):
        await Crowd(worker, user, pod).gather()


def phases(jobs: Jobs, phase: str) -> list[dict[str, object]]:
    """Return the jobs in a phase."""
    answer = jobs.api.get(
        collection_path(jobs.namespace, JOBS), fieldSelector=f"status.phase={phase}"
    )
    found: list[dict[str, object]] = answer["items"]
    return found


def any_running(jobs: Jobs) -> bool:
    query = {"fieldSelector": "status.phase=Running", "limit": "1"}
    return bool(jobs.api.get(collection_path(jobs.namespace, JOBS), **query)["items"])


@pytest.mark.alone
@pytest.mark.timeout(180)
def test_a_thousand_jobs_of_a_container_that_ended_are_all_requeued_within_15_seconds(
    control_plane: ControlPlane, jobs: Jobs, tmp_path: Path
) -> None:
    worker = FakeWorker(jobs, account="asyncjob-worker")
    own = worker_kubeconfig(worker, tmp_path / "kubeconfig")
    asyncio.run(gather(worker, control_plane.kubeconfig, own))
    assert len(phases(jobs, "Running")) == ORPHANS
    ended_at = time.monotonic()
    worker.end_container(0, reason="Completed")
    until(lambda: not any_running(jobs), 60, "the last requeue", every=0.25)
    assert time.monotonic() - ended_at <= BOUND_SECONDS
    assert len(phases(jobs, "Queued")) == ORPHANS
