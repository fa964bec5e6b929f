"""A handler that waits for an array, whose worker or operator is killed at each of its requests.

Operator and worker are the real ones, in virtual time; the API server in memory enforces the rules.
Whichever request is the last of a process: there is one array, each item counts once, the handler
learns how it ended, and the job succeeds. An array that is deleted meanwhile, seen or not, is
submitted again.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import ItemContext, JobContext, RetryPolicy, WorkerApp
from asyncjob.names import ARRAYS, array_path, collection_path, job_path
from asyncjob_simulation.apiserver import Call, Fault
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.network import Connections
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import change, over, parked, played, stored, until

PATH: Final = job_path(NAMESPACE, "job")
COLLECTION: Final = collection_path(NAMESPACE, ARRAYS)
ITEMS: Final = 6
SOON: Final = {"maxRetries": 0, "maxCrashes": 2, "initialDelaySeconds": 1, "maxDelaySeconds": 1}
QUICK: Final = RetryPolicy(max_crashes=2, initial_delay_seconds=1, max_delay_seconds=1)


def app(_: HandlerCalls) -> WorkerApp:
    made = WorkerApp()

    @made.item_handler("item")
    async def item(_: ItemContext, number: int) -> None:
        await asyncio.sleep(4)

    @made.handler("album")
    async def album(job: JobContext, seconds: float | None) -> list[Any]:
        array = await job.map("item", ITEMS, chunk_size=3, parallelism=1, retry=QUICK)
        try:
            view = await array.wait(timeout=seconds)
        except TimeoutError:
            return ["late"]
        return [view.phase, view.items.total, view.items.succeeded, view.items.failed]

    return made


def arrays(cluster: QuietCluster) -> list[Object]:
    return [
        dict(one)
        for one in cluster.cluster.network.server.storage.collection(
            ("asyncjob.dev", ARRAYS)
        ).objects.values()
    ]


class Story:
    """The life of a job and its array, in which a process is killed at one request, or at none."""

    def __init__(self, role: str, number: int | None = None, lost: str = "after") -> None:
        self.role, self.number, self.lost = role, number, lost
        self.requests = list[str]()
        self.arrays = list[Object]()
        self.is_killed = False
        self._is_begun = False

    def run(self) -> Object:
        """Return the status at the end."""

        async def story(cluster: QuietCluster) -> Object:
            with self._killed(cluster):
                self._is_begun = True
                cluster.submit("job", "album", payload=None, retryPolicy=SOON)
                end = await until(cluster, over, within=600)
                self.arrays = arrays(cluster)
                return end

        return played(app, story)

    @contextmanager
    def _killed(self, cluster: QuietCluster) -> Iterator[None]:
        judge = Connections.judge

        def judged(connections: Connections, call: Call) -> Fault:
            usual, process = judge(connections, call), connections._process
            if not (self._is_begun and process.name.startswith(self.role) and self._counts(call)):
                return usual
            self.requests.append(f"{call.method} {call.path}")
            if self.is_killed or len(self.requests) - 1 != self.number:
                return usual
            self.is_killed = True
            cluster.loop.call_soon(process.kill, context=Context())
            return Fault(usual.before, float("inf"), lost=self.lost)  # type: ignore[arg-type]

        with patch.object(Connections, "judge", judged):
            yield

    def _counts(self, call: Call) -> bool:
        """Return whether it is about the parent or the array; of an operator each write is."""
        if call.is_watch:
            return False
        if self.role == "operator":
            return call.is_write and "/asyncjob.dev/" in call.path
        return call.path.startswith(PATH) or "/asyncarrays" in call.path


def check(story: Story, end: Object) -> None:
    where = (story.role, story.number, story.lost, end)
    assert end["phase"] == "Succeeded", where
    assert end["result"] == ["Succeeded", ITEMS, ITEMS, 0], where
    assert end["attempt"] == 1 + end.get("parks", 0) + end.get("crashes", 0), where
    [array] = story.arrays
    status = array["status"]
    assert (status["succeeded"], status["failed"], status["next"]) == (ITEMS, 0, ITEMS), where


@pytest.mark.timeout(600)
@pytest.mark.parametrize("role", ["worker", "operator"])
def test_whichever_request_is_the_last_there_is_one_array_whose_end_the_job_learns(
    role: str,
) -> None:
    undisturbed = Story(role)
    end = undisturbed.run()
    check(undisturbed, end)
    assert (end.get("parks", 0), end.get("crashes", 0)) == (1, 0)
    crashes = Counter[int]()
    for number in range(len(undisturbed.requests)):
        for lost in ("before", "after"):
            story = Story(role, number, lost)
            end = story.run()
            assert story.is_killed, undisturbed.requests[number]
            check(story, end)
            crashes[end.get("crashes", 0)] += 1
    assert set(crashes) <= ({0} if role == "operator" else {0, 1}), crashes
    assert crashes[0] > 0


async def until_parked(cluster: QuietCluster, payload: float | None = None) -> str:
    """Submit the job, and return the name of the array that it is parked for."""
    cluster.submit("job", "album", payload=payload, retryPolicy=SOON)
    status = await until(cluster, parked, step=0.1)
    return str(status["waiting"][0]["children"][0]["name"])


def test_an_array_that_is_deleted_is_submitted_again_and_is_looked_after() -> None:
    async def story(cluster: QuietCluster) -> Object:
        name = await until_parked(cluster)
        [first] = arrays(cluster)
        cluster.write("DELETE", array_path(NAMESPACE, name))
        end = await until(cluster, over, within=600)
        [second] = arrays(cluster)
        assert second["metadata"]["name"] == name
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        return end

    end = played(app, story)
    assert (end["result"], end.get("parks", 0)) == (["Succeeded", ITEMS, ITEMS, 0], 2)


@pytest.mark.parametrize(
    ("disturb", "phase", "result"),
    [
        pytest.param({"suspend": True}, "Succeeded", ["Succeeded", ITEMS, ITEMS, 0], id="suspend"),
        pytest.param({"cancel": True}, "Cancelled", None, id="cancel"),
        pytest.param({"cancel": True, "cancelCascade": True}, "Cancelled", None, id="cascade"),
    ],
)
def test_control_fields_while_a_job_waits_for_an_array(
    disturb: dict[str, Any], phase: str, result: Any
) -> None:
    async def story(cluster: QuietCluster) -> Object:
        name = await until_parked(cluster)
        assert change(cluster, **disturb)
        if "suspend" in disturb:
            await asyncio.sleep(120)
            held = stored(cluster)
            assert (held["phase"], held["reason"]) == ("Pending", "Suspended")
            assert change(cluster, suspend=False)
        end = await until(cluster, over, within=600)
        await asyncio.sleep(120)
        found: Any = cluster.find(array_path(NAMESPACE, name))
        ended = "Cancelled" if "cancelCascade" in disturb else "Succeeded"
        assert found["status"]["phase"] == ended
        return end

    end = played(app, story)
    assert (end["phase"], end.get("result")) == (phase, result)


@pytest.mark.parametrize("offset", [0.0, 600.0, -600.0], ids=["right", "fast", "slow"])
def test_the_limit_of_a_wait_for_an_array_is_kept_however_wrong_clocks_are(offset: float) -> None:
    async def story(cluster: QuietCluster) -> Object:
        await until_parked(cluster, 8.0)
        return await until(cluster, over, within=600)

    def wall_offset(pod: str) -> float:
        return offset if pod.startswith("operator") else -offset

    end = played(app, story, wall_offset=wall_offset)
    assert (end["result"], end.get("parks", 0)) == (["late"], 1)


def test_a_redriven_job_finds_the_array_that_was_redriven_before_it() -> None:
    failing = {2}

    def failing_app(calls: HandlerCalls) -> WorkerApp:
        made = WorkerApp()

        @made.item_handler("item")
        async def item(_: ItemContext, number: int) -> None:
            if number in failing:
                raise ValueError(number)

        @made.handler("album")
        async def album(job: JobContext) -> int:
            array = await job.map("item", ITEMS, item_retries=0)
            return (await array.wait(check=True)).items.succeeded

        return made

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "album", retryPolicy=SOON)
        dead = await until(cluster, over, within=600)
        assert dead["phase"] == "DeadLetter"
        assert "ended as Failed" in dead["error"]["message"]
        [array] = arrays(cluster)
        failing.clear()
        path = array_path(NAMESPACE, array["metadata"]["name"])
        cluster.write("PATCH", path, {"spec": {"redrive": 1}})
        await asyncio.sleep(60)
        assert change(cluster, redrive=1)
        await asyncio.sleep(1)
        return await until(cluster, over, within=600)

    end = played(failing_app, story)
    assert (end["phase"], end["result"]) == ("Succeeded", ITEMS)
