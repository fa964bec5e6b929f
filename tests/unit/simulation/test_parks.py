"""Handlers that sleep without a slot, in virtual time: what may come in between.

Operator and worker are the real ones; the API server in memory enforces the rules.
"""

import asyncio
from collections import Counter
from typing import Any, Final

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.names import job_path
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import SLOTS, Object, QuietCluster
from support.driven.waiting_jobs import SOON, change, now, over, parked, played, until

HOUR: Final = 3600.0


class Sleepers:
    """A handler that takes a step, sleeps for an hour, and takes another."""

    def __init__(self) -> None:
        self.bodies = Counter[str]()
        self.left = Counter[str]()
        self.fails_after: bool = False

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str) -> str:
            self.bodies[key] += 1
            await asyncio.sleep(0.01)
            return key

        @app.handler("sleeper")
        async def sleeper(job: JobContext, _: Any) -> int:
            try:
                await job.step("before", body, f"{job.name} before")
                await job.sleep("nap", hours=1)
                if self.fails_after:
                    raise ValueError("no luck")
                await job.step("after", body, f"{job.name} after")
            finally:
                self.left[job.name] += 1
            return job.attempt

        return app


def test_a_job_sleeps_without_a_slot_and_takes_each_step_once() -> None:
    sleepers = Sleepers()

    async def story(cluster: QuietCluster) -> Object:
        began = now(cluster)
        for number in range(SLOTS * 3):
            cluster.submit(f"nap-{number}", "sleeper")
        cluster.submit("job", "sleeper")
        sleeping = await until(cluster, parked)
        assert (sleeping["phase"], sleeping["reason"]) == ("Scheduled", "Sleeping")
        assert not {"lease", "history"} & {*sleeping}
        end = await until(cluster, over)
        for number in range(SLOTS * 3):
            await until(cluster, over, f"nap-{number}")
        return {**end, "took": now(cluster) - began}

    end = played(sleepers.app, story)
    assert (end["phase"], end["result"], end.get("parks", 0), end["attempt"]) == (
        "Succeeded",
        1,
        1,
        2,
    )
    assert HOUR <= end["took"] <= HOUR + 60
    assert "waiting" not in end
    assert end["waits"]["nap"]["over"] is True
    assert [entry["phase"] for entry in end["history"]] == ["Succeeded"]
    assert set(sleepers.bodies.values()) == {1}
    assert len(sleepers.bodies) == 2 * (SLOTS * 3 + 1)
    assert sleepers.left["job"] == 2


@pytest.mark.parametrize("who", ["worker", "operator"])
@pytest.mark.parametrize("offset", [600.0, -600.0], ids=["ahead", "behind"])
def test_a_clock_that_is_ten_minutes_wrong_makes_no_sleep_longer_or_shorter(
    who: str, offset: float
) -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper")
        await until(cluster, parked)
        began = now(cluster)
        return {**await until(cluster, over), "took": now(cluster) - began}

    wall_offset = lambda name: offset if name.startswith(who) else 0.0  # noqa: E731
    end = played(Sleepers().app, story, wall_offset=wall_offset)
    assert (end["phase"], end.get("parks", 0)) == ("Succeeded", 1)
    assert HOUR - 3 <= end["took"] <= HOUR + 60


def test_a_parked_job_costs_no_write_until_it_wakes() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper")
        await until(cluster, parked)
        before = cluster.find(job_path(NAMESPACE, "job"))
        await asyncio.sleep(HOUR / 2)
        after = cluster.find(job_path(NAMESPACE, "job"))
        assert before == after
        return await until(cluster, over)

    assert played(Sleepers().app, story)["phase"] == "Succeeded"


@pytest.mark.parametrize("who", ["worker", "operator"])
def test_worker_and_operator_may_die_while_a_job_is_parked(who: str) -> None:
    sleepers = Sleepers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper", retryPolicy=SOON)
        ends = (await until(cluster, parked))["waits"]
        if who == "operator":
            cluster.restart_operator()
        else:
            assert cluster.worker.process is not None
            cluster.worker.process.kill()
        end = await until(cluster, over)
        assert end["waits"]["nap"]["until"] == ends["nap"]["until"]
        return end

    end = played(sleepers.app, story)
    assert (end["phase"], end.get("crashes", 0), end.get("parks", 0)) == ("Succeeded", 0, 1)
    assert sleepers.bodies == {"job before": 1, "job after": 1}


def test_a_parked_job_that_is_cancelled_ends_where_it_stands() -> None:
    sleepers = Sleepers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper")
        await until(cluster, parked)
        change(cluster, cancel=True)
        began = now(cluster)
        end = await until(cluster, over)
        return {**end, "took": now(cluster) - began}

    end = played(sleepers.app, story)
    assert (end["phase"], end["reason"]) == ("Cancelled", "CancelRequested")
    assert end["took"] < 60
    assert "waiting" not in end
    assert sleepers.left["job"] == 1


def test_a_parked_job_that_is_suspended_is_held_after_its_sleep() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper")
        await until(cluster, parked)
        change(cluster, suspend=True)
        held = await until(cluster, lambda status: status["phase"] == "Pending")
        assert (held["reason"], "waiting" in held) == ("Suspended", False)
        change(cluster, suspend=False)
        return await until(cluster, over)

    end = played(Sleepers().app, story)
    assert (end["phase"], end["result"]) == ("Succeeded", 1)


def test_a_redrive_goes_on_after_the_sleep() -> None:
    sleepers = Sleepers()
    sleepers.fails_after = True

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper", retryPolicy=SOON)
        dead = await until(cluster, over)
        assert (dead["phase"], dead.get("parks", 0)) == ("DeadLetter", 1)
        sleepers.fails_after = False
        change(cluster, redrive=1)
        began = now(cluster)
        end = await until(cluster, lambda status: status["phase"] == "Succeeded")
        return {**end, "took": now(cluster) - began}

    end = played(sleepers.app, story)
    assert (end.get("parks", 0), end["took"] < 60) == (0, True)
    assert sleepers.bodies == {"job before": 1, "job after": 1}


def test_the_time_limit_of_an_attempt_leaves_the_sleep_out() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper", executionTimeoutSeconds=30, retryPolicy=SOON)
        return await until(cluster, over)

    assert played(Sleepers().app, story)["phase"] == "Succeeded"


def test_a_queue_timeout_does_not_end_a_job_that_has_parked() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper", queueTimeoutSeconds=60)
        return await until(cluster, over)

    assert played(Sleepers().app, story)["phase"] == "Succeeded"


def test_a_parked_job_keeps_its_deduplication_id_against_a_newer_one() -> None:
    sleepers = Sleepers()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "sleeper", deduplicationId="one")
        await until(cluster, parked)
        cluster.submit("newer", "sleeper", deduplicationId="one")
        newer = await until(cluster, over, "newer")
        assert (newer["phase"], newer["reason"]) == ("Cancelled", "Duplicate")
        return await until(cluster, over)

    end = played(sleepers.app, story)
    assert (end["phase"], end["attempt"]) == ("Succeeded", 2)
    assert sleepers.left == {"job": 2}
