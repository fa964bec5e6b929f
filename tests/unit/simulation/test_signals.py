"""Handlers that wait for a signal without a slot, in virtual time: what may come in between.

Operator and worker are the real ones; the API server in memory enforces the rules.
"""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any, Final

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app import SignalTimeout
from asyncjob.names import job_path
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import SLOTS, Object, QuietCluster
from support.driven.waiting_jobs import (
    SENDER,
    SOON,
    change,
    now,
    over,
    parked,
    played,
    send,
    stored,
    until,
)

HOUR: Final = 3600.0
MINUTES: Final = 180.0


class Waiters:
    """A handler that takes a step, waits for a signal, at most so many seconds, takes another."""

    def __init__(self) -> None:
        self.bodies = Counter[str]()

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str) -> str:
            self.bodies[key] += 1
            await asyncio.sleep(0.01)
            return key

        @app.handler("waiter")
        async def waiter(job: JobContext, payload: Any) -> Any:
            await job.step("before", body, f"{job.name} before")
            timed = isinstance(payload, int | float)
            timeout = timedelta(seconds=payload) if timed else None
            try:
                told = await job.signal("go", timeout=timeout)
            except SignalTimeout:
                await job.step("late", body, f"{job.name} late")
                return "late"
            await job.step("after", body, f"{job.name} after")
            return told

        @app.handler("busy")
        async def busy(job: JobContext, _: Any) -> Any:
            async def slow() -> None:
                await asyncio.sleep(300)

            async def wait() -> Any:
                try:
                    return await job.signal("go", timeout=timedelta(seconds=60))
                except SignalTimeout:
                    return "late"

            told, _ = await asyncio.gather(wait(), job.step("slow", slow))
            return told

        return app


def test_a_job_waits_for_a_signal_without_a_slot_and_takes_each_step_once() -> None:
    waiters = Waiters()

    async def story(cluster: QuietCluster) -> Object:
        for number in range(SLOTS * 2):
            cluster.submit(f"job-{number}", "waiter")
        cluster.submit("job", "waiter")
        waiting = await until(cluster, parked)
        assert (waiting["phase"], waiting["reason"]) == ("Pending", "WaitingForSignal")
        assert waiting["waiting"] == [{"kind": "Signal", "key": "go"}]
        assert not {"lease", "history", "waits"} & {*waiting}
        await asyncio.sleep(HOUR)
        assert stored(cluster).get("parks", 0) == 1
        assert send(cluster)
        began = now(cluster)
        end = await until(cluster, over)
        return {**end, "took": now(cluster) - began}

    end = played(waiters.app, story)
    assert (end["phase"], end["result"], end.get("parks", 0), end["attempt"]) == (
        "Succeeded",
        "gone",
        1,
        2,
    )
    assert end["took"] < 5
    assert [entry["phase"] for entry in end["history"]] == ["Succeeded"]
    assert waiters.bodies["job before"] == waiters.bodies["job after"] == 1


def test_a_signal_that_came_first_costs_no_park() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "waiter", suspend=True)
        await asyncio.sleep(20)
        assert change(cluster, suspend=False, signals={"go": {"payload": 1, "sentBy": SENDER}})
        return await until(cluster, over)

    end = played(Waiters().app, story)
    assert (end["phase"], end["result"], end.get("parks", 0)) == ("Succeeded", 1, 0)


def test_a_signal_sent_as_the_job_parks_is_never_lost() -> None:
    for moment in range(12):

        async def story(cluster: QuietCluster, moment: int = moment) -> Object:
            cluster.submit("job", "waiter")
            await asyncio.sleep(0.02 * moment)
            while not send(cluster):  # noqa: ASYNC110  # another write was first
                await asyncio.sleep(0.005)
            return await until(cluster, over, within=120)

        end = played(Waiters().app, story)
        assert (end["phase"], end["result"]) == ("Succeeded", "gone")


def test_a_signal_that_does_not_come_in_time_is_refused_from_then_on() -> None:
    waiters = Waiters()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "waiter", payload=HOUR)
        waiting = await until(cluster, parked)
        assert waiting["waits"]["go"]["until"] == waiting["waiting"][0]["until"]
        began = now(cluster)
        end = await until(cluster, over, within=2 * HOUR)
        assert not send(cluster)
        return {**end, "took": now(cluster) - began}

    end = played(waiters.app, story)
    assert (end["result"], end["waits"]["go"]["over"]) == ("late", True)
    assert HOUR <= end["took"] <= HOUR + 60
    assert waiters.bodies == {"job before": 1, "job late": 1}


@pytest.mark.parametrize("who", ["worker", "operator"])
@pytest.mark.parametrize("offset", [600.0, -600.0], ids=["ahead", "behind"])
def test_a_clock_that_is_ten_minutes_wrong_times_no_signal_out_early_or_late(
    who: str, offset: float
) -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "waiter", payload=HOUR)
        await until(cluster, parked)
        began = now(cluster)
        return {**await until(cluster, over), "took": now(cluster) - began}

    wall_offset = lambda name: offset if name.startswith(who) else 0.0  # noqa: E731
    end = played(Waiters().app, story, wall_offset=wall_offset)
    assert end["result"] == "late"
    assert HOUR - 3 <= end["took"] <= HOUR + 60


def test_a_signal_in_the_last_moment_is_either_there_or_refused() -> None:
    results = set()
    for moment in (-2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 61.0):

        async def story(cluster: QuietCluster, moment: float = moment) -> Object:
            cluster.submit("job", "waiter", payload=MINUTES)
            await until(cluster, parked)
            began = now(cluster)
            await asyncio.sleep(MINUTES + moment - (now(cluster) - began))
            sent = send(cluster)
            end = await until(cluster, over, within=HOUR)
            return {**end, "sent": sent}

        end = played(Waiters().app, story)
        assert end["result"] == ("gone" if end["sent"] else "late")
        results.add(end["result"])
    assert results == {"gone", "late"}


@pytest.mark.parametrize("sent_after", [None, 30.0, 59.0, 61.0, 70.0, 120.0])
def test_a_signal_for_a_handler_that_holds_its_slot_is_taken_or_refused(
    sent_after: float | None,
) -> None:
    """The body of a step runs, so the job cannot park: the worker times it out by itself."""

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "busy")
        await until(cluster, lambda status: status["phase"] == "Running")
        sent = False
        if sent_after is not None:
            await asyncio.sleep(sent_after)
            sent = send(cluster)
        end = await until(cluster, over)
        return {**end, "sent": sent}

    end = played(Waiters().app, story)
    assert (end["phase"], end["result"]) == ("Succeeded", "gone" if end["sent"] else "late")
    if sent_after in (None, 120.0):
        assert end["result"] == "late"
    if sent_after == 30.0:
        assert end["result"] == "gone"


@pytest.mark.parametrize("who", ["worker", "operator"])
def test_worker_and_operator_may_die_while_a_job_waits(who: str) -> None:
    waiters = Waiters()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "waiter", retryPolicy=SOON)
        await until(cluster, parked)
        if who == "operator":
            cluster.restart_operator()
        else:
            assert cluster.worker.process is not None
            cluster.worker.process.kill()
        assert send(cluster)
        return await until(cluster, over)

    end = played(waiters.app, story)
    assert (end["phase"], end.get("crashes", 0), end.get("parks", 0)) == ("Succeeded", 0, 1)
    assert waiters.bodies == {"job before": 1, "job after": 1}


def test_a_job_that_waits_is_cancelled_where_it_stands_and_takes_no_signal_then() -> None:
    waiters = Waiters()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "waiter")
        await until(cluster, parked)
        assert change(cluster, cancel=True)
        end = await until(cluster, over, within=60)
        assert not send(cluster)
        return end

    end = played(waiters.app, story)
    assert (end["phase"], end["reason"], "waiting" in end) == (
        "Cancelled",
        "CancelRequested",
        False,
    )
    assert waiters.bodies == {"job before": 1}


def test_a_suspended_job_that_is_told_to_go_on_is_held_until_it_is_resumed() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "waiter")
        await until(cluster, parked)
        assert change(cluster, suspend=True)
        assert send(cluster)
        held = await until(cluster, lambda status: status.get("reason") == "Suspended")
        assert "waiting" not in held
        assert change(cluster, suspend=False)
        return await until(cluster, over)

    assert played(Waiters().app, story)["result"] == "gone"


def test_a_job_with_a_dependency_and_a_queue_timeout_waits_all_the_same() -> None:
    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("first", "waiter")
        cluster.submit("job", "waiter", dependsOn=[{"name": "first"}], queueTimeoutSeconds=60)
        await until(cluster, parked, "first")
        assert change(cluster, "first", signals={"go": {"payload": 1, "sentBy": SENDER}})
        await until(cluster, parked)
        assert cluster.write("DELETE", job_path(NAMESPACE, "first")) is not None  # it was needed
        await asyncio.sleep(3600)
        assert stored(cluster)["reason"] == "WaitingForSignal"
        assert send(cluster)
        return await until(cluster, over)

    assert played(Waiters().app, story)["result"] == "gone"
