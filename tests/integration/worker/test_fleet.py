"""Sixty-four workers of a kind: what they are told of, and what happens as half of them die.

They live in four processes of sixteen. A process each would take minutes to start, and as much
memory as they have CPU here to share; a process that is killed takes its sixteen along.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from asyncjob.client import AsyncKubernetesJobsClient
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.rest.submission import Submission
from asyncjob_dev.api import Object
from support.driven.crews import Crews, crews_of
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(600)]

CREWS, SIZE = 4, 16
LEASE_SECONDS = 20
"""Of jobs. The workers' own Leases count for 24 s after the last renewal, three of 8 s."""

SETTINGS: Final[Mapping[str, Any]] = {"worker_lease_interval": 8.0, "takeover_delay": 1.0}
"""Here 64 workers share two cores: answers take longer than the usual 0.15 s that an owner has."""

START_SECONDS = 200.0
LOOK_SECONDS = 1.0
"""Between two lists of all jobs, which would keep the API server busy."""
MOST_EVENTS = 6
MOST_CONFLICTS = 0.03


@pytest.fixture
def crews(ns: WorkerNamespace) -> Iterator[Crews]:
    with crews_of(ns) as prepared:
        for _ in range(CREWS):
            prepared.start(SIZE, **SETTINGS)
        prepared.until_assigned(within=START_SECONDS)
        yield prepared


def submit(ns: WorkerNamespace, prefix: str, count: int, pause: float, nap: float) -> None:
    """Submit jobs as users do, one after the other."""

    async def one_by_one() -> None:
        access = str(ns.plane.kubeconfig)
        async with await AsyncKubernetesJobsClient.connect(access, ns.namespace) as client:
            for number in range(count):
                asked = Submission(
                    type="nap",
                    name=f"{prefix}-{number}",
                    payload=nap,
                    leaseDurationSeconds=LEASE_SECONDS,
                )
                await client.submit(asked)
                await asyncio.sleep(pause)

    asyncio.run(one_by_one())


def until_all_succeeded(ns: WorkerNamespace, count: int, within: float) -> list[Object]:
    """Return the jobs."""

    def done() -> list[Object]:
        time.sleep(LOOK_SECONDS)
        return [one for one in ns.jobs() if one["status"]["phase"] == "Succeeded"]

    def all_done() -> list[Object] | None:
        return found if len(found := done()) == count else None

    return until(all_done, within, lambda: f"{len(done())} of {count}")


def waited(job: Object) -> float:
    """Return the seconds from creation to the first start."""
    created = parse_timestamp(job["metadata"]["creationTimestamp"])
    return (parse_timestamp(job["status"]["firstStartTime"]) - created).total_seconds()


def recovered_after(job: Object, since: float) -> float:
    """Return the seconds from a moment to the start of the attempt that has succeeded."""
    return parse_timestamp(job["status"]["startTime"]).timestamp() - since


def test_workers_are_told_of_few_jobs_of_others(ns: WorkerNamespace, crews: Crews) -> None:
    before = {name: crews.total(name) for name in ("events", "won", "conflicts")}
    submit(ns, "plain", 300, pause=0.01, nap=0.0)
    until_all_succeeded(ns, 300, within=60.0)
    told = {name: crews.total(name) - known for name, known in before.items()}
    assert told["won"] == 300
    assert told["events"] / 300 <= MOST_EVENTS, told
    assert told["conflicts"] / 300 <= MOST_CONFLICTS, told


def test_no_job_waits_long_as_half_of_the_workers_die_and_as_many_come(
    ns: WorkerNamespace, crews: Crews
) -> None:
    submit(ns, "before", 60, pause=0.02, nap=1.0)
    dead = crews.running[:2]
    killed_at = time.time()
    crews.kill(*dead)
    submit(ns, "between", 60, pause=0.05, nap=0.2)
    for _ in dead:
        crews.start(SIZE, **SETTINGS)
    submit(ns, "meanwhile", 100, pause=0.05, nap=0.2)
    jobs = until_all_succeeded(ns, 220, within=4 * LEASE_SECONDS)
    assert max(waited(job) for job in jobs) <= 2 * LEASE_SECONDS
    crashed = [job for job in jobs if job["status"].get("crashes")]
    assert crashed, "the killed ran nothing"
    # What the killed ran waits for its lease to end first, and then no longer than the others.
    assert max(recovered_after(job, killed_at) for job in crashed) <= 3 * LEASE_SECONDS
    # While workers come and go, two may take themselves for the owner of a shard.
    crews.until_assigned(within=START_SECONDS)
    before = crews.total("conflicts")
    submit(ns, "after", 100, pause=0.02, nap=0.0)
    until_all_succeeded(ns, 320, within=60.0)
    assert crews.total("conflicts") - before <= MOST_CONFLICTS * 100
