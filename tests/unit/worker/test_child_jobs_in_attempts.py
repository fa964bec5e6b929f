"""Child jobs as handlers submit them: what an attempt comes to with them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob import JobContext, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.app.errors import AttemptOverError, SubmitRefusedError
from asyncjob.errors import (
    ApiError,
    InvalidError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.execution.attempt import Attempt, AttemptServices
from asyncjob_worker.execution.child_jobs import AttemptChildJobs
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import Settings
from support.parts.callbacks import ignore
from support.parts.child_jobs import an_order, stored
from support.parts.worker_parts import Call, Pauses, ScriptedSession, attempt_services, held


@pytest.fixture
def tools() -> Iterator[AttemptServices]:
    made = attempt_services()
    yield made
    made.executor.close()


async def run(
    app: WorkerApp, session: ScriptedSession, tools: AttemptServices, of: HeldJob
) -> PhaseChange | None:
    own = AttemptServices(
        tools.executor,
        tools.payloads,
        tools.results,
        children=lambda one: AttemptChildJobs(session.session, one, pause=Pauses()),
        steps=tools.steps,
    )
    return await Attempt(of, app.handlers["echo"], app, Settings(), own, on_start=ignore).run()


async def test_a_success_counts_once_all_that_was_submitted_is_stored(
    tools: AttemptServices,
) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> str:
        return job.submit("leaf", 1).name

    session = ScriptedSession(create=[UnknownOutcomeError("reset"), stored(an_order())])
    with capture_logs():
        move = await run(app, session, tools, held())
    assert move
    assert move.fields["result"] == an_order().name
    assert len(session.calls) == 2


@pytest.mark.parametrize("looks", [False, True])
async def test_an_error_that_nobody_has_seen_fails_the_attempt(
    tools: AttemptServices, looks: bool
) -> None:
    app = WorkerApp()

    @app.handler("echo")
    def echo(job: JobContext) -> str:
        sent = job.submit("leaf", 1)
        if looks:
            with pytest.raises(SubmitRefusedError):
                sent.result()
        return "done"

    move = await run(app, ScriptedSession(create=[InvalidError("no")]), tools, held())
    assert move
    assert move.target is (Phase.SUCCEEDED if looks else Phase.RETRYING)


async def test_after_the_handler_has_returned_nothing_more_is_sent_or_awaited(
    tools: AttemptServices,
) -> None:
    app, kept = WorkerApp(), list[Any]()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        child = await job.submit("leaf", 1)
        kept.extend([job, child.wait()])

    order = an_order()
    session = ScriptedSession(create=[stored(order)], get=[stored(order, phase="Running")])
    await run(app, session, tools, held())
    with pytest.raises(AttemptOverError):
        await kept[0].submit("leaf", 2)
    with pytest.raises(asyncio.CancelledError):
        await kept[1]
    assert len(session.made("create")) == 1


async def test_a_stop_while_submissions_are_awaited_counts(tools: AttemptServices) -> None:
    app, of = WorkerApp(), held()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        job.submit("leaf", 1)

    def drain(call: Call) -> ApiError:
        of.stop(Stop.DRAINING)
        return UnknownOutcomeError("reset")

    with capture_logs():
        move = await run(app, ScriptedSession(create=[drain]), tools, of)
    assert move
    assert move.target is Phase.QUEUED


async def test_result_in_the_event_loop_is_a_clear_mistake(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        with pytest.raises(RuntimeError, match="await it in an async handler"):
            job.submit("leaf", 1).result()

    move = await run(app, ScriptedSession(create=[stored(an_order())]), tools, held())
    assert move
    assert move.target is Phase.SUCCEEDED


async def test_a_thread_that_waits_for_a_child_hears_of_the_stop_at_once(
    tools: AttemptServices,
) -> None:
    app, of, heard = WorkerApp(), held(), list[str]()

    @app.handler("echo")
    def echo(job: JobContext) -> None:
        child = job.submit("leaf", 1).result()
        waiting = child.wait()
        of.stop(Stop.CANCELLED)
        try:
            waiting.result()
        except AttemptOverError:
            heard.append("over")

    order = an_order()
    session = ScriptedSession(create=[stored(order)], get=[stored(order, phase="Running")])
    own = AttemptServices(
        tools.executor,
        tools.payloads,
        tools.results,
        children=lambda one: AttemptChildJobs(session.session, one),
        steps=tools.steps,
    )
    move = await Attempt(of, app.handlers["echo"], app, Settings(), own, on_start=ignore).run()
    assert move
    assert (move.target, heard) == (Phase.CANCELLED, ["over"])
