"""Ten thousand jobs whose labels say one shard: a shard is a hint, and all workers take part."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession, load_access
from asyncjob.names import JOBS, SHARD_LABEL, collection_path, queue_path
from support.driven.crews import Crews, crews_of
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(600)]

JOBS_IN_ALL: Final = 10_000
CREATORS: Final = 16
CREWS, SIZE = 4, 2
"""Processes, and workers in each: more than from which on shards are shared out."""

NAP_SECONDS: Final = 0.05
FAIR_SHARE: Final = JOBS_IN_ALL // CREWS // 4
"""A quarter of what each process would do if they were equal."""


@pytest.fixture
def crews(ns: WorkerNamespace) -> Iterator[Crews]:
    with crews_of(ns) as prepared:
        for _ in range(CREWS):
            prepared.start(SIZE, concurrency=2)
        prepared.until_assigned()
        yield prepared


async def create_all(session: KubeSession, namespace: str) -> None:
    numbers = itertools.count()

    async def create() -> None:
        while (number := next(numbers)) < JOBS_IN_ALL:
            body: JsonObject = {
                "apiVersion": "asyncjob.dev/v1alpha1",
                "kind": "AsyncJob",
                "metadata": {"name": f"j{number}", "labels": {SHARD_LABEL: "7"}},
                "spec": {"type": "nap", "payload": NAP_SECONDS},
            }
            await session.create(collection_path(namespace, JOBS), body)

    async with asyncio.TaskGroup() as group:
        for _ in range(CREATORS):
            group.create_task(create())


async def phases(session: KubeSession, namespace: str) -> Counter[tuple[str, int]]:
    """Return how many jobs are in which phase, at which attempt."""
    found = Counter[tuple[str, int]]()
    async for job in session.list(collection_path(namespace, JOBS)):
        status: Any = job["status"]
        found[status["phase"], status["attempt"]] += 1
    return found


async def test_10000_jobs_in_one_shard_are_done_once_each_and_by_all_workers(
    ns: WorkerNamespace, crews: Crews
) -> None:
    await asyncio.to_thread(ns.queue, "default", paused=True)
    access = await load_access(str(ns.plane.kubeconfig), ns.namespace)
    async with KubeSession(access, field_manager="test") as session:
        await create_all(session, ns.namespace)
        body: JsonObject = {"spec": {"paused": False}}
        await session.merge_patch(queue_path(ns.namespace, "default"), body)

        def all_done() -> bool:
            return crews.total("finished") == JOBS_IN_ALL

        await asyncio.to_thread(until, all_done, 400.0, lambda: str(crews.total("finished")))
        assert await phases(session, ns.namespace) == {("Succeeded", 1): JOBS_IN_ALL}
    won = sorted(crew.counts()["won"] for crew in crews.running)
    # Owner and deputy of the shard are in two processes at most; the others find it by looks.
    assert won[0] > FAIR_SHARE, won
    assert sum(won) == JOBS_IN_ALL
