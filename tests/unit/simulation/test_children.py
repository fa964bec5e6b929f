"""Handlers that wait for child jobs without a slot, in virtual time: what may come in between.

Operator and worker are the real ones; the API server in memory enforces the rules.
"""

import asyncio
from collections import Counter
from typing import Any

import pytest

from asyncjob import Fail, JobContext, WorkerApp
from asyncjob.app.errors import ChildGoneError
from asyncjob.names import job_path
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import SLOTS, Object, QuietCluster
from support.driven.waiting_jobs import SOON, change, over, parked, played, stored, until


class Families:
    """Parents that submit children and gather them; a child takes as long as its payload says."""

    def __init__(self) -> None:
        self.bodies = Counter[str]()

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str) -> str:
            self.bodies[key] += 1
            return key

        @app.handler("leaf")
        async def leaf(job: JobContext, payload: Any) -> Any:
            self.bodies[job.name] += 1
            await asyncio.sleep(payload)
            if payload == 7:  # what the stories ask for
                raise Fail("no")
            return payload

        @app.handler("parent")
        async def parent(job: JobContext, payload: list[Any]) -> Any:
            await job.step("before", body, f"{job.name} before")
            children = [
                await job.submit("leaf", seconds, key=str(number))
                for number, seconds in enumerate(payload)
            ]
            try:
                views = await job.gather(*children)
            except ChildGoneError:
                return "gone"
            await job.step("after", body, f"{job.name} after")
            return [view.result if view.succeeded else view.phase for view in views]

        @app.handler("parent-of-many")
        async def parent_of_many(job: JobContext, payload: list[Any]) -> Any:
            children = [
                await job.submit("leaf", seconds, key=str(number))
                for number, seconds in enumerate(payload)
            ]
            views = await asyncio.gather(*[child.wait() for child in children])
            return [view.result for view in views]

        return app


def test_more_parents_than_slots_wait_for_their_children_and_all_end() -> None:
    families = Families()
    names = ["job", *(f"job-{number}" for number in range(SLOTS * 3))]

    async def story(cluster: QuietCluster) -> Object:
        for name in names:
            cluster.submit(name, "parent", payload=[3, 3, 3])
        for name in names:
            await until(cluster, over, name)
        return {name: stored(cluster, name) for name in names}

    ends = played(families.app, story)
    assert {end["phase"] for end in ends.values()} == {"Succeeded"}
    assert all(end.get("parks", 0) >= 1 for end in ends.values())
    assert [entry["phase"] for entry in ends["job"]["history"]] == ["Succeeded"]
    assert all(families.bodies[f"{name} before"] == 1 for name in names)
    assert all(families.bodies[f"{name} after"] == 1 for name in names)


def test_parents_with_more_single_waits_than_a_job_names_leave_the_slots_to_their_children() -> (
    None
):
    names = ["job", *(f"job-{number}" for number in range(SLOTS - 1))]

    async def story(cluster: QuietCluster) -> Object:
        for name in names:
            cluster.submit(name, "parent-of-many", payload=[3] * 25)
        waiting = await until(cluster, parked)
        assert len(waiting["waiting"]) == 20
        return {name: await until(cluster, over, name) for name in names}

    for end in played(Families().app, story).values():
        assert (end["phase"], end["result"]) == ("Succeeded", [3] * 25)


def test_a_parked_parent_names_its_unfinished_children_and_its_end_is_theirs() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload=[0, 600, 7])
        waiting = await until(cluster, parked)
        assert (waiting["phase"], waiting["reason"]) == ("Pending", "WaitingForChildren")
        (wait,) = waiting["waiting"]
        assert len(wait["children"]) == 2
        assert not {"lease", "waits", "history"} & {*waiting}
        return await until(cluster, over)

    end = played(Families().app, story)
    assert (end["result"], end.get("parks", 0), end["attempt"]) == ([0, 600, "DeadLetter"], 1, 2)


def test_a_child_that_ends_as_its_parent_parks_is_never_missed() -> None:
    parks = Counter[int]()
    for moment in range(16):
        families = Families()

        async def story(cluster: QuietCluster, moment: int = moment) -> Object:
            cluster.submit("job", "parent", payload=[1.8 + 0.03 * moment])
            return await until(cluster, over, within=60)

        end = played(families.app, story)
        assert end["phase"] == "Succeeded"
        assert end.get("parks", 0) <= 1  # a parent that is woken early would park again
        assert families.bodies["job before"] == families.bodies["job after"] == 1
        parks[end.get("parks", 0)] += 1
    assert set(parks) == {0, 1}


@pytest.mark.parametrize("who", ["worker", "operator", "both"])
def test_worker_and_operator_may_die_while_a_parent_waits(who: str) -> None:
    families = Families()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload=[30, 30], retryPolicy=SOON)
        await until(cluster, parked)
        if who != "worker":
            cluster.restart_operator()
        if who != "operator":
            assert cluster.worker.process is not None
            cluster.worker.process.kill()
        return await until(cluster, over)

    end = played(families.app, story)
    assert (end["phase"], end.get("crashes", 0), end["result"]) == ("Succeeded", 0, [30, 30])
    assert families.bodies["job before"] == families.bodies["job after"] == 1


def test_a_deleted_child_wakes_its_parent_which_submits_it_again() -> None:
    families = Families()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload=[60])
        waiting = await until(cluster, parked)
        ((child,),) = [one["children"] for one in waiting["waiting"]]
        assert cluster.write("DELETE", job_path(NAMESPACE, child["name"])) is not None
        again = await until(cluster, lambda status: status.get("parks") == 2)
        assert again["waiting"][0]["children"][0]["uid"] != child["uid"]
        return await until(cluster, over)

    end = played(families.app, story)
    assert (end["phase"], end["result"], end.get("crashes", 0)) == ("Succeeded", [60], 0)


@pytest.mark.parametrize("cascade", [False, True])
def test_a_parent_that_waits_is_cancelled_where_it_stands(cascade: bool) -> None:
    families = Families()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload=[60])
        waiting = await until(cluster, parked)
        child = waiting["waiting"][0]["children"][0]["name"]
        assert change(cluster, cancel=True, cancelCascade=cascade)
        end = await until(cluster, over, within=60)
        return {**end, "child": (await until(cluster, over, child))["phase"]}

    end = played(families.app, story)
    assert (end["phase"], "waiting" in end) == ("Cancelled", False)
    assert end["child"] == ("Cancelled" if cascade else "Succeeded")
    assert families.bodies["job after"] == 0


def test_a_suspended_parent_is_held_until_it_is_resumed() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload=[10])
        await until(cluster, parked)
        assert change(cluster, suspend=True)
        held = await until(cluster, lambda status: status.get("reason") == "Suspended")
        assert "waiting" not in held
        assert change(cluster, suspend=False)
        return await until(cluster, over)

    assert played(Families().app, story)["result"] == [10]


def test_more_children_than_a_job_names_are_waited_for_in_turns() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "parent", payload=[5] * 120)
        waiting = await until(cluster, parked)
        assert len(waiting["waiting"][0]["children"]) == 100
        return await until(cluster, over)

    end = played(Families().app, story)
    assert end["result"] == [5] * 120
    assert end.get("parks", 0) in (1, 2)
