"""Hooks: what they are told, and that none of them holds up anything."""

import asyncio
import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob import WorkerApp
from asyncjob.app import Event, HandlerError, JobEnded, JobEvent, Resources, WorkerEvent
from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.phase_change import Failure, PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.transitions import Actor, find_transition, targets_of
from asyncjob_worker.execution import hooks as module
from asyncjob_worker.execution.attempt import job_info_of
from asyncjob_worker.execution.hooks import HookEvents, Hooks, job_ended_event
from asyncjob_worker.settings import Settings
from support.parts.worker_parts import ME, NOW, held

NOTHING = Resources({})


def claimed(**changes: Any) -> JobEvent:
    return JobEvent(Event.CLAIMED, job_info_of(held(**changes)), "w")


async def test_hooks_are_told_in_order_sync_or_async_with_resources() -> None:
    app, told = WorkerApp(), list[str]()

    @app.on(Event.CLAIMED)
    def sync(event: JobEvent, *, text: str) -> None:
        told.append(f"{text} {event.job.name}")

    @app.on(Event.CLAIMED)
    async def other(event: JobEvent) -> None:
        told.append(event.job.name)

    hooks = Hooks(app.hooks)
    hooks.start(Resources({str: "sync"}))
    for name in "ab":
        hooks.emit(claimed(name=name))
    assert await hooks.close() == 0
    assert [line for line in told if "sync" in line] == ["sync a", "sync b"]
    assert [line for line in told if "sync" not in line] == ["a", "b"]


@pytest.mark.parametrize("wrong", ["succeeded", lambda _: None], ids=["text", "no events at all"])
def test_a_hook_that_names_what_is_no_event_is_refused(wrong: Any) -> None:
    with pytest.raises(HandlerError, match=r"names its events, not .*@app.on\(Event.SUCCEEDED\)"):
        WorkerApp().on(wrong)


async def test_a_hook_that_fails_is_logged_and_told_the_next() -> None:
    app, told = WorkerApp(), list[str]()

    @app.on(Event.CLAIMED)
    async def bad(event: JobEvent) -> None:
        told.append(event.job.name)
        if event.job.name == "cancels":
            raise asyncio.CancelledError
        raise SystemExit(1) if event.job.name == "exits" else KeyError("x")

    hooks = Hooks(app.hooks)
    hooks.start(NOTHING)
    names = ["fails", "exits", "cancels", "fails"]
    with capture_logs() as logs:
        for name in names:
            hooks.emit(claimed(name=name))
        assert await hooks.close() == 0
    assert told == names
    assert [entry["event"] for entry in logs] == ["hook failed"] * 4


async def test_a_slow_hook_is_given_up_and_holds_up_no_other() -> None:
    app, told, never = WorkerApp(), list[str](), threading.Event()

    @app.on(Event.CLAIMED)
    async def slow(event: JobEvent) -> None:
        await asyncio.Event().wait()

    @app.on(Event.CLAIMED)
    def slow_sync(event: JobEvent) -> None:
        never.wait(30)

    @app.on(Event.CLAIMED)
    async def quick(event: JobEvent) -> None:
        told.append(event.job.name)

    hooks = Hooks(app.hooks, seconds=0.01)
    hooks.start(NOTHING)
    before = threading.active_count()
    with capture_logs() as logs:
        for name in "abc":
            hooks.emit(claimed(name=name))
        await hooks.close()
    assert threading.active_count() <= before + 1
    never.set()
    assert told == ["a", "b", "c"]
    assert [entry["event"] for entry in logs] == ["hook took too long"] * 6


async def test_what_a_hook_cannot_take_is_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    app, told = WorkerApp(), list[str]()

    @app.on(Event.CLAIMED)
    async def hook(event: JobEvent) -> None:
        told.append(event.job.name)

    hooks = Hooks(app.hooks)
    hooks.start(NOTHING)
    with capture_logs() as logs:
        for name in "abcd":
            hooks.emit(claimed(name=name))
        await hooks.close()
    assert told == ["a", "b"]
    assert [entry["dropped"] for entry in logs] == [2]


async def test_at_the_end_a_hook_that_ignores_its_stop_is_left_behind() -> None:
    app, go = WorkerApp(), asyncio.Event()

    @app.on(Event.CLAIMED)
    async def stubborn(event: JobEvent) -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    hooks = Hooks(app.hooks)
    hooks.start(NOTHING)
    hooks.emit(claimed())
    with capture_logs() as logs:
        assert await hooks.close(0.01) == 1
    go.set()
    assert [entry["event"] for entry in logs] == ["hook events dropped"]
    await asyncio.sleep(0.01)


async def test_hooks_are_told_only_what_they_want() -> None:
    app, other, told = WorkerApp(), WorkerApp(), list[str]()

    @other.on(Event.CLAIMED)
    async def scoped(event: JobEvent) -> None:
        told.append(f"scoped {event.job.type}")

    @app.on(Event.WORKER_STARTED, Event.WORKER_STOPPING)
    async def of_worker(event: WorkerEvent) -> None:
        told.append(f"{event.event} {event.namespace} {event.slots}")

    @other.handler("mine")
    async def mine(job: Any) -> None: ...

    app.include(other)
    hooks = Hooks(app.hooks)
    hooks.start(NOTHING)
    telling = HookEvents(hooks, ME, "ns", Settings(concurrency=3))
    telling.worker_started()
    telling.claimed(held())
    telling.claimed(held(spec={"type": "mine"}))
    telling.started(held(spec={"type": "mine"}))
    await hooks.close()
    assert sorted(told) == ["scoped mine", "worker-started ns 3"]


def ended(**changes: Any) -> JobEnded:
    return job_ended_event(held(), changes["move"], "w", 1.5)


def test_an_outcome_becomes_the_event_that_people_expect() -> None:
    job = held().job
    failure = Failure("KeyError", "NotFound", "no such row")
    retried = ended(move=phase_change.fail(job, failure, now=NOW, jitter_sample=0.5))
    assert (retried.event, retried.phase, retried.retry_in) == (
        Event.RETRIED,
        Phase.RETRYING,
        2.0,
    )
    assert (retried.error_type, retried.error_message) == ("KeyError", "no such row")
    assert retried.message.startswith("retry 1 of 3")
    done = ended(move=phase_change.succeed(job, now=NOW))
    assert (done.event, done.reason, done.seconds, done.error_type) == (
        Event.SUCCEEDED,
        None,
        1.5,
        None,
    )
    assert ended(move=phase_change.cancel_running_job(job, "x", now=NOW)).event is Event.CANCELLED
    released = phase_change.release(job, Reason.RELEASED, "x", now=NOW, jitter_sample=0.5)
    assert ended(move=released).event is Event.RELEASED
    late = held(releases=3).job
    waiting = phase_change.release(late, Reason.RELEASED, "x", now=NOW, jitter_sample=0.5)
    assert (waiting.target, ended(move=waiting).event) == (Phase.RETRYING, Event.RELEASED)


def outcomes_of_a_worker() -> list[tuple[Phase, Reason | None]]:
    """Return all that the transition table lets a holder do with its running job."""
    found = list[tuple[Phase, Reason | None]]()
    for target in targets_of(Phase.RUNNING):
        transition = find_transition(Phase.RUNNING, target)
        assert transition is not None
        if Actor.WORKER in transition.actors:
            found += [(target, why) for why in transition.reasons_by_actor[Actor.WORKER] or {None}]
    return sorted(found, key=str)


@pytest.mark.parametrize(("target", "reason"), outcomes_of_a_worker())
def test_each_outcome_that_a_worker_may_store_has_an_event(
    target: Phase, reason: Reason | None
) -> None:
    event = ended(move=PhaseChange(target, reason, {}, None))
    parks = {Reason.SLEEPING, Reason.WAITING_FOR_SIGNAL, Reason.WAITING_FOR_CHILDREN}
    assert (event.event is Event.PARKED, event.phase) == (reason in parks, target)


async def test_an_event_that_cannot_be_built_is_logged_and_fails_no_slot() -> None:
    app, told = WorkerApp(), list[str]()

    @app.on(Event.CLAIMED, Event.PARKED)
    async def hook(event: JobEvent) -> None:
        told.append(event.event)

    hooks = Hooks(app.hooks)
    hooks.start(NOTHING)
    events = HookEvents(hooks, ME, "ns", Settings())
    of_no_event = PhaseChange(Phase.RUNNING, None, {}, None)
    with capture_logs() as logs:
        events.ended(held(), of_no_event, 1.5)
        events.claimed(held())
        await hooks.close()
    assert [entry["event"] for entry in logs] == ["hook event lost"]
    assert told == ["claimed"]


def no_event(event: JobEnded) -> None: ...
async def two(event: JobEnded, more: int) -> None: ...


def test_what_is_no_hook_is_one_line() -> None:
    with pytest.raises(HandlerError, match="names no event"):
        WorkerApp().on()(no_event)
    with pytest.raises(HandlerError, match="takes 2 parameters"):
        WorkerApp().on(Event.SUCCEEDED)(two)
