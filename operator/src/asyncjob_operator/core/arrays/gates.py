"""Why an array does not go on: its `notBefore`, its `dependsOn`, or that no worker takes it.

As for jobs: until its time nothing is asked of its dependencies, and once it has started neither
matters any more. That no worker takes it is told after a while only: workers that start, or come
and go, are no news.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.arrays.observed import ArrayGate
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayView
from asyncjob_operator.core.decision import Precondition
from asyncjob_operator.core.dependencies import Dependencies, waiting_message
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.dead_letters import (
    DependencyFailure,
    Missing,
    dependency_failure,
    listed_types,
)
from asyncjob_operator.core.policies.gates import children_precondition
from asyncjob_operator.core.workers import UnservedType


@dataclass(frozen=True, slots=True)
class StartCheck:
    """Whether an array may start."""

    gate: ArrayGate | None = None
    """Why it may not, or never will; None if it may."""

    recheck_at: float | None = None
    """When time may change that, in monotonic seconds."""

    precondition: Precondition | None = None
    """What live reads must confirm before it is started, or is failed."""


MAY_START: Final = StartCheck()


def check_start(
    array: ArrayView, dependencies: Dependencies, missing: Missing, now: Now
) -> StartCheck:
    """Return whether an array may cut its first chunk."""
    if array.state.has_started or array.state.phase in ENDED_ARRAY_PHASES:
        return MAY_START
    if time := time_ahead(array, now):
        gate = ArrayGate(ArrayReason.NOT_BEFORE, f"starts at {time}")
        return StartCheck(gate, now.recheck_at(time))
    failed = dependency_failure(dependencies, array.namespace, missing, now)
    if isinstance(failed, DependencyFailure):
        gate = ArrayGate(ArrayReason.DEPENDENCY_FAILED, failed.message)
        return StartCheck(gate, precondition=failed.precondition)
    if dependencies.unmet:
        gate = ArrayGate(ArrayReason.WAITING_FOR_DEPENDENCY, waiting_message(dependencies.unmet))
        return StartCheck(gate, failed.until if failed else None)
    return StartCheck(precondition=children_precondition(dependencies, array.namespace))


def time_ahead(array: ArrayView, now: Now) -> str | None:
    """Return the `notBefore` of an array as long as it lies ahead."""
    time = array.not_before
    return time if time is not None and now.seconds_until(time) > 0 else None


NO_WORKER_SECONDS: Final = 30.0
"""For how long none of an array's chunks has run, and nobody could, before that is told."""


@dataclass(frozen=True, slots=True)
class IdleCheck:
    """What is told of an array none of whose chunks runs, and when to look again."""

    message: str = ""
    recheck_at: float | None = None


def check_workers(
    array: ArrayView,
    idle_since: float | None,
    unserved: UnservedType | None,
    workers: int | None,
    now: float,
) -> IdleCheck:
    """Return why no worker takes the chunks of an array, if none can.

    `unserved` is about the type of its chunks, `workers` is how many its queue has, None if that is
    not known; times are monotonic seconds.
    """
    if idle_since is None:
        return IdleCheck()
    told = array.state.message if array.state.reason is ArrayReason.NO_WORKER else ""
    if now < idle_since + NO_WORKER_SECONDS:
        # A replica that has just taken over keeps what the one before it has told.
        return IdleCheck(told, idle_since + NO_WORKER_SECONDS)
    if unserved is None:
        return IdleCheck("" if workers != 0 else f"queue {array.queue} has no worker")
    if now < unserved.since + NO_WORKER_SECONDS:
        return IdleCheck(told, unserved.since + NO_WORKER_SECONDS)
    return IdleCheck(_lacks_handler(array, unserved))


def _lacks_handler(array: ArrayView, unserved: UnservedType) -> str:
    stores = " that stores results" if array.results_folder else ""
    lacks = f"no live worker of queue {array.queue} has an item handler for {array.type}{stores}; "
    if array.type in unserved.listed_types:
        return lacks + "one has a plain handler of the name, not an @app.item_handler"
    return lacks + listed_types(unserved)
