"""A drain, or a cancel, while a handler is about to park, parks, or tidies up as it parks.

Operator and worker are the real ones, in virtual time. Release and park are both writes of the
holder, each on condition that it still holds the job: one of them is stored, and nothing is lost.
"""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.lifecycle.waits import WaitKind
from asyncjob.names import job_path
from asyncjob_simulation.actors import run_worker
from asyncjob_simulation.clocks import quiet
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from asyncjob_worker.settings import Settings
from support.driven.waiting_jobs import SENDER, change

GRACE: Final = 30.0
BODY: Final = 0.2
TIDY: Final = 2.0
MOMENTS: Final = (0.1, 0.2, 0.21, 0.22, 0.25, 0.5, 2.0, 2.2, 2.21, 2.22, 2.25, 4.0, 6.0, 9.0)
"""Seconds after the handler has begun: in the body, as it is stored, at the park, in `finally`, as
the park is written, and after it."""

ENDS: Final = {"Succeeded", "DeadLetter", "Cancelled"}


class ImpatientWorkers(QuietCluster):
    """A cluster whose workers stop their handlers as soon as they drain."""

    async def _run_worker(self, app: Any, container: Any) -> int:
        settings = Settings(queue="lived", concurrency=4, park="always", grace=0.0)
        return await run_worker(container, app, settings, self._accesses)


class Sleeper:
    """A handler that takes a step, waits for a minute or longer, and takes another."""

    def __init__(
        self, tidy: float, kind: WaitKind = WaitKind.SLEEP, *, is_stubborn: bool = False
    ) -> None:
        self.tidy = tidy
        self.kind = kind
        self.is_stubborn = is_stubborn
        self.begun = asyncio.Event()
        self.bodies = Counter[str]()
        self.left = 0
        self.tidied = 0

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str) -> str:
            await asyncio.sleep(BODY)
            self.bodies[key] += 1
            return key

        @app.handler("sleeper")
        async def sleeper(job: JobContext, _: Any) -> str:
            self.begun.set()
            try:
                await job.step("before", body, "before")
                await self.wait(job)
            finally:
                self.left += 1
                await self.tidy_up()
                self.tidied += 1
            return await job.step("after", body, "after")

        @app.handler("child")
        async def child(_job: JobContext, _: Any) -> None:
            await asyncio.sleep(60)

        return app

    async def wait(self, job: JobContext) -> None:
        """Wait for a time, a signal or a child."""
        match self.kind:
            case WaitKind.SLEEP:
                await job.sleep("nap", minutes=1)
            case WaitKind.SIGNAL:
                await job.signal("go", str)
            case WaitKind.CHILDREN:
                await (await job.submit("child", None, key="child")).wait()

    async def tidy_up(self) -> None:
        """Take as long as that takes; who is stubborn goes on though it is stopped."""
        ends_at = asyncio.get_running_loop().time() + self.tidy
        while (left := ends_at - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if not self.is_stubborn:
                    raise


def drain(cluster: QuietCluster) -> None:
    """Have the worker end."""
    cluster.cluster.evict(cluster.worker, GRACE)


def cancel(cluster: QuietCluster) -> None:
    """Cancel the job."""
    assert change(cluster, "nap", cancel=True)


def drained(
    moment: float, sleeper: Sleeper, disturb: Callable[[QuietCluster], None] = drain
) -> tuple[Object, Object]:
    """Disturb it so long after the handler began; return what came of that, and the end."""

    async def story(cluster: QuietCluster) -> Object:
        async def until(is_met: Callable[[Object], bool], pause: float) -> Object:
            for _ in range(7200):
                found = cluster.find(job_path(NAMESPACE, "nap"))
                assert found is not None
                if is_met(found["status"]):
                    return dict(found["status"])
                await asyncio.sleep(pause)
            raise AssertionError(cluster.find(job_path(NAMESPACE, "nap")))

        cluster.submit("nap", "sleeper")
        await sleeper.begun.wait()
        await asyncio.sleep(moment)
        disturb(cluster)
        after = await until(lambda status: status["phase"] != "Running", 0.01)
        if sleeper.kind is WaitKind.SIGNAL and disturb is drain:
            await until(lambda status: bool(status.get("parks", 0)), 0.1)
            assert change(cluster, "nap", signals={"go": {"payload": "go", "sentBy": SENDER}})
        return {"after": after, "end": await until(lambda status: status["phase"] in ENDS, 1.0)}

    with patch.object(sys, "unraisablehook", lambda _: None):
        cluster = ImpatientWorkers(1, sleeper.app)
        told = cluster.run(story)
        with quiet():
            sleeper.begun = asyncio.Event()  # the one of that loop would keep all of it alive
            del cluster
            gc.collect()
    return told["after"], told["end"]


@pytest.mark.parametrize(
    ("tidy", "kind"),
    [
        *((0.0, kind) for kind in WaitKind),
        (TIDY, WaitKind.SLEEP),
        pytest.param(TIDY, WaitKind.SIGNAL, marks=pytest.mark.soak),
        pytest.param(TIDY, WaitKind.CHILDREN, marks=pytest.mark.soak),
    ],
)
def test_the_park_or_the_release_is_stored_and_nothing_is_lost(tidy: float, kind: WaitKind) -> None:
    seen = Counter[str]()
    for moment in MOMENTS:
        sleeper = Sleeper(tidy, kind)
        after, end = drained(moment, sleeper)
        parks, releases = after.get("parks", 0), after.get("releases", 0)
        assert parks + releases == 1, moment
        assert ("waiting" in after) == bool(parks), moment
        is_kept = bool(parks) and kind is WaitKind.SLEEP
        assert ("nap" in after.get("waits", {})) == is_kept, moment
        seen["park" if parks else "release"] += 1

        assert (end["phase"], end["result"], end.get("parks", 0)) == ("Succeeded", "after", 1), (
            moment
        )
        assert (end.get("releases", 0), end.get("retries", 0), end.get("crashes", 0)) == (
            releases,
            0,
            0,
        ), moment
        assert end["steps"].keys() == {"after", "before"}, moment
        assert sleeper.bodies == {"before": 1, "after": 1}, moment
        assert sleeper.left == end["attempt"], "`finally` runs in each attempt"
    assert min(seen["park"], seen["release"]) >= 2, seen


@pytest.mark.parametrize(
    ("tidy", "kind"), [*((TIDY, kind) for kind in WaitKind), (0.0, WaitKind.SIGNAL)]
)
def test_a_cancel_at_whichever_moment_of_a_park_ends_the_job_and_finally_runs(
    tidy: float, kind: WaitKind
) -> None:
    parks = Counter[int]()
    for moment in MOMENTS:
        sleeper = Sleeper(tidy, kind)
        _, end = drained(moment, sleeper, cancel)
        parks[end.get("parks", 0)] += 1
        assert (end["phase"], end["reason"]) == ("Cancelled", "CancelRequested"), moment
        assert "waiting" not in end, moment
        assert "lease" not in end, moment
        assert (end.get("retries", 0), end.get("crashes", 0), end.get("releases", 0)) == (
            0,
            0,
            0,
        ), moment
        assert sleeper.left == end["attempt"] == 1, moment
        assert not sleeper.bodies["after"], moment
    assert min(parks[0], parks[1]) >= 2, parks


def test_a_finally_that_is_stopped_by_the_drain_releases_the_job() -> None:
    sleeper = Sleeper(TIDY)
    after, end = drained(BODY + TIDY / 2, sleeper)
    assert (after["phase"], after["reason"]) == ("Queued", "Released")
    assert sleeper.left - sleeper.tidied == 1
    assert (end["phase"], end["attempt"]) == ("Succeeded", 3)


@pytest.mark.parametrize("tidy", [4.0, 60.0])
def test_a_finally_that_goes_on_though_it_is_stopped_costs_no_retry(tidy: float) -> None:
    """It ends within the time that a stopped handler has, or with its process."""
    sleeper = Sleeper(tidy, is_stubborn=True)
    after, end = drained(BODY + 0.5, sleeper)
    assert (after.get("parks", 0), after.get("releases", 0)) == (0, 1)
    assert after["reason"] == ("Released" if tidy < 5 else "WorkerGone")
    assert sleeper.bodies == {"before": 1, "after": 1}
    assert (end["phase"], end.get("retries", 0), end.get("crashes", 0)) == ("Succeeded", 0, 0)
