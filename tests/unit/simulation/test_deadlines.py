"""Jobs whose deadline passes, in virtual time: what they may be at, and what fails meanwhile.

Operator and worker are the real ones; the API server in memory enforces the rules.
"""

import asyncio
from collections import Counter
from typing import Any, Final

import pytest

from asyncjob import Fail, JobContext, WorkerApp
from asyncjob.names import QUEUE_KIND, QUEUES, queue_path
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import Story, change, over, played, stored, until

LIMIT: Final = 600
HOUR: Final = 3600.0
AWAY: Final = 300
LEASE: Final = "asyncjob-operator"


class Handlers:
    """Handlers that last, and what they have left of themselves."""

    def __init__(self) -> None:
        self.begun = Counter[str]()
        self.tidied = Counter[str]()

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        @app.handler("works", lease=30)
        async def works(job: JobContext, _: Any) -> None:
            self.begun[job.name] += 1
            try:
                await asyncio.sleep(2 * HOUR)
            finally:
                self.tidied[job.name] += 1

        @app.handler("tidies-for-long", lease=30)
        async def tidies(job: JobContext, _: Any) -> None:
            self.begun[job.name] += 1
            try:
                await asyncio.sleep(2 * HOUR)
            finally:
                await asyncio.sleep(HOUR)
                self.tidied[job.name] += 1

        @app.handler("sleeps")
        async def sleeps(job: JobContext, hours: float) -> None:
            self.begun[job.name] += 1
            await job.sleep("nap", hours=hours)

        @app.handler("asks")
        async def asks(job: JobContext, _: Any) -> None:
            self.begun[job.name] += 1
            await job.signal("approval")

        @app.handler("fails")
        async def fails(job: JobContext, _: Any) -> None:
            raise Fail("no luck")

        return app


def running(status: Object) -> bool:
    return bool(status["phase"] == "Running")


def timed(handlers: Handlers, story: Story, **cluster_as: Any) -> Object:
    """Play a story; what it returns also says how many seconds after `LIMIT` it was over."""

    async def story_of_time(cluster: QuietCluster) -> Object:
        began = asyncio.get_running_loop().time()
        end = await story(cluster)
        return {**end, "late": asyncio.get_running_loop().time() - began - LIMIT}

    return played(handlers.app, story_of_time, **cluster_as)


def check_ended(end: Object, *, within: float) -> None:
    assert (end["phase"], end["reason"]) == ("Cancelled", "DeadlineExceeded")
    assert -2 <= end["late"] <= within
    assert not {"lease", "waiting", "admitted", "nextAttemptTime"} & {*end}
    assert (end.get("retries", 0), end.get("releases", 0)) == (0, 0)


def test_a_running_job_is_stopped_and_tidies_up() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "works", deadlineSeconds=LIMIT)
        return await until(cluster, over)

    check_ended(timed(handlers, story), within=3)
    assert (handlers.begun["job"], handlers.tidied["job"]) == (1, 1)


def test_a_handler_that_ignores_its_stop_does_not_keep_the_job() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "tidies-for-long", deadlineSeconds=LIMIT, cancelGraceSeconds=10)
        return await until(cluster, over)

    check_ended(timed(handlers, story), within=25)


@pytest.mark.parametrize(("type_", "payload"), [("sleeps", 5.0), ("asks", None)])
def test_a_parked_job_ends_where_it_stands(type_: str, payload: Any) -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", type_, payload=payload, deadlineSeconds=LIMIT)
        await until(cluster, lambda status: "waiting" in status)
        return await until(cluster, over)

    end = timed(handlers, story)
    check_ended(end, within=3)
    assert (end["attempt"], end.get("parks", 0), handlers.begun["job"]) == (1, 1, 1)


def test_a_suspended_job_ends_and_is_not_resumed() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "works", suspend=True, deadlineSeconds=LIMIT)
        return await until(cluster, over)

    end = timed(handlers, story)
    check_ended(end, within=3)
    assert end["attempt"] == 0


@pytest.mark.parametrize("killed_at", [60, LIMIT - 5, LIMIT + 2])
def test_a_job_whose_worker_is_killed_and_does_not_come_back(killed_at: float) -> None:
    """Before, around and after its deadline; in the last case while its handler tidies up."""
    handlers = Handlers()
    type_ = "tidies-for-long" if killed_at > LIMIT else "works"

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", type_, deadlineSeconds=LIMIT, cancelGraceSeconds=30)
        await until(cluster, running)
        await asyncio.sleep(killed_at)
        cluster.stop(cluster.worker)
        return await until(cluster, over)

    check_ended(timed(handlers, story), within=60)


def test_an_operator_that_starts_again_knows_the_deadline_of_a_parked_job() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeps", payload=5.0, deadlineSeconds=LIMIT)
        await until(cluster, lambda status: "waiting" in status)
        cluster.restart_operator()
        return await until(cluster, over)

    check_ended(timed(handlers, story), within=3)


def test_an_operator_that_was_away_at_the_deadline_ends_a_parked_job_as_it_comes_back() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        [operator] = cluster.operators
        cluster.submit("job", "sleeps", payload=5.0, deadlineSeconds=LIMIT)
        await until(cluster, lambda status: "waiting" in status)
        cluster.stop(operator)
        await asyncio.sleep(LIMIT + AWAY)
        assert "waiting" in stored(cluster)
        cluster.start(operator)
        return await until(cluster, over)

    end = timed(handlers, story)
    assert end["late"] >= AWAY
    check_ended(end, within=AWAY + 30)


def test_a_worker_ends_its_job_at_the_deadline_while_no_operator_runs() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "works", deadlineSeconds=LIMIT)
        await until(cluster, running)
        cluster.stop(cluster.operators[0])
        return await until(cluster, over)

    check_ended(timed(handlers, story), within=3)


@pytest.mark.parametrize("left", [5.0, 60.0])
def test_a_standby_that_takes_over_before_the_deadline_ends_a_parked_job(left: float) -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeps", payload=5.0, deadlineSeconds=LIMIT)
        await until(cluster, lambda status: "waiting" in status)
        await asyncio.sleep(LIMIT - left)
        lease = cluster.find(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}")
        assert lease is not None
        holder = lease["spec"]["holderIdentity"]
        [leader] = [one for one in cluster.operators if one.pod and one.pod.name in holder]
        cluster.stop(leader)
        return await until(cluster, over)

    check_ended(timed(handlers, story, operators=2), within=60)


@pytest.mark.parametrize("is_ahead", [True, False])
@pytest.mark.parametrize("who", ["operator", "worker"])
@pytest.mark.parametrize("type_", ["works", "sleeps", "suspended", "killed"])
def test_a_clock_that_is_ten_minutes_off_moves_no_deadline(
    type_: str, who: str, *, is_ahead: bool
) -> None:
    handlers, offset = Handlers(), 600.0 if is_ahead else -600.0

    async def story(cluster: QuietCluster) -> Object:
        kind = type_ if type_ == "sleeps" else "works"
        spec = {"suspend": True} if type_ == "suspended" else {}
        cluster.submit("job", kind, payload=5.0, deadlineSeconds=LIMIT, **spec)
        if type_ == "killed":
            await until(cluster, running)
            await asyncio.sleep(LIMIT - 10)
            cluster.stop(cluster.worker)
        return await until(cluster, over)

    wall_offset = lambda name: offset if name.startswith(who) else 0.0  # noqa: E731
    end = timed(handlers, story, wall_offset=wall_offset)
    check_ended(end, within=60 if type_ == "killed" else 3)


@pytest.mark.parametrize("held_by", ["dependsOn", "paused queue", "full queue"])
def test_a_job_that_is_held_back_ends_without_a_start(held_by: str) -> None:
    handlers = Handlers()
    limits: dict[str, Object] = {
        "paused queue": {"paused": True},
        "full queue": {"maxConcurrency": 1},
    }

    async def story(cluster: QuietCluster) -> Object:
        path = queue_path(NAMESPACE, "lived")
        if held_by in limits:
            assert cluster.put(QUEUE_KIND, path, QUEUES, "lived", limits[held_by])
        first = {"suspend": True} if held_by == "dependsOn" else {}
        cluster.submit("first", "works", **first)
        await asyncio.sleep(20)
        depends = {"dependsOn": [{"name": "first"}]} if held_by == "dependsOn" else {}
        cluster.submit("job", "works", deadlineSeconds=LIMIT, **depends)
        began = asyncio.get_running_loop().time()
        end = await until(cluster, over)
        return {**end, "took": asyncio.get_running_loop().time() - began}

    end = timed(handlers, story)
    check_ended({**end, "late": end["took"] - LIMIT}, within=5)
    assert end["attempt"] == 0


def test_a_deadline_that_passes_while_the_worker_drains_ends_the_job() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "works", deadlineSeconds=LIMIT)
        await until(cluster, running)
        await asyncio.sleep(LIMIT - 10)
        cluster.cluster.evict(cluster.worker, 60.0)
        return await until(cluster, over)

    check_ended(timed(handlers, story), within=3)
    assert (handlers.begun["job"], handlers.tidied["job"]) == (1, 1)


def test_a_redrive_before_the_deadline_runs_the_job_and_one_after_it_does_not() -> None:
    handlers = Handlers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "fails", deadlineSeconds=LIMIT)
        await until(cluster, over)
        change(cluster, redrive=1)
        await until(cluster, lambda status: status.get("redrives", 0) == 1 and over(status))
        await asyncio.sleep(LIMIT)
        change(cluster, redrive=2)
        await asyncio.sleep(300)
        return stored(cluster)

    end = timed(handlers, story)
    assert (end["phase"], end.get("redrives", 0), end["attempt"]) == ("DeadLetter", 1, 2)
