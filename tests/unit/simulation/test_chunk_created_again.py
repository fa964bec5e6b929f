"""A chunk that is deleted before its operator has noted it, and created again: whose results count.

The operator dies between the creation of a reserved chunk and the write of its UID. The chunk runs,
stores its results, and is deleted. The next operator creates it again, under the same generation.
"""

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import WorkerApp
from asyncjob.client.results import StoredResults, item_results_of
from asyncjob.names import API_VERSION, ARRAYS, array_path, collection_path, job_path
from asyncjob.offload import AllowList
from asyncjob.rest.arrays import array_of
from asyncjob_simulation.actors import run_worker
from asyncjob_simulation.clocks import quiet
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.dice import Dice, FaultChooser
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.item_runs import ITEMS, ItemRuns, add_item_handlers
from asyncjob_simulation.item_store import RESULTS, MemoryStore, StoreRequests, offload_to
from asyncjob_simulation.network import Connections
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from asyncjob_simulation.story import Recorder
from asyncjob_worker.execution import object_store
from asyncjob_worker.settings import Settings

ARRAY: Final = array_path(NAMESPACE, "sums")
SPEC: Final[Object] = {
    "type": ITEMS,
    "queue": "lived",
    "items": {"count": 2},
    "chunkSize": 2,
    "results": {"uri": str(RESULTS)},
    "payload": {"pause": 1.5, "failing": [], "killing": []},
}


class ClusterWithStore(QuietCluster):
    """Its worker stores results in memory; its first operator dies as it has created a chunk."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, app_of)
        self.stored = MemoryStore()
        chooser = FaultChooser(Dice(seed), frozenset())
        self.requests = StoreRequests(self.loop, chooser, Recorder(self.loop))
        self.requests.recover()
        self.created: list[str] = []

    def array(self) -> Object:
        """Return the array."""
        found = self.find(ARRAY)
        assert found is not None
        return found

    async def _run_worker(self, app: WorkerApp, container: Any) -> int:
        settings = Settings(
            queue="lived", concurrency=2, park="always", offload=offload_to(self.stored)
        )
        return await run_worker(container, app, settings, self._accesses)

    def note(self, answer: Any, sender: str, method: str, path: str) -> None:
        """Kill the operator that has created the first chunk, before it gets the answer."""
        creates = sender.startswith("operator") and method == "POST" and path.endswith("/asyncjobs")
        if creates and answer.status == 201 and not self.created:
            self.created.append(path)
            self.stop(self.operators[0])


def app_of(calls: HandlerCalls) -> WorkerApp:
    app = WorkerApp()
    add_item_handlers(app, ItemRuns(calls, lambda _: None))
    return app


async def created_twice(cluster: QuietCluster) -> Object:
    """Return who ran the items that readers get, and the UIDs of both chunks."""
    assert isinstance(cluster, ClusterWithStore)
    body: Object = {"apiVersion": API_VERSION, "kind": "AsyncArray", "metadata": {"name": "sums"}}
    cluster.write("POST", collection_path(NAMESPACE, ARRAYS), {**body, "spec": SPEC})
    await until(lambda: cluster.stored.objects)
    ((name, first),) = cluster.jobs().items()
    cluster.write("DELETE", job_path(NAMESPACE, name))
    await asyncio.sleep(1.0)
    cluster.start(cluster.operators[0])
    await until(lambda: name in cluster.jobs())
    again = cluster.jobs()[name]["metadata"]["uid"]
    await until(lambda: cluster.array()["status"].get("phase") == "Succeeded")
    given = StoredResults(AllowList((RESULTS,)), cluster.stored)
    found: list[Any] = [
        one.result for one in item_results_of(array_of(cluster.array(), detailed=True), given)
    ]
    return {
        "read": [result["by"].partition("/")[0] for result in found],
        "generations": {one.rsplit("/", 1)[1].split("-")[0] for one in cluster.stored.objects},
        "first": first["metadata"]["uid"],
        "again": again,
    }


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(300.0):  # of virtual time
        while not holds():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.1)


def play(seed: int) -> Object:
    """Play the story in a cluster of its own."""
    cluster, carry = ClusterWithStore(seed), Connections.carry_out

    def carried(self: Connections, request: Any, call: Any, fault: Any) -> Any:
        answer = carry(self, request, call, fault)
        cluster.note(answer, self._process.name, call.method, call.path)
        return answer

    with (
        patch.object(object_store, "BoundedThreads", lambda _: cluster.requests),
        patch.object(Connections, "carry_out", carried),
    ):
        return cluster.run(created_twice)


@pytest.mark.parametrize("seed", range(1, 5))  # one UID or the other sorts first
def test_results_of_a_chunk_that_was_deleted_and_created_again_are_those_of_the_later_one(
    seed: int,
) -> None:
    with patch.object(sys, "unraisablehook", lambda _: None):
        end = play(seed)
        with quiet():
            gc.collect()
    assert end["generations"] == {"1"}
    assert end["again"] != end["first"]
    assert end["read"] == [end["again"]] * 2
