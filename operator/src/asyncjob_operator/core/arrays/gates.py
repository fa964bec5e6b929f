"""What an array waits for before its first chunk is cut: its `notBefore` and its `dependsOn`.

As for jobs: until its time nothing is asked of its dependencies, and once it has started neither
matters any more.
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
)
from asyncjob_operator.core.policies.gates import children_precondition


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
    over = array.state.has_started or array.state.phase in ENDED_ARRAY_PHASES
    if over or not array.gated:
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
