"""Handlers with resources, inside middleware."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from asyncjob import Fail, JobContext, Retry, WorkerApp
from asyncjob.app import CallNext, HandlerError, Resources
from asyncjob.app.context import Stop
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.execution.attempt import Attempt
from asyncjob_worker.execution.handler_task import MiddlewareStarter
from asyncjob_worker.isolation.executor import HandlerExecutor, RunningHandler
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import Settings
from support.parts.callbacks import ignore
from support.parts.worker_parts import attempt_services, held

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
TEXT = Resources({str: "resource"})


class MiddlewareHarness:
    """An app whose handler and middleware note what they do."""

    def __init__(self) -> None:
        self.app = WorkerApp()
        self.steps: list[str] = []
        self.tools = attempt_services()
        self.abandoned = False

    def wrap(self, name: str) -> None:
        @self.app.middleware
        async def layer(job: JobContext, call_next: CallNext) -> Any:
            self.steps.append(f"{name} in")
            result = await call_next()
            self.steps.append(f"{name} out")
            return result

    async def run(self, of: HeldJob | None = None, **settings: Any) -> PhaseChange | None:
        tools = replace(self.tools, resources=TEXT)
        of = of or held()
        attempt = Attempt(
            of, self.app.handlers["echo"], self.app, Settings(**settings), tools, on_start=ignore
        )
        move = await attempt.run()
        self.abandoned = attempt.abandoned is not None
        return move


@pytest.fixture
def harness() -> Iterator[MiddlewareHarness]:
    made = MiddlewareHarness()
    yield made
    made.tools.executor.close()


def register(harness: MiddlewareHarness, *, sync: bool) -> None:
    if sync:

        @harness.app.handler("echo")
        def echo_sync(job: JobContext, payload: Any, *, text: str) -> Any:
            harness.steps.append("handler")
            return [payload, text, VARIABLE.get()]

    else:

        @harness.app.handler("echo")
        async def echo(job: JobContext, payload: Any, *, text: str) -> Any:
            harness.steps.append("handler")
            return [payload, text, VARIABLE.get()]


@pytest.mark.parametrize("sync", [False, True])
async def test_the_first_registered_is_outermost_and_resources_come_by_name(
    harness: MiddlewareHarness, sync: bool
) -> None:
    register(harness, sync=sync)
    harness.wrap("a")
    harness.wrap("b")
    move = await harness.run(held(spec={"payload": 1}))
    assert move
    assert move.fields["result"] == [1, "resource", "unset"]
    assert harness.steps == ["a in", "b in", "handler", "b out", "a out"]


@pytest.mark.parametrize("sync", [False, True])
async def test_context_variables_of_middleware_reach_the_handler(
    harness: MiddlewareHarness, sync: bool
) -> None:
    register(harness, sync=sync)

    @harness.app.middleware
    async def layer(job: JobContext, call_next: CallNext, *, text: str) -> Any:
        VARIABLE.set(f"{job.name} {text}")
        return [await call_next(), "more"]

    move = await harness.run()
    assert move
    assert move.fields["result"] == [[None, "resource", "j resource"], "more"]


@pytest.mark.parametrize(
    ("error", "target", "reason"),
    [
        (Retry(after=1), Phase.RETRYING, Reason.RETRY_REQUESTED),
        (Fail("no"), Phase.DEAD_LETTER, Reason.NOT_RETRYABLE),
        (OSError("x"), Phase.RETRYING, Reason.HANDLER_FAILED),
    ],
)
async def test_what_a_middleware_raises_is_as_if_the_handler_had(
    harness: MiddlewareHarness, error: Exception, target: Phase, reason: Reason
) -> None:
    register(harness, sync=False)

    @harness.app.middleware
    async def layer(job: JobContext, call_next: CallNext) -> Any:
        raise error

    move = await harness.run()
    assert move
    assert (move.target, move.reason) == (target, reason)
    assert harness.steps == []


async def test_a_middleware_sees_what_the_handler_raises(harness: MiddlewareHarness) -> None:
    @harness.app.handler("echo")
    def echo(job: JobContext) -> None:
        raise KeyError("missing")

    @harness.app.middleware
    async def layer(job: JobContext, call_next: CallNext) -> Any:
        try:
            return await call_next()
        except KeyError:
            return "none"

    move = await harness.run()
    assert move
    assert move.fields["result"] == "none"


async def test_sys_exit_within_middleware_is_a_failure(harness: MiddlewareHarness) -> None:
    harness.wrap("a")

    @harness.app.handler("echo")
    async def echo(job: JobContext) -> None:
        raise SystemExit(3)

    move = await harness.run()
    assert move
    assert "sys.exit(3)" in str(move.fields["message"])


async def test_a_time_limit_of_a_middleware_is_not_over_before_the_thread_is(
    harness: MiddlewareHarness,
) -> None:
    ended, limit = threading.Event(), asyncio.timeout(None)
    loop = asyncio.get_running_loop()

    @harness.app.handler("echo")
    def echo(job: JobContext) -> str:
        loop.call_soon_threadsafe(limit.reschedule, 0)
        assert job._stopping.wait(10)
        ended.set()
        return "late"

    @harness.app.middleware
    async def impatient(job: JobContext, call_next: CallNext) -> Any:
        async with limit:
            return await call_next()

    move = await harness.run()
    assert ended.is_set()
    assert move
    assert move.fields["error"] == {"type": "TimeoutError", "category": "Timeout"} | {
        "message": "TimeoutError"
    }


@pytest.mark.parametrize("sync", [False, True])
async def test_a_handler_in_middleware_that_ignores_its_stop_is_abandoned(
    harness: MiddlewareHarness, sync: bool
) -> None:
    of, go = held(), threading.Event()
    harness.wrap("a")
    if sync:

        @harness.app.handler("echo")
        def stubborn_sync(job: JobContext) -> None:
            of.stop(Stop.DRAINING)
            go.wait(30)

    else:

        @harness.app.handler("echo")
        async def stubborn(job: JobContext) -> None:
            of.stop(Stop.DRAINING)
            while not go.is_set():
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    continue

    move = await harness.run(of, stop_grace_seconds=0.01)
    go.set()
    assert move
    assert (move.target, harness.abandoned) == (Phase.QUEUED, True)


async def test_what_can_be_killed_is_killed_through_the_middleware(
    harness: MiddlewareHarness,
) -> None:
    killed: list[str] = []
    over: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    class Killable(HandlerExecutor):
        def start(self, handler: Any, context: Any, payload: object) -> RunningHandler:
            if handler.isolation == "loop":
                return super().start(handler, context, payload)

            def kill() -> None:
                killed.append(context.name)
                over.set_exception(ProcessLookupError())

            return RunningHandler(over, lambda: None, kill)

    harness.wrap("a")
    register(harness, sync=True)
    handler = harness.app.handlers["echo"]
    object.__setattr__(handler, "isolation", "elsewhere")
    starts = Killable(1)
    job: Any = SimpleNamespace(name="j", stop=lambda: None)
    started = MiddlewareStarter(harness.app, starts, Resources({})).start(handler, job, None)
    await asyncio.sleep(0)
    started.interrupt()
    await asyncio.sleep(0)
    assert not started.future.done()
    assert started.kill
    started.kill()
    with pytest.raises(asyncio.CancelledError):
        await started.future
    starts.close()
    assert killed == ["j"]


async def plain(job: JobContext) -> None: ...
def sync_layer(job: JobContext, call_next: CallNext) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"), [(plain, "takes 1 parameters"), (sync_layer, "has to be `async def`")]
)
def test_what_is_no_middleware_is_one_line(function: Any, words: str) -> None:
    with pytest.raises(HandlerError, match=words):
        WorkerApp().middleware(function)


async def test_an_included_apps_middleware_wraps_its_own_handlers_within_the_apps(
    harness: MiddlewareHarness,
) -> None:
    other = MiddlewareHarness()
    other.steps = harness.steps
    other.wrap("inner")
    register(other, sync=False)
    harness.wrap("outer")
    harness.app.handler("own")(plain)
    harness.app.include(other.app)
    await harness.run()
    assert harness.steps == ["outer in", "inner in", "handler", "inner out", "outer out"]
    assert len(harness.app.middleware_of(harness.app.handlers["own"])) == 1
    other.tools.executor.close()
