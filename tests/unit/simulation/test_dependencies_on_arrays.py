"""A job, an array and a job in a row, whose operator is killed at each of its writes.

Operator and worker are the real ones, in virtual time; the API server in memory enforces the rules.
Whichever write is the last of the operator: nothing starts before what it depends on has succeeded,
each item counts once, and all three succeed.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from datetime import UTC, datetime
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import ItemContext, JobContext, WorkerApp
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import ARRAY_KIND, ARRAYS, array_path, collection_path
from asyncjob_simulation.apiserver import Call, Fault
from asyncjob_simulation.clocks import EPOCH
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.network import Connections
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import over, played, stored, until

ARRAY: Final = array_path(NAMESPACE, "thumbs")
ITEMS: Final = 4
FIRST: Final = ["fetch", *["item"] * ITEMS, "report"]


def submit_array(cluster: QuietCluster, **spec: Any) -> None:
    body: Any = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": ARRAY_KIND,
        "metadata": {"name": "thumbs", "namespace": NAMESPACE},
        "spec": {
            "type": "item",
            "queue": "lived",
            "items": {"count": ITEMS},
            "chunkSize": 2,
            **spec,
        },
    }
    assert cluster.write("POST", collection_path(NAMESPACE, ARRAYS), body)


class Row:
    """The row of three, in which the operator is killed at one write, or at none."""

    def __init__(self, number: int | None = None, lost: str = "after") -> None:
        self.number, self.lost = number, lost
        self.writes = list[str]()
        self.order = list[str]()
        self.array: Any = None
        self.is_killed = False
        self._is_begun = False

    def app(self, _: HandlerCalls) -> WorkerApp:
        made = WorkerApp()

        @made.handler("fetch")
        async def fetch(_: JobContext) -> None:
            await asyncio.sleep(5)
            self.order.append("fetch")

        @made.item_handler("item")
        async def item(_: ItemContext, number: int) -> None:
            await asyncio.sleep(3)
            self.order.append("item")

        @made.handler("report")
        async def report(_: JobContext) -> None:
            self.order.append("report")

        return made

    def run(self) -> Object:
        """Return the status of the last one at the end."""

        async def story(cluster: QuietCluster) -> Object:
            with self._killed(cluster):
                self._is_begun = True
                cluster.submit("job", "report", payload=None, dependsOn=[{"array": "thumbs"}])
                submit_array(cluster, dependsOn=[{"name": "fetch"}])
                cluster.submit("fetch", "fetch", payload=None)
                end = await until(cluster, over, within=900)
                self.array = cluster.find(ARRAY)
                return end

        return played(self.app, story)

    @contextmanager
    def _killed(self, cluster: QuietCluster) -> Iterator[None]:
        judge = Connections.judge

        def judged(connections: Connections, call: Call) -> Fault:
            usual, process = judge(connections, call), connections._process
            counts = call.is_write and "/asyncjob.dev/" in call.path
            if not (self._is_begun and process.name.startswith("operator") and counts):
                return usual
            self.writes.append(f"{call.method} {call.path}")
            if self.is_killed or len(self.writes) - 1 != self.number:
                return usual
            self.is_killed = True
            cluster.loop.call_soon(process.kill, context=Context())
            return Fault(usual.before, float("inf"), lost=self.lost)  # type: ignore[arg-type]

        with patch.object(Connections, "judge", judged):
            yield


@pytest.mark.timeout(600)
def test_whichever_write_is_the_operators_last_each_waits_for_the_one_before() -> None:
    undisturbed = Row()
    undisturbed.run()
    assert undisturbed.order == FIRST
    assert any(write.endswith("/thumbs/status") for write in undisturbed.writes)
    for number in range(len(undisturbed.writes)):
        for lost in ("before", "after"):
            row = Row(number, lost)
            end = row.run()
            where = (undisturbed.writes[number], lost, row.order, end)
            assert row.is_killed, where
            assert end["phase"] == "Succeeded", where
            assert row.order == FIRST, where
            status = row.array["status"]
            assert (status["succeeded"], status["admitted"]) == (ITEMS, True), where


def test_an_array_waits_for_its_time_through_a_restart_of_the_operator() -> None:
    row = Row()

    async def story(cluster: QuietCluster) -> Object:
        at = datetime.fromtimestamp(EPOCH + cluster.loop.time() + 60.0, UTC)
        submit_array(cluster, notBefore=format_timestamp(at))
        cluster.submit("job", "report", payload=None, dependsOn=[{"array": "thumbs"}])
        await asyncio.sleep(20)
        cluster.restart_operator()
        await asyncio.sleep(30)
        held: Any = cluster.find(ARRAY)
        assert (held["status"]["phase"], held["status"]["reason"]) == ("Pending", "NotBefore")
        assert stored(cluster)["message"] == "waiting for array thumbs"
        return await until(cluster, over, within=600)

    assert played(row.app, story)["phase"] == "Succeeded"
    assert row.order == FIRST[1:]


def test_a_job_waits_on_for_an_array_that_is_deleted_and_created_again() -> None:
    row = Row()

    async def story(cluster: QuietCluster) -> Object:
        submit_array(cluster, suspend=True)
        cluster.submit("job", "report", payload=None, dependsOn=[{"array": "thumbs"}])
        await asyncio.sleep(5)
        cluster.write("DELETE", ARRAY)
        await asyncio.sleep(5)
        assert stored(cluster)["message"] == "waiting for array thumbs (does not exist)"
        submit_array(cluster)
        return await until(cluster, over, within=600)

    assert played(row.app, story)["phase"] == "Succeeded"
    assert row.order == FIRST[1:]
