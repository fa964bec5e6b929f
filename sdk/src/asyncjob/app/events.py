"""Lifecycle events and the hooks that receive them, after the fact."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from asyncjob.app.context import JobInfo
from asyncjob.app.inspection import HandlerError, InspectedFunction, ResourceNeeds, type_name
from asyncjob.lifecycle.phases import Phase, Reason


class Event(StrEnum):
    """What hooks can be told of. Those of a job's end are told once the outcome is stored."""

    WORKER_STARTED = "worker-started"
    WORKER_STOPPING = "worker-stopping"
    CLAIMED = "claimed"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    DEAD_LETTERED = "dead-lettered"
    CANCELLED = "cancelled"
    RELEASED = "released"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """The worker process has started, or has begun to stop.

    `worker` is the identity of the process, `slots` how many jobs it runs at a time.
    """

    event: Event
    worker: str
    namespace: str
    queue: str
    slots: int


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something has happened to a job here: it is claimed, or its handler begins."""

    event: Event
    job: JobInfo
    worker: str


@dataclass(frozen=True, slots=True)
class JobEnded(JobEvent):
    """An attempt has ended and its outcome is stored.

    `seconds` count from the claim to the end of the handler, `retry_in` to the next attempt.
    """

    phase: Phase
    reason: Reason | None
    seconds: float
    message: str = ""
    error_type: str | None = None
    error_category: str | None = None
    error_message: str | None = None
    retry_in: float | None = None


WorkerEventType: TypeAlias = Literal[Event.WORKER_STARTED, Event.WORKER_STOPPING]
JobEndedEventType: TypeAlias = Literal[
    Event.SUCCEEDED,
    Event.RETRIED,
    Event.DEAD_LETTERED,
    Event.CANCELLED,
    Event.RELEASED,
    Event.PARKED,
]
JobEventType: TypeAlias = Literal[Event.CLAIMED, Event.STARTED, JobEndedEventType]

HookEvent: TypeAlias = WorkerEvent | JobEvent
"""What hooks are given."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A registered hook. `types` are the job types whose events it gets; None means all."""

    events: frozenset[Event]
    function: Callable[..., Any]
    is_async: bool
    needs: ResourceNeeds
    label: str
    types: frozenset[str] | None = None

    def handles(self, hook_event: HookEvent) -> bool:
        """Return whether it is to be told."""
        if hook_event.event not in self.events:
            return False
        return (
            isinstance(hook_event, WorkerEvent)
            or self.types is None
            or hook_event.job.type in self.types
        )


def check_events(events: Sequence[object]) -> frozenset[Event]:
    """Return the events that a hook names; raises HandlerError for what is none."""
    for event in events:
        if not isinstance(event, Event):
            raise HandlerError(
                f"a hook names its events, not {type_name(event)}: @app.on(Event.SUCCEEDED)"
            )
    return frozenset(event for event in events if isinstance(event, Event))


def inspect_hook(events: frozenset[Event], function: Callable[..., Any]) -> Hook:
    """Inspect a function; raises HandlerError that says what is wrong with it."""
    inspected = InspectedFunction("hook", function)
    if not events:
        inspected.refuse("it names no event: @app.on(Event.SUCCEEDED)")
    if inspected.is_generator or inspected.is_async_generator:
        inspected.refuse("it yields: a hook has to return")
    if len(inspected.positional) != 1:
        inspected.refuse(f"it takes {len(inspected.positional)} parameters, not (event)")
    return Hook(events, function, inspected.is_async, inspected.needs, inspected.label)
