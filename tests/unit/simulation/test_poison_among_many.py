"""One item of 10,000 ends its worker whenever it is run, in virtual time: it alone fails.

Operator, worker and the rules are the real ones; one worker has four slots, three of which chunks
may take, and is started again as a kubelet does.
"""

import asyncio
import gc
import sys
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import ItemContext, WorkerApp
from asyncjob.lifecycle.timestamps import seconds_between
from asyncjob.names import API_VERSION, ARRAYS, array_path, collection_path
from asyncjob_simulation.clocks import quiet
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.processes import current_process
from asyncjob_simulation.quiet_cluster import Object, QuietCluster

ITEMS: Final = 10_000
POISON: Final = 5_000
ITEM_SECONDS: Final = 0.02
MOST_SECONDS: Final = 60.0
"""By how much longer the array takes, at most, as docs/how-to/many-items.md has it."""

PATH: Final = array_path(NAMESPACE, "many")


def app_of(_: HandlerCalls) -> WorkerApp:
    app = WorkerApp()

    @app.item_handler("nap", concurrency=8)
    async def nap(job: ItemContext, number: int) -> None:
        await asyncio.sleep(ITEM_SECONDS)
        if number == job.payload:
            process = current_process()
            assert process is not None
            process.kill_after(1)
            await asyncio.sleep(float(ITEMS))

    return app


def play(poison: int | None, **spec: Any) -> tuple[float, Object]:
    """Return how long the array has taken, in virtual seconds, and its status."""

    async def story(cluster: QuietCluster) -> Object:
        body: Object = {"apiVersion": API_VERSION, "kind": "AsyncArray"}
        body["metadata"] = {"name": "many"}
        body["spec"] = {"type": "nap", "queue": "lived", "items": {"count": ITEMS}, **spec}
        body["spec"]["payload"] = -1 if poison is None else poison
        found: Object | None = cluster.write("POST", collection_path(NAMESPACE, ARRAYS), body)
        for _ in range(3600):
            if found and "completionTime" in found.get("status", {}):
                return found
            await asyncio.sleep(1.0)
            found = cluster.find(PATH)
        raise AssertionError(found)

    with patch.object(sys, "unraisablehook", lambda _: None):
        cluster = QuietCluster(1, app_of)
        end = cluster.run(story)
        with quiet():
            del cluster
            gc.collect()
    status = end["status"]
    seconds = seconds_between(end["metadata"]["creationTimestamp"], status["completionTime"])
    assert seconds is not None
    return seconds, status


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "spec",
    [{}, {"leaseDurationSeconds": 15, "retryPolicy": {"maxCrashes": 0}}],
    ids=["defaults", "short lease"],
)
def test_an_item_that_ends_its_worker_fails_alone_among_ten_thousand(spec: Object) -> None:
    undisturbed, status = play(None, **spec)
    assert (status["phase"], status["succeeded"]) == ("Succeeded", ITEMS)
    seconds, status = play(POISON, **spec)
    assert (status["phase"], status["succeeded"], status["failed"]) == ("Failed", ITEMS - 1, 1)
    assert status["failedItems"] == str(POISON)
    [error] = status["errors"]
    assert (error["item"], error["type"]) == (POISON, "Crash")
    assert seconds - undisturbed < MOST_SECONDS
