"""Many workers after the same jobs: one wins each, and few lose."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob import JobContext, WorkerApp
from asyncjob.kube import ClusterAccess, KubeSession, load_access, watch
from asyncjob.lifecycle.claim import Candidate
from asyncjob.names import JOBS, QUEUES, collection_path
from asyncjob.shards import shard_label
from asyncjob_worker.claiming.claimer import Claimer
from asyncjob_worker.claiming.queue_state import QueueState
from asyncjob_worker.leases.heartbeat_lag import HeartbeatLag
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import EnforcementCheck
from support.parts.callbacks import ignore
from support.processes.inside import MANAGER, LossySession, all_done, team
from support.processes.workers import Identity, WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

CLAIMERS = 32
CONTESTED = 1000
IN_LOCKSTEP = 60
"""So many jobs are tried by all claimers at the same moment."""

TEAM = 16
SINGLE_JOBS = 50
BACKLOG = 300
MOST_CONFLICTS = 0.05


def quick_app() -> tuple[WorkerApp, Counter[str]]:
    """Return an app that counts how often each job has run."""
    app, runs = WorkerApp(), Counter[str]()

    @app.handler("count")
    async def count(job: JobContext) -> int:
        runs[job.name] += 1
        return job.attempt

    return app, runs


def identities(ns: WorkerNamespace, count: int) -> list[Identity]:
    return [ns.identity(f"inside-{number}") for number in range(count)]


async def create(
    session: KubeSession, ns: WorkerNamespace, names: Sequence[str], **spec: Any
) -> None:
    """Create jobs, several at a time, with the label that clients give them."""
    path, some = collection_path(ns.namespace, JOBS), asyncio.Semaphore(16)

    async def one(name: str) -> None:
        body: dict[str, Any] = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name, "labels": shard_label(name)},
            "spec": {"type": "count", **spec},
        }
        async with some:
            await session.create(path, body)

    await asyncio.gather(*map(one, names))


async def admin(ns: WorkerNamespace, stack: AsyncExitStack) -> KubeSession:
    access = await load_access(str(ns.plane.kubeconfig), ns.namespace)
    return await stack.enter_async_context(KubeSession(access, field_manager="test"))


class CompetingClaimer:
    """One of many claimers, and the requests that it has made."""

    def __init__(self, access: ClusterAccess, identity: Identity, app: WorkerApp) -> None:
        self.requests = 0
        self.tries = 0
        self.won: dict[str, HeldJob] = {}
        self.session = KubeSession(access, field_manager=MANAGER, observer=self.observe)
        enforcement = EnforcementCheck(self.session, required=False)
        queue = QueueState(lambda: None, on_unlimited=ignore)
        # Nobody runs these jobs; their recovery must not fall into the tests that come next.
        queue.replace([{"spec": {"defaults": {"leaseDurationSeconds": 600}}}])
        late = HeartbeatLag(0.25, time.monotonic)
        self.claimer = Claimer(self.session, app, queue, identity.holder, enforcement, lag=late)

    def observe(self, *_: object) -> None:
        self.requests += 1

    async def go(self, jobs: Sequence[Candidate], taken: set[str]) -> None:
        """Try the first in step with all others, the rest in an order of one's own."""
        rest = list(jobs[IN_LOCKSTEP:])
        random.Random(id(self)).shuffle(rest)
        for number, job in enumerate([*jobs[:IN_LOCKSTEP], *rest]):
            if number >= IN_LOCKSTEP and job.name in taken:
                continue
            self.tries += 1
            held = await self.claimer.claim(job)
            if held is not None:
                taken.add(job.name)
                self.won[job.name] = held


@pytest.mark.soak
async def test_of_32_claimers_one_gets_each_of_1000_jobs_and_losers_do_no_work(
    ns: WorkerNamespace,
) -> None:
    app, _ = quick_app()
    who = identities(ns, CLAIMERS)
    async with AsyncExitStack() as stack:
        admin_session = await admin(ns, stack)
        await create(admin_session, ns, [f"j{number}" for number in range(CONTESTED)])
        path = collection_path(ns.namespace, JOBS)
        page: Any = await admin_session.get(path)
        jobs = [
            Candidate(item["metadata"]["name"], item["metadata"]["resourceVersion"], "count")
            for item in page["items"]
        ]
        competitors: list[CompetingClaimer] = []
        for one in who:
            competitors.append(CompetingClaimer(await load_access(str(one.kubeconfig)), one, app))
            await stack.enter_async_context(competitors[-1].session)
        taken: set[str] = set()
        await asyncio.gather(*(competitor.go(jobs, taken) for competitor in competitors))
        moves = await claims_seen(admin_session, path, page["metadata"]["resourceVersion"])
    winners = Counter(name for competitor in competitors for name in competitor.won)
    assert winners == Counter(job.name for job in jobs)
    tokens = {
        name: held.claim for competitor in competitors for name, held in competitor.won.items()
    }
    assert moves == {name: [token] for name, token in tokens.items()}
    for competitor in competitors:
        assert competitor.requests == competitor.tries
    lost = sum(competitor.claimer.counts.conflicts for competitor in competitors)
    assert lost >= IN_LOCKSTEP * (CLAIMERS - 1)


async def claims_seen(session: KubeSession, path: str, version: str) -> dict[str, list[str]]:
    """Return by job the claims that the API server's own versions show, oldest first."""
    found: dict[str, list[str]] = {}
    async for event in watch(session, path, {"resourceVersion": version, "timeoutSeconds": "3"}):
        if event.type == "BOOKMARK":
            continue
        status: Any = event.object["status"]
        metadata: Any = event.object["metadata"]
        claims = found.setdefault(metadata["name"], [])
        if status.get("claim") and status["claim"] not in claims:
            claims.append(status["claim"])
    return found


async def has_run(runs: Counter[str], name: str) -> None:
    while not runs[name]:  # noqa: ASYNC110  # handlers in other tasks count, and nobody waits
        await asyncio.sleep(0.002)


def ratio(won: int, conflicts: int) -> float:
    return conflicts / (won + conflicts)


async def test_16_idle_workers_hardly_ever_run_for_the_same_job(
    ns: WorkerNamespace, record_property: Any
) -> None:
    app, runs = quick_app()
    async with AsyncExitStack() as stack:
        admin_session = await admin(ns, stack)
        people = await stack.enter_async_context(team(app, identities(ns, TEAM), concurrency=1))
        await people.until_acquainted()
        for number in range(SINGLE_JOBS):
            await create(admin_session, ns, [f"j{number}"])
            await has_run(runs, f"j{number}")
        await all_done(ns, [f"j{number}" for number in range(SINGLE_JOBS)])
        share = ratio(people.won, people.conflicts)
    record_property("conflicts_idle", share)
    print(f"idle: {people.conflicts} conflicts, {people.won} claims, {share:.1%}")  # noqa: T201
    assert set(runs.values()) == {1}
    assert share <= MOST_CONFLICTS


@pytest.mark.soak
async def test_16_workers_with_a_full_backlog_hardly_ever_run_for_the_same_job(
    ns: WorkerNamespace, record_property: Any
) -> None:
    app, runs = quick_app()
    names = [f"j{number}" for number in range(BACKLOG)]
    async with AsyncExitStack() as stack:
        admin_session = await admin(ns, stack)
        ns.queue("default", paused=True)
        people = await stack.enter_async_context(team(app, identities(ns, TEAM), concurrency=1))
        await create(admin_session, ns, names)
        await people.until_acquainted()
        queue = f"{collection_path(ns.namespace, QUEUES)}/default"
        await admin_session.merge_patch(queue, {"spec": {"paused": False}})
        await all_done(ns, names)
        share = ratio(people.won, people.conflicts)
    record_property("conflicts_backlog", share)
    print(f"backlog: {people.conflicts} conflicts, {people.won} claims, {share:.1%}")  # noqa: T201
    assert runs == Counter(names)
    assert share <= MOST_CONFLICTS


async def test_a_lost_answer_to_a_claim_leads_to_one_run_and_one_outcome(
    ns: WorkerNamespace,
) -> None:
    app, runs = quick_app()
    async with team(
        app,
        identities(ns, 1),
        opener=lambda access: LossySession(access, lose=1, when=is_claim),
        concurrency=2,
    ):
        await asyncio.to_thread(ns.create, "j", "count")
        (status,) = await all_done(ns, ["j"])
    assert (status["phase"], status["attempt"], runs["j"]) == ("Succeeded", 1, 1)
    assert [entry["phase"] for entry in status["history"]] == ["Succeeded"]


async def test_a_lost_answer_to_a_completion_leads_to_one_run_and_one_outcome(
    ns: WorkerNamespace,
) -> None:
    app, runs = quick_app()
    with capture_logs() as logs:
        async with team(
            app,
            identities(ns, 1),
            opener=lambda access: LossySession(
                access, lose=1, when=lambda body: not is_claim(body)
            ),
            concurrency=2,
        ) as people:
            await asyncio.to_thread(ns.create, "j", "count")
            (status,) = await all_done(ns, ["j"])
            await people.until_idle()
            session = people.workers[0]._session
    assert not [entry for entry in logs if "fenced" in entry["event"]]
    assert (status["phase"], status["attempt"], runs["j"]) == ("Succeeded", 1, 1)
    assert isinstance(session, LossySession)
    assert session.left == 0


async def test_any_number_of_lost_answers_leads_to_one_run_and_one_outcome_each(
    ns: WorkerNamespace,
) -> None:
    app, runs = quick_app()
    names = [f"j{number}" for number in range(20)]
    dice = random.Random(1)
    async with team(
        app,
        identities(ns, 2),
        opener=lambda access: LossySession(access, lose=40, when=lambda _: dice.random() < 0.4),
        concurrency=4,
    ):
        for name in names:
            await asyncio.to_thread(ns.create, name, "count")
        done = await all_done(ns, names)
    assert runs == Counter(names)
    assert {(status["phase"], status["attempt"]) for status in done} == {("Succeeded", 1)}


def is_claim(body: Any) -> bool:
    return isinstance(body, dict)
