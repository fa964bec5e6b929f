"""What comes at the moment of a park, and in which order: signal, cancel, suspension, time limit.

The park is a write of the holder on condition of the version it has seen, as each of the others is:
one of them is first, and the job ends as that one says. Moments are those around the park.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import SOON, change, over, parked, played, send, stored, until

MOMENTS: Final = tuple(0.025 * number for number in range(9))
"""Seconds after the job is made: before its claim, in its step, as it parks, and after that."""

NEVER_LEFT: Final = {"lease", "waiting", "admitted", "nextAttemptTime"}


class Waiter:
    """A handler that works for so many seconds, takes a step, waits for a signal, takes another."""

    def __init__(self) -> None:
        self.bodies = Counter[str]()

    def app(self, _: HandlerCalls) -> WorkerApp:
        app = WorkerApp()

        async def body(key: str) -> str:
            self.bodies[key] += 1
            await asyncio.sleep(0.01)
            return key

        @app.handler("waiter")
        async def waiter(job: JobContext, seconds: float) -> Any:
            await asyncio.sleep(seconds)
            await job.step("before", body, "before")
            told = await job.signal("go", timeout=timedelta(hours=1))
            await job.step("after", body, "after")
            return told

        return app


async def insist(cluster: QuietCluster, **spec: Any) -> None:
    """Change the spec, again if another write was first."""
    while not over(stored(cluster)) and not change(cluster, **spec):  # noqa: ASYNC110  # virtual
        await asyncio.sleep(0.005)


GO: Final = {"signals": {"go": {"payload": "gone", "sentBy": "people"}}}


@pytest.mark.parametrize("order", [("signal", "cancel"), ("cancel", "signal")], ids="-".join)
def test_of_a_signal_and_a_cancel_the_first_that_is_met_decides(order: Sequence[str]) -> None:
    ends = Counter[str]()
    for moment in MOMENTS:
        waiter = Waiter()

        async def story(cluster: QuietCluster, moment: float = moment) -> Object:
            cluster.submit("job", "waiter", payload=0)
            await asyncio.sleep(moment)
            for what in order:
                if what == "cancel":
                    await insist(cluster, cancel=True)
                elif not send(cluster):
                    await asyncio.sleep(0.005)
                    send(cluster)
            return await until(cluster, over, within=300)

        end = played(waiter.app, story)
        assert end["phase"] in {"Succeeded", "Cancelled"}, (moment, end)
        if end["phase"] == "Succeeded":
            assert (end["result"], waiter.bodies["after"]) == ("gone", 1)
        else:
            assert end["reason"] == "CancelRequested"
        assert not NEVER_LEFT & {*end}
        assert waiter.bodies["before"] <= 1
        ends[end["phase"]] += 1
    assert ends["Cancelled"] > 0


def test_a_suspension_as_the_job_parks_holds_it_and_loses_no_signal() -> None:
    for moment in MOMENTS:
        waiter = Waiter()

        async def story(cluster: QuietCluster, moment: float = moment) -> Object:
            cluster.submit("job", "waiter", payload=0)
            await asyncio.sleep(moment)
            await insist(cluster, suspend=True)
            await insist(cluster, **GO)
            await asyncio.sleep(120)
            await insist(cluster, suspend=False)
            return await until(cluster, over, within=300)

        end = played(waiter.app, story)
        assert (end["phase"], end["result"]) == ("Succeeded", "gone"), moment
        assert waiter.bodies == {"before": 1, "after": 1}


def test_a_time_limit_that_passes_as_the_job_parks_leaves_it_parked_or_ends_it() -> None:
    """The limit is that of an attempt: a job that has parked is not late, however long it waits."""
    met = Counter[str]()
    for early in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0, -0.05):
        waiter = Waiter()

        async def story(cluster: QuietCluster, early: float = early) -> Object:
            policy = {"maxRetries": 0, "initialDelaySeconds": 1, "maxDelaySeconds": 1}
            cluster.submit(
                "job", "waiter", payload=5 - early, executionTimeoutSeconds=5, retryPolicy=policy
            )
            first = await until(cluster, lambda status: parked(status) or over(status), step=0.1)
            if over(first):
                return first
            await asyncio.sleep(600)
            assert send(cluster)
            return await until(cluster, lambda status: over(status) or status["attempt"] == 2)

        end = played(waiter.app, story)
        if end["phase"] == "DeadLetter":
            assert (end["reason"], end.get("parks", 0)) == ("RetriesExhausted", 0), end
            assert end["error"]["category"] == "Timeout", end
        else:
            assert end.get("parks", 0) == 1, end
        assert waiter.bodies["before"] <= 1
        met["late" if end["phase"] == "DeadLetter" else "parked"] += 1
    assert set(met) == {"late", "parked"}


@pytest.mark.parametrize("seconds", [57, 58, 59, 60, 61, 62, 63])
def test_a_deadline_beside_a_signal_ends_the_job_or_lets_it_end(seconds: int) -> None:
    waiter = Waiter()

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", "waiter", payload=0, deadlineSeconds=60)
        await until(cluster, parked, step=0.1)
        await asyncio.sleep(max(0.0, seconds - 1))
        sent = send(cluster)
        end = await until(cluster, over, within=300)
        return {**end, "sent": sent}

    end = played(waiter.app, story)
    if end["phase"] == "Succeeded":
        assert end["sent"]
        assert waiter.bodies["after"] == 1
    else:
        assert (end["phase"], end["reason"]) == ("Cancelled", "DeadlineExceeded")
    if seconds <= 57:
        assert end["phase"] == "Succeeded"
    assert not NEVER_LEFT & {*end}


@pytest.mark.parametrize("who", ["worker", "operator", "both"])
def test_whoever_dies_as_the_job_parks_it_goes_on(who: str) -> None:
    for moment in MOMENTS:
        waiter = Waiter()

        async def story(cluster: QuietCluster, moment: float = moment) -> Object:
            cluster.submit("job", "waiter", payload=0, retryPolicy=SOON)
            await asyncio.sleep(moment)
            if who != "worker":
                cluster.restart_operator()
            if who != "operator":
                assert cluster.worker.process is not None
                cluster.worker.process.kill()
            await until(cluster, lambda status: parked(status) or over(status))
            assert send(cluster)
            return await until(cluster, over, within=600)

        end = played(waiter.app, story)
        assert (end["phase"], end["result"]) == ("Succeeded", "gone"), (who, moment)
        assert end.get("crashes", 0) <= 1
        assert waiter.bodies["after"] == 1
        assert waiter.bodies["before"] <= 1 + end.get("crashes", 0)
