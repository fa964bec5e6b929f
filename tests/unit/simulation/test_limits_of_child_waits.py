"""Time limits around waits for children in virtual time: of the wait, of the attempt, by any clock.

Operator and worker are the real ones; the API server in memory enforces the rules.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from asyncjob import Fail, JobContext, WorkerApp
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import change, now, over, parked, played, stored, until

WRONG: Final = 600.0
"""Seconds by which clocks are off."""

ONCE: Final = {"maxRetries": 0, "initialDelaySeconds": 1, "maxDelaySeconds": 1}


class Family:
    """A parent that waits for one child; it takes and waits as long as the payload says."""

    def __init__(self) -> None:
        self.bodies = Counter[str]()

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str, seconds: float) -> None:
            self.bodies[key] += 1
            await asyncio.sleep(seconds)

        @app.handler("leaf")
        async def leaf(job: JobContext, seconds: float) -> float:
            self.bodies["child"] += 1
            await asyncio.sleep(seconds)
            return seconds

        @app.handler("parent")
        async def parent(job: JobContext, payload: dict[str, Any]) -> Any:
            await job.step("before", body, "before", 0)
            child = await job.submit("leaf", payload["child"], key="only")
            if payload.get("fails") and not self.bodies["failed"]:
                self.bodies["failed"] += 1
                raise Fail("for the first time")
            waiting = asyncio.ensure_future(job.gather(child, timeout=payload.get("timeout")))
            try:
                if busy := payload.get("busy"):
                    await job.step("busy", body, "busy", busy)  # holds up the park
                (view,) = await waiting
            except TimeoutError as error:
                raise Fail("the child is late") from error
            await job.step("after", body, "after", 0)
            return view.result

        return app


def child_of(status: Object) -> dict[str, str]:
    """Return the one child that a parked parent names."""
    ((child,),) = [one["children"] for one in status["waiting"]]
    return dict(child)


def test_a_redriven_parent_waits_again_for_a_child_that_is_open_and_its_limit_begins_again() -> (
    None
):
    family = Family()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload={"child": 100, "timeout": 60})
        child = child_of(await until(cluster, parked))
        late = await until(cluster, over, within=90)
        assert (late["phase"], late["message"]) == ("DeadLetter", "the child is late")
        assert stored(cluster, child["name"])["phase"] == "Running"
        assert change(cluster, redrive=1)
        assert child_of(await until(cluster, parked)) == child
        return await until(cluster, over)

    end = played(family.app, story)
    assert (end["phase"], end["result"], end.get("parks", 0)) == ("Succeeded", 100, 1)
    assert family.bodies == {"before": 1, "child": 1, "after": 1}


def test_a_parent_that_failed_before_it_waited_finds_its_open_child_after_a_redrive() -> None:
    family = Family()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload={"child": 60, "fails": True})
        assert (await until(cluster, over))["phase"] == "DeadLetter"
        assert change(cluster, redrive=1)
        child = child_of(await until(cluster, parked))
        assert stored(cluster, child["name"])["phase"] == "Running"
        return await until(cluster, over)

    end = played(family.app, story)
    assert (end["phase"], end["result"], end.get("parks", 0)) == ("Succeeded", 60, 1)
    assert family.bodies == {"before": 1, "child": 1, "failed": 1, "after": 1}


def test_the_time_limit_of_an_attempt_does_not_count_what_its_parent_is_parked() -> None:
    async def story(cluster: QuietCluster) -> Object:
        payload = {"child": 60}
        cluster.submit("job", "parent", payload=payload, executionTimeoutSeconds=5)
        return await until(cluster, over)

    end = played(Family().app, story)
    assert (end["phase"], end.get("parks", 0), end.get("retries", 0)) == ("Succeeded", 1, 0)


def test_the_time_limit_of_an_attempt_counts_a_wait_that_holds_its_slot() -> None:
    family = Family()

    async def story(cluster: QuietCluster) -> Object:
        payload = {"child": 60, "busy": 50}
        cluster.submit(
            "job", "parent", payload=payload, executionTimeoutSeconds=5, retryPolicy=ONCE
        )
        begun = now(cluster)
        end = await until(cluster, over)
        assert now(cluster) - begun < 15
        children = [one for name, one in cluster.jobs().items() if name != "job"]
        return {**end, "children": [one["status"]["phase"] for one in children]}

    end = played(family.app, story)
    assert (end["phase"], end.get("parks", 0), end["error"]["category"]) == (
        "DeadLetter",
        0,
        "Timeout",
    )
    assert "waiting" not in end
    assert end["children"] == ["Running"], "a parent's end leaves its children alone"
    assert family.bodies["after"] == 0


CLOCKS: Final[dict[str, Callable[[str], float]]] = {
    "worker fast, operator slow": lambda pod: -WRONG if "operator" in pod else WRONG,
    "worker slow, operator fast": lambda pod: WRONG if "operator" in pod else -WRONG,
    "both fast": lambda _: WRONG,
    "both slow": lambda _: -WRONG,
}


@pytest.mark.parametrize("clocks", CLOCKS)
def test_the_limit_of_a_wait_for_a_child_is_by_no_clock_of_theirs(clocks: str) -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("late", "parent", payload={"child": 900, "timeout": 120})
        cluster.submit("job", "parent", payload={"child": 90, "timeout": 120})
        begun = now(cluster)
        in_time = await until(cluster, over)
        assert 85 < now(cluster) - begun < 100
        late = await until(cluster, over, "late")
        assert 115 < now(cluster) - begun < 130
        return {"late": late, "in time": in_time}

    end = played(Family().app, story, wall_offset=CLOCKS[clocks])
    assert (end["in time"]["phase"], end["in time"]["result"]) == ("Succeeded", 90)
    assert (end["late"]["phase"], end["late"].get("parks", 0)) == ("DeadLetter", 1)
    assert "the child is late" in end["late"]["error"]["message"]
