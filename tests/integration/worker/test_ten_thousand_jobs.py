"""Ten thousand tiny jobs through one worker process: none lost, each once, and flat memory."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import pytest

from asyncjob.kube import KubeSession, load_access
from asyncjob.names import JOBS, collection_path
from support.processes.probes import Probes
from support.processes.workers import WorkerNamespace

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.soak,
    pytest.mark.timeout(600),
]

JOBS_IN_ALL = 10_000
PART = 1_000
CREATORS = 12
AHEAD = 300
"""So many jobs may wait, so that what is measured is not the size of the backlog."""

MOST_GROWTH = 4 * 2**20
"""1.2 to 1.8 MiB were measured, buffers that grow to their size once; what the worker holds of one
job and forgets to drop is several KiB, so that 9,000 of them would be tens of MiB."""


class Creation:
    """Creates jobs by several connections, never far ahead of the worker."""

    def __init__(self, ns: WorkerNamespace, session: KubeSession, probes: Probes) -> None:
        self._path = collection_path(ns.namespace, JOBS)
        self._session = session
        self._probes = probes
        self._numbers = count()
        self._created = 0
        self._room = asyncio.Event()
        self.done = 0
        self.resident: list[tuple[int, float]] = []

    async def run(self) -> None:
        """Create them all, and wait until the worker has reported them all."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look())
            for _ in range(CREATORS):
                group.create_task(self._create())

    async def _create(self) -> None:
        while (number := next(self._numbers)) < JOBS_IN_ALL:
            while number >= self.done + AHEAD:
                await self._room.wait()
            body: dict[str, Any] = {
                "apiVersion": "asyncjob.dev/v1alpha1",
                "kind": "AsyncJob",
                "metadata": {"name": f"j{number}"},
                "spec": {"type": "tiny"},
            }
            await self._session.create(self._path, body)

    async def _look(self) -> None:
        """See how far the worker is and how much memory it has, about five times a second."""
        while self.done < JOBS_IN_ALL:
            seen = await asyncio.to_thread(self._probes.metrics)
            self.done = int(seen.total("asyncjob_worker_jobs_finished_total", phase="Succeeded"))
            self.resident.append((self.done, seen.total("process_resident_memory_bytes")))
            self._room.set()
            self._room.clear()
            await asyncio.sleep(0.2)

    def most(self, start: int, end: int) -> float:
        """Return the most memory seen between two numbers of finished jobs."""
        return max(size for done, size in self.resident if start < done <= end)


async def test_memory_stays_flat_over_10000_jobs_and_each_runs_once(
    ns: WorkerNamespace, record_property: Any
) -> None:
    probes = Probes.on_free_port()
    worker = await asyncio.to_thread(ns.worker, "worker-0", "--concurrency=16", probes.option)
    async with AsyncExitStack() as stack:
        access = await load_access(str(ns.plane.kubeconfig), ns.namespace)
        session = await stack.enter_async_context(KubeSession(access, field_manager="test"))
        creation = Creation(ns, session, probes)
        await creation.run()
        found = Counter[tuple[str, int]]()
        async for job in session.list(collection_path(ns.namespace, JOBS)):
            status: Any = job["status"]
            found[status["phase"], status["attempt"]] += 1
    early, late = creation.most(0, PART), creation.most(JOBS_IN_ALL - PART, JOBS_IN_ALL)
    record_property("resident_bytes", [early, late])
    print(f"resident: {early / 2**20:.1f} → {late / 2**20:.1f} MiB")  # noqa: T201
    assert found == {("Succeeded", 1): JOBS_IN_ALL}
    runs = Counter(ns.trace("tiny"))
    assert (len(runs), runs.total()) == (JOBS_IN_ALL, JOBS_IN_ALL)
    assert late - early < MOST_GROWTH
    assert worker.process.running
