"""Child jobs as handlers submit them: what an attempt comes to with them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob import JobContext, WorkerApp
from asyncjob.app import Child
from asyncjob.app.context import Stop
from asyncjob.app.errors import SubmitRefusedError
from asyncjob.errors import (
    ApiError,
    InvalidError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.attempt import Attempt, AttemptServices
from asyncjob_worker.execution.children.child_jobs import AttemptChildJobs
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
        object_store=tools.object_store,
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
    with pytest.raises(asyncio.CancelledError):
        await kept[0].submit("leaf", 2)
    with pytest.raises(asyncio.CancelledError):
        await kept[1]
    assert len(session.made("create")) == 1


def sleeper(*, threaded: bool, count: int, looks: bool = False) -> WorkerApp:
    """Return an app whose handler submits children that it does not await, and parks."""
    app = WorkerApp()
    seen = pytest.raises(SubmitRefusedError) if looks else nullcontext()

    async def echo(job: JobContext) -> None:
        sent = [job.submit("leaf", 1, key=str(number)) for number in range(count)]
        with seen:
            await sent[0] if looks else None
        await job.sleep("nap", hours=1)

    def echo_in_thread(job: JobContext) -> None:
        sent = [job.submit("leaf", 1, key=str(number)) for number in range(count)]
        with seen:
            sent[0].result() if looks else None
        job.sleep("nap", hours=1).result()

    app.handler("echo")(echo_in_thread if threaded else echo)
    return app


class SlowSession(ScriptedSession):
    """Stores children one turn of the loop later, so that a park could overtake them."""

    async def create(self, path: str, body: Any) -> JsonObject:
        for _ in range(20):
            await asyncio.sleep(0)
        return await super().create(path, body)


def parking_services() -> AttemptServices:
    async def may_park(_: object) -> bool:
        return True

    return attempt_services(may_park=may_park)


@pytest.mark.parametrize("threaded", [False, True])
async def test_before_a_park_all_that_was_submitted_is_stored(threaded: bool) -> None:
    tools = parking_services()
    app = sleeper(threaded=threaded, count=30)
    session = SlowSession(create=[stored(an_order())] * 30)
    move = await run(app, session, tools, held())
    tools.executor.close()
    assert move
    assert (move.target, move.reason) == (Phase.SCHEDULED, Reason.SLEEPING)
    assert len(session.calls) == 30


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("looks", [False, True])
async def test_an_error_of_a_submission_before_a_park_is_left_to_the_next_attempt(
    threaded: bool, looks: bool
) -> None:
    """That submits it again: a handler that looks at it after its wait catches it there."""
    tools = parking_services()
    app = sleeper(threaded=threaded, count=1, looks=looks)
    move = await run(app, SlowSession(create=[InvalidError("no")]), tools, held())
    tools.executor.close()
    assert move
    assert move.target is Phase.SCHEDULED


async def test_a_stop_while_submissions_are_awaited_before_a_park_counts() -> None:
    tools, of = parking_services(), held()

    def drain(call: Call) -> ApiError:
        of.stop(Stop.DRAINING)
        return UnknownOutcomeError("reset")

    with capture_logs():
        app = sleeper(threaded=False, count=1)
        move = await run(app, SlowSession(create=[drain]), tools, of)
    tools.executor.close()
    assert move
    assert move.target is Phase.QUEUED


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


async def test_no_child_is_submitted_after_the_deadline_of_the_job(tools: AttemptServices) -> None:
    """It passes while the API server takes none; the time limit of the attempt is far away."""
    app, of = WorkerApp(), held(spec={"deadlineSeconds": 60})

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        job.submit("leaf", 1)

    def pass_deadline(call: Call) -> ApiError:
        of.deadline_at = boottime()
        return UnknownOutcomeError("reset")

    session = ScriptedSession(create=[pass_deadline, stored(an_order())])
    with capture_logs():
        move = await run(app, session, tools, of)
    assert move
    assert (move.target, move.fields["reason"]) == (Phase.CANCELLED, Reason.DEADLINE_EXCEEDED)
    assert len(session.calls) == 1


async def test_a_submission_that_is_not_answered_ends_with_the_deadline_of_the_job(
    tools: AttemptServices,
) -> None:
    app, of = WorkerApp(), held(spec={"deadlineSeconds": 60})

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        job.submit("leaf", 1)

    class SilentSession(ScriptedSession):
        async def create(self, path: str, body: Any) -> JsonObject:
            of.deadline_at = boottime() + 0.05
            await asyncio.sleep(0)
            await asyncio.Event().wait()
            raise AssertionError(path, body)

    async with asyncio.timeout(10):
        move = await run(app, SilentSession(), tools, of)
    assert move
    assert (move.target, move.fields["reason"]) == (Phase.CANCELLED, Reason.DEADLINE_EXCEEDED)


async def test_result_in_the_event_loop_is_a_clear_mistake(tools: AttemptServices) -> None:
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        with pytest.raises(RuntimeError, match="await it in an async handler"):
            job.submit("leaf", 1).result()

    move = await run(app, ScriptedSession(create=[stored(an_order())]), tools, held())
    assert move
    assert move.target is Phase.SUCCEEDED


BLOCKING: dict[str, Callable[[JobContext, Child], object]] = {
    "wait": lambda _, child: child.wait().result(),
    "wait, too short to park": lambda _, child: child.wait(1.5).result(),
    "gather": lambda job, child: job.gather(child).result(),
    "submit": lambda job, _: job.submit("leaf", 2).result(),
}


@pytest.mark.parametrize("why", [Stop.CANCELLED, Stop.DRAINING, Stop.FENCED])
@pytest.mark.parametrize("call", BLOCKING)
async def test_a_thread_that_is_stopped_hears_of_it_at_once_and_undoes_nothing(
    tools: AttemptServices, call: str, why: Stop
) -> None:
    app, of, heard = WorkerApp(), held(), list[str]()

    @app.handler("echo")
    def echo(job: JobContext) -> None:
        child = job.submit("leaf", 1).result()
        of.stop(why)
        try:
            BLOCKING[call](job, child)
        except Exception:  # noqa: BLE001  # what a handler does to undo its work
            heard.append("undone")
        except asyncio.CancelledError:
            heard.append("over")

    order = an_order()
    session = ScriptedSession(create=[stored(order)], get=[stored(order, phase="Running")])
    own = AttemptServices(
        tools.executor,
        tools.payloads,
        tools.results,
        children=lambda one: AttemptChildJobs(session.session, one),
        steps=tools.steps,
        object_store=tools.object_store,
    )
    move = await Attempt(of, app.handlers["echo"], app, Settings(), own, on_start=ignore).run()
    targets = {Stop.CANCELLED: Phase.CANCELLED, Stop.DRAINING: Phase.QUEUED, Stop.FENCED: None}
    assert (move and move.target, heard) == (targets[why], ["over"])
