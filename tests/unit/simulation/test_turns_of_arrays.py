"""Arrays of one queue beside each other, in virtual time, with the real operator and worker.

The worker has four slots, three of which chunks may take. An older array has a hundred chunks that
take half a minute each; then a smaller one comes. Without turns its first chunk would wait for a
quarter of an hour, and it would get two chunks of a hundred.
"""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import ItemContext, JobContext, WorkerApp
from asyncjob.lifecycle.timestamps import seconds_between
from asyncjob.names import (
    API_VERSION,
    ARRAYS,
    QUEUES,
    array_path,
    collection_path,
    job_path,
    queue_path,
)
from asyncjob_simulation.clocks import quiet
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import SLOTS, Object, QuietCluster

CHUNK_SECONDS: Final = 30.0
CHUNK_SLOTS: Final = 3


class ItemTimes:
    """When the items of each array were begun, in seconds of the virtual clock."""

    def __init__(self) -> None:
        self.begun: list[tuple[float, str]] = []

    def app(self, _: HandlerCalls) -> WorkerApp:
        """Return the app whose item handler sleeps as the array says."""
        app = WorkerApp()

        @app.item_handler("nap")
        async def nap(job: ItemContext, _: Any) -> None:
            self.begun.append((asyncio.get_running_loop().time(), job.array))
            assert isinstance(job.payload, (int, float))
            await asyncio.sleep(job.payload)

        @app.handler("single")
        async def single(_: JobContext) -> None:
            await asyncio.sleep(1.0)

        return app

    def of(self, array: str, since: float = 0.0, until: float = float("inf")) -> list[float]:
        """Return when items of an array were begun."""
        return [at for at, one in self.begun if one == array and since <= at < until]


def play(story: Callable[[QuietCluster, ItemTimes], Awaitable[Object]]) -> Object:
    """Play a story in a cluster of its own."""
    times = ItemTimes()
    with patch.object(sys, "unraisablehook", lambda _: None):
        cluster = QuietCluster(1, times.app)
        end = cluster.run(lambda running: story(running, times))
        with quiet():
            del cluster
            gc.collect()
    return end


def create(
    cluster: QuietCluster, name: str, *, items: int, parallelism: int, nap: float, **spec: Any
) -> None:
    body: Object = {"apiVersion": API_VERSION, "kind": "AsyncArray", "metadata": {"name": name}}
    body["spec"] = {
        "type": "nap",
        "queue": "lived",
        "items": {"count": items},
        "parallelism": parallelism,
        "payload": nap,
        **spec,
    }
    assert cluster.write("POST", collection_path(NAMESPACE, ARRAYS), body)


def now() -> float:
    return asyncio.get_running_loop().time()


async def old_and_young(cluster: QuietCluster, times: ItemTimes) -> Object:
    """Run the older array for a while, then the younger one and a single job beside it."""
    given: Object = {"chunkSize": 1, "nap": CHUNK_SECONDS}
    create(cluster, "old", items=1000, parallelism=50, **given)
    await asyncio.sleep(70.0)
    created = now()
    create(cluster, "young", items=1000, parallelism=2, **given)
    cluster.submit("alone", "single")
    await asyncio.sleep(600.0)
    alone = cluster.find(job_path(NAMESPACE, "alone"))
    assert alone is not None
    return {
        "waited": times.of("young")[0] - created,
        "old": len(times.of("old", created)),
        "young": len(times.of("young", created)),
        "alone": alone["status"]["durationSeconds"] + created_to_start(alone),
    }


def created_to_start(job: Object) -> float:
    seconds = seconds_between(job["metadata"]["creationTimestamp"], job["status"]["firstStartTime"])
    assert seconds is not None
    return seconds


async def old_and_young_in_a_limited_queue(cluster: QuietCluster, times: ItemTimes) -> Object:
    cluster.put(
        "AsyncQueue", queue_path(NAMESPACE, "lived"), QUEUES, "lived", {"maxConcurrency": SLOTS}
    )
    await asyncio.sleep(5.0)
    return await old_and_young(cluster, times)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("story", "alone"),
    [
        (old_and_young, 3.0),
        # Its place in the queue is given to it once a chunk that has one ends.
        (old_and_young_in_a_limited_queue, CHUNK_SECONDS + 3.0),
    ],
    ids=["open queue", "limited queue"],
)
def test_a_smaller_array_waits_for_one_chunk_to_end_and_gets_its_share(
    story: Callable[[QuietCluster, ItemTimes], Awaitable[Object]], alone: float
) -> None:
    found = play(story)
    assert found["waited"] <= CHUNK_SECONDS + 1.0
    rounds = 600.0 / CHUNK_SECONDS
    assert found["old"] + found["young"] >= (rounds - 2) * CHUNK_SLOTS
    # It has no more than two chunks at a time, and each waits for a slot to be free.
    assert found["young"] >= 0.3 * (found["old"] + found["young"])
    assert found["old"] >= 0.3 * (found["old"] + found["young"])
    assert found["alone"] <= alone


async def without_a_chunk_size(cluster: QuietCluster, times: ItemTimes) -> Object:
    create(cluster, "adapts", items=3000, parallelism=3, nap=0.25)
    sizes: list[int] = []
    while True:
        array = cluster.find(array_path(NAMESPACE, "adapts"))
        assert array is not None
        status = array["status"]
        if status.get("chunkSize") not in {None, *sizes[-1:]}:
            sizes.append(status["chunkSize"])
        if status["phase"] == "Succeeded":
            assert len(times.of("adapts")) == 3000
            return {"sizes": sizes, "chunks": status["generation"], "spec": array["spec"]}
        await asyncio.sleep(0.5)


@pytest.mark.timeout(300)
def test_an_array_without_a_chunk_size_is_cut_into_chunks_of_half_a_minute() -> None:
    found = play(without_a_chunk_size)
    sizes = found["sizes"]
    assert "chunkSize" not in found["spec"]
    assert sizes[0] == 10
    assert all(after <= 4 * before for before, after in pairwise(sizes))
    assert 90 <= sizes[-1] <= 150  # a quarter of a second each
    # Of 3,000 items as few chunks as the start and the end allow.
    assert found["chunks"] <= 50
