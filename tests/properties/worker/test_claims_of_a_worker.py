"""What a worker keeps leased and stops, whatever order claims, ends and answers come in.

A worker may claim a job again while an answer about its claim before is still on its way. As long
as the outcome of a claim is not answered its lease is renewed, and a cancel request reaches its
handler; what becomes of one claim changes nothing for another.
"""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, cast

from hypothesis import given
from hypothesis import strategies as st

from asyncjob import JobContext, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob_worker.execution.runner import JobRunner
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.outcome_writer import OutcomeWriter
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING
from support.judging.planted_bugs import BugSearch
from support.parts.worker_parts import attempt_services, held, job, no_hooks

UIDS: Final = ("a", "b")
STEPS: Final = st.lists(
    st.sampled_from(
        [f"claim {uid}" for uid in UIDS]
        + [f"{what} {which}" for what in ("return", "answer") for which in ("first", "last")]
        + [f"cancel {uid}" for uid in UIDS]
    ),
    min_size=4,
    max_size=20,
)


@dataclass(eq=False)
class Claim:
    """A claim of a job, as the test knows it."""

    held: HeldJob
    run: asyncio.Task[None] | None = None
    returns: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    writes: bool = False
    should_stop: bool = False

    @property
    def is_over(self) -> bool:
        """Whether its outcome has been answered."""
        return self.answered.is_set()


class Story:
    """Claims of two jobs by one worker, whose handlers and outcomes end when the test says so."""

    def __init__(self) -> None:
        self._claims: list[Claim] = []
        self._renewed: list[HeldJob] = []
        options = Settings(concurrency=20)
        heartbeat = SimpleNamespace(add=self._renewed.append, remove=self._let_go)
        self._runner = JobRunner(
            self._app(),
            options,
            heartbeat=cast("HeartbeatThread", heartbeat),
            outcome_writer=cast("OutcomeWriter", SimpleNamespace(write=self._write)),
            on_exhausted=lambda: None,
            on_abandoned=lambda _: None,
            services=attempt_services(options),
            events=no_hooks(),
            metrics=Metrics(),
            tracing=NO_TRACING,
        )

    def _app(self) -> WorkerApp:
        app = WorkerApp()

        @app.handler("echo")
        async def echo(_: JobContext, number: int) -> None:
            await self._claims[number].returns.wait()

        return app

    def _let_go(self, of: HeldJob) -> None:
        if of in self._renewed:
            self._renewed.remove(of)

    async def _write(self, of: HeldJob, change: PhaseChange) -> PhaseChange:
        claim = next(claim for claim in self._claims if claim.held is of)
        claim.writes = True
        await claim.answered.wait()
        return change

    async def take(self, step: str) -> None:
        """Do one of `STEPS`, and all that follows from it."""
        what, which = step.split()
        place = -1 if which == "last" else 0
        match what:
            case "claim":
                self._claim(which)
            case "return":
                if running := [one for one in self._claims if not one.writes]:
                    running[place].returns.set()
            case "answer":
                if writing := [one for one in self._claims if one.writes and not one.is_over]:
                    writing[place].answered.set()
            case "cancel":
                self._cancel(which)
        for _ in range(20):
            await asyncio.sleep(0)

    def _claim(self, uid: str) -> None:
        number = len(self._claims)
        claim = Claim(held(uid=uid, claim=f"c{number}", spec={"payload": number}))
        claim.should_stop = self._runner.cancel_watcher.is_cancel_requested(uid)
        self._claims.append(claim)
        claim.run = asyncio.create_task(self._runner.run(claim.held))

    def _cancel(self, uid: str) -> None:
        self._runner.cancel_watcher.apply(WatchEvent("MODIFIED", job(uid=uid)))
        for claim in self._claims:
            claim.should_stop |= claim.held.job.uid == uid and not claim.is_over

    def look(self) -> None:
        """Judge what is renewed and what is stopped."""
        wanted = {id(one.held) for one in self._claims if not one.is_over}
        assert {id(one) for one in self._renewed} == wanted, "renews others than it holds"
        assert {id(one) for one in self._runner.running} == wanted, "runs others than it holds"
        for claim in self._claims:
            stopped = claim.held.stopped is Stop.CANCELLED
            assert stopped == claim.should_stop, "stops others than it should"

    async def end(self) -> None:
        """Have all handlers return and all outcomes answered, and judge what is left."""
        while not all(claim.is_over for claim in self._claims):
            await self.take("return first")
            await self.take("answer first")
            self.look()
        await asyncio.gather(*(cast("Any", claim.run) for claim in self._claims))
        self._runner.close()


def judged(steps: list[str]) -> None:
    """Take the steps, and judge after each."""
    asyncio.run(_play(steps))


async def _play(steps: list[str]) -> None:
    story = Story()
    for step in steps:
        await story.take(step)
        story.look()
    await story.end()


@given(steps=STEPS)
def test_each_claim_is_renewed_and_can_be_stopped_until_its_outcome_is_answered(
    steps: list[str],
) -> None:
    judged(steps)


def test_the_search_finds_a_worker_that_tells_claims_apart_by_their_job_alone(
    bug_search: BugSearch,
) -> None:
    bug_search.finds("heartbeats by job", STEPS, judged, broken="renews others")
