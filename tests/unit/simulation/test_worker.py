"""A real worker, all of it, on the API server in memory: nothing is lost where answers are."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from asyncjob import WorkerApp
from asyncjob.kube import KubeSession, WatchEvent, watch
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.names import JOBS, collection_path, job_path
from asyncjob_simulation.apiserver import Fault, MemoryAccess, MemoryConnections, ScriptedFaults
from asyncjob_worker.leases import heartbeat
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING
from asyncjob_worker.worker import Worker
from support.cluster.identities import Space
from support.in_memory.memory import memory_admin, memory_server
from support.objects.builders import job

JOBS_IN_ALL = 20
NAMESPACE = "work"


class Workplace:
    """A namespace in which a worker adds numbers, and how often it has done each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = memory_server()
        self.faults = ScriptedFaults()
        space = Space(NAMESPACE, memory_admin(self.server)).create()
        pod = space.worker("worker-0")
        connections = MemoryConnections(self.server, self.faults)
        undisturbed = MemoryAccess(MemoryConnections(self.server), self.server.admin_token)
        self._people = KubeSession(undisturbed, field_manager="people")
        access = MemoryAccess(connections, pod.client.token, NAMESPACE)

        async def same_access(*_: object) -> MemoryAccess:
            return access

        monkeypatch.setattr(heartbeat, "load_access", same_access)
        self.done = Counter[int]()
        self.session = KubeSession(access, field_manager="asyncjob-worker")
        holder = LeaseHolder("worker-0", pod.pod_uid, "worker-0/1")
        settings = Settings(concurrency=4, grace=5.0)
        self.worker = Worker(
            self._app(), settings, self.session, holder, metrics=Metrics(), tracing=NO_TRACING
        )

    def _app(self) -> WorkerApp:
        app = WorkerApp()

        @app.handler("test")
        async def add(_: Any, payload: Any) -> Any:
            self.done[payload] += 1
            await asyncio.sleep(0)
            return payload + 1

        return app

    def submit(self, number: int) -> None:
        body = job(f"j{number}", payload=number)
        self.server.create(collection_path(NAMESPACE, JOBS), body)

    def status(self, number: int) -> Any:
        return self.server.get(job_path(NAMESPACE, f"j{number}"))["status"]

    async def until_all_ended(self) -> None:
        async with asyncio.timeout(20), aclosing(self._changes()) as changes:
            async for _ in changes:
                if all(self.status(n)["phase"] == "Succeeded" for n in range(JOBS_IN_ALL)):
                    return

    def _changes(self) -> AsyncGenerator[WatchEvent]:
        return watch(self._people, collection_path(NAMESPACE, JOBS))


@pytest.fixture
async def workplace(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workplace]:
    made = Workplace(monkeypatch)
    running = asyncio.create_task(made.worker.run())
    yield made
    made.worker.stop()
    await running
    await made.session.close()


async def test_each_job_runs_once(workplace: Workplace) -> None:
    for number in range(JOBS_IN_ALL):
        workplace.submit(number)
    await workplace.until_all_ended()
    assert workplace.done == Counter(range(JOBS_IN_ALL))
    for number in range(JOBS_IN_ALL):
        status = workplace.status(number)
        assert (status["attempt"], status["result"]) == (1, number + 1)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(lost="after"),
        Fault(lost="before"),
        Fault(status=503),
        Fault(status=429, retry_after=0),
    ],
    ids=["lost after", "lost before", "503", "429"],
)
async def test_each_job_runs_once_where_answers_are_lost(
    workplace: Workplace, fault: Fault
) -> None:
    for number in range(0, JOBS_IN_ALL, 3):
        workplace.faults.add(fault, method="PATCH", path=f"/j{number}/status", times=2)
    for number in range(JOBS_IN_ALL):
        workplace.submit(number)
    await workplace.until_all_ended()
    assert workplace.done == Counter(range(JOBS_IN_ALL))


async def test_a_cut_watch_hides_no_job(workplace: Workplace) -> None:
    workplace.faults.add(Fault(breaks=True), path=f"/{JOBS}", events=True, times=1)
    for number in range(JOBS_IN_ALL):
        workplace.submit(number)
    await workplace.until_all_ended()
    assert workplace.done == Counter(range(JOBS_IN_ALL))
