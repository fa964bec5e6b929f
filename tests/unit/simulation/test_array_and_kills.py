"""An array whose operator is killed at each of its writes, in virtual time.

Operator, worker and the rules are the real ones. Whatever write is the operator's last, whether it
arrives or not: a successor of another name finishes the array, each item counts once, and no chunk
is left.
"""

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import WorkerApp
from asyncjob.names import API_VERSION, ARRAYS, array_path, collection_path
from asyncjob_simulation.apiserver import Call, Fault
from asyncjob_simulation.array_rules import ENDED, ArrayRules
from asyncjob_simulation.clocks import quiet
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.item_runs import ITEMS, ItemRuns, add_item_handlers
from asyncjob_simulation.network import Connections
from asyncjob_simulation.quiet_cluster import Object, QuietCluster

PATH: Final = array_path(NAMESPACE, "sums")
LATE_SECONDS: Final = 4.0
"""A late write arrives when its sender has long been dead, and its successor is there."""

HEALTHY: Final[Object] = {"pause": 0.1, "failing": [], "killing": []}


class Story:
    """An array's life, in which the operator is killed at one of its writes, or at none."""

    def __init__(self, payload: Object, change: Object | None = None) -> None:
        self._payload = payload
        self._change = change
        self.writes = 0
        self.broken: list[tuple[str, str, str]] = []

    def run(self, number: int | None = None, lost: str = "after") -> Object:
        self.writes = 0
        with patch.object(sys, "unraisablehook", lambda _: None):
            cluster = QuietCluster(1, self._app)
            with self._killed_at(number, lost):
                end = cluster.run(self._play)
            self.broken += self._runs.calls.problems
            with quiet():
                del cluster
                gc.collect()
        return end

    def _app(self, calls: HandlerCalls) -> WorkerApp:
        app = WorkerApp()
        self._runs = ItemRuns(calls, lambda _: None)
        add_item_handlers(app, self._runs)
        return app

    @contextmanager
    def _killed_at(self, number: int | None, lost: str) -> Iterator[None]:
        judge = Connections.judge

        def judged(connections: Connections, call: Call) -> Fault:
            usual, process = judge(connections, call), connections._process
            if not is_of_arrays(call) or not process.name.startswith("operator"):
                return usual
            self.writes += 1
            if self.writes - 1 != number:
                return usual
            asyncio.get_running_loop().call_later(0.05, process.kill)
            if lost == "late":
                return Fault(LATE_SECONDS, usual.after, lost="late")
            return Fault(usual.before, float("inf"), lost=lost)  # type: ignore[arg-type]

        with patch.object(Connections, "judge", judged):
            yield

    async def _play(self, cluster: QuietCluster) -> Object:
        server, runs = cluster.cluster.server, self._runs
        self.rules = ArrayRules(server, runs, lambda _: None, lambda *one: self.broken.append(one))
        runs.is_counted = self.rules.is_counted
        spec: Object = {
            "type": ITEMS,
            "queue": "lived",
            "items": {"count": 7},
            "chunkSize": 3,
            # What ends its worker would end the chunk beside it, too, and that may not crash.
            "parallelism": 1 if self._payload["killing"] else 2,
            "itemRetries": 0,
            "leaseDurationSeconds": 5,
            "retryPolicy": {"maxCrashes": 0, "maxRetries": 0, "initialDelaySeconds": 0},
            "payload": self._payload,
        }
        body = {"apiVersion": API_VERSION, "kind": "AsyncArray", "metadata": {"name": "sums"}}
        cluster.write("POST", collection_path(NAMESPACE, ARRAYS), {**body, "spec": spec})
        if self._change:
            await asyncio.sleep(0.4)
            self._ask(cluster, self._change)
        return await self._until_ended(cluster)

    def _ask(self, cluster: QuietCluster, spec: Object) -> None:
        cluster.write("PATCH", PATH, {"spec": spec})

    async def _until_ended(self, cluster: QuietCluster) -> Object:
        for _ in range(600):
            self.rules.look()
            if not [*self.rules.unfinished()] and not [*self.rules.left()]:
                break
            await asyncio.sleep(0.5)
        found = cluster.find(PATH)
        assert found is not None
        return {**found["status"], "left": [*self.rules.left()]}


def is_of_arrays(call: Call) -> bool:
    """Return whether a request writes an array or a chunk of one: nothing else is here."""
    return call.is_write and any(name in call.path for name in ("/asyncarrays", "/asyncjobs"))


LIVES: Final[dict[str, Any]] = {
    "all items succeed": (HEALTHY, None, "Succeeded", 7, ""),
    "some fail": ({**HEALTHY, "failing": [2, 6]}, None, "Failed", 5, "2,6"),
    "one ends its worker": ({**HEALTHY, "killing": [4]}, None, "Failed", 6, "4"),
    "it is cancelled": ({**HEALTHY, "pause": 2.0}, {"cancel": True}, "Cancelled", None, ""),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LIVES)
@pytest.mark.parametrize(
    "every", [7, pytest.param(1, marks=pytest.mark.soak)], ids=["some writes", "each write"]
)
def test_whatever_write_is_the_operators_last_each_item_counts_once(name: str, every: int) -> None:
    payload, change, phase, succeeded, failed = LIVES[name]
    undisturbed = Story(payload, change)
    ends = [undisturbed.run()]
    assert undisturbed.writes > 5
    deaths = list(product(range(undisturbed.writes), ("before", "after", "late")))
    for number, lost in deaths[::every]:
        story = Story(payload, change)
        ends.append(story.run(number, lost))
        assert story.broken == [], (number, lost)
    for end in ends:
        assert end["phase"] in ENDED
        assert (end["phase"], end.get("failedItems", ""), end["left"]) == (phase, failed, []), end
        if succeeded is not None:
            assert end["succeeded"] == succeeded
