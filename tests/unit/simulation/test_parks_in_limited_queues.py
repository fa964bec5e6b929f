"""A parked job gives its place and its concurrency key back, and takes them again as it goes on.

It takes nothing of the rate of its queue then: it has started before. Operator and worker are the
real ones, in virtual time.
"""

import asyncio
from typing import Any, Final

from asyncjob import JobContext, WorkerApp
from asyncjob.names import QUEUE_KIND, QUEUES, queue_path
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import change, parked, played, until

HOUR: Final = 3600.0
DAY: Final = 86_400


def app(_: HandlerCalls) -> WorkerApp:
    made = WorkerApp()

    @made.handler("sleeper")
    async def sleeper(job: JobContext, hours: float) -> int:
        await job.sleep("nap", hours=hours)
        await asyncio.sleep(60)
        return job.attempt

    @made.handler("quick")
    async def quick(job: JobContext, seconds: float) -> int:
        await asyncio.sleep(seconds)
        return job.attempt

    return made


def succeeded(status: Object) -> bool:
    return bool(status["phase"] == "Succeeded")


def limit(cluster: QuietCluster, **spec: Any) -> None:
    assert cluster.put(QUEUE_KIND, queue_path(NAMESPACE, "lived"), QUEUES, "lived", spec)


def reservations(cluster: QuietCluster) -> dict[str, Object]:
    found = cluster.find(queue_path(NAMESPACE, "lived"))
    assert found is not None
    return {one["name"]: one for one in found.get("status", {}).get("reservations", [])}


def test_a_parked_job_gives_its_place_back_and_waits_for_one_as_it_goes_on() -> None:
    async def story(cluster: QuietCluster) -> Object:
        limit(cluster, maxConcurrency=1)
        cluster.submit("nap", "sleeper", payload=0.1)
        await until(cluster, parked, "nap")
        cluster.submit("busy", "quick", payload=0.15 * HOUR)
        running = await until(cluster, lambda status: status["phase"] == "Running", "busy")
        woken = await until(cluster, lambda status: status["phase"] == "Queued", "nap")
        assert "lease" in running
        assert not woken.get("admitted")
        await until(cluster, succeeded, "busy")
        return await until(cluster, succeeded, "nap")

    end = played(app, story)
    assert (end["result"], end["attempt"], end.get("parks", 0)) == (1, 2, 1)


def test_a_parked_job_gives_its_concurrency_key_back() -> None:
    async def story(cluster: QuietCluster) -> Object:
        limit(cluster, maxConcurrencyPerKey=1)
        cluster.submit("nap", "sleeper", payload=0.1, concurrencyKey="one")
        await until(cluster, parked, "nap")
        cluster.submit("same-key", "quick", payload=1.0, concurrencyKey="one")
        await until(cluster, succeeded, "same-key")
        assert parked(await until(cluster, lambda _: True, "nap"))
        return await until(cluster, succeeded, "nap")

    assert played(app, story).get("parks", 0) == 1


def test_who_goes_on_takes_a_place_but_nothing_of_the_rate() -> None:
    """Two starts a day, both are used up; the sleeper goes on after its nap all the same."""

    async def story(cluster: QuietCluster) -> Object:
        limit(cluster, maxConcurrency=4, rateLimit={"count": 2, "periodSeconds": DAY})
        cluster.submit("nap", "sleeper", payload=0.1)
        await until(cluster, parked, "nap")
        cluster.submit("second", "quick", payload=1.0)
        await until(cluster, succeeded, "second")
        cluster.submit("third", "quick", payload=1.0)
        await until(cluster, lambda status: status["attempt"] == 2, "nap")
        assert reservations(cluster)["nap"]["resumes"] is True
        end = await until(cluster, succeeded, "nap")
        await asyncio.sleep(HOUR)
        third = await until(cluster, lambda _: True, "third")
        return {**end, "third": third["attempt"]}

    end = played(app, story)
    assert (end.get("parks", 0), end["third"]) == (1, 0)


def test_who_is_suspended_as_its_wait_ends_goes_on_without_a_start_as_well() -> None:
    async def story(cluster: QuietCluster) -> Object:
        limit(cluster, maxConcurrency=4, rateLimit={"count": 1, "periodSeconds": DAY})
        cluster.submit("nap", "sleeper", payload=0.1)
        await until(cluster, parked, "nap")
        assert change(cluster, "nap", suspend=True)
        held = await until(cluster, lambda status: status["reason"] == "Suspended", "nap")
        await asyncio.sleep(HOUR)
        assert change(cluster, "nap", suspend=False)
        end = await until(cluster, succeeded, "nap")
        return {**end, "held": held["phase"]}

    end = played(app, story)
    assert (end["held"], end.get("parks", 0), end["attempt"]) == ("Pending", 1, 2)
