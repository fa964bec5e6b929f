"""What an array waits for before its first chunk is cut: its `notBefore` and its `dependsOn`.

As for jobs: once it has started, neither matters any more.
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
    failed = dependency_failure(dependencies, array.namespace, missing, now)
    if isinstance(failed, DependencyFailure):
        gate = ArrayGate(ArrayReason.DEPENDENCY_FAILED, failed.message)
        return StartCheck(gate, precondition=failed.precondition)
    until = failed.until if failed else None
    if array.not_before and now.seconds_until(array.not_before) > 0:
        gate = ArrayGate(ArrayReason.NOT_BEFORE, f"starts at {array.not_before}")
        return StartCheck(gate, _earlier(until, now.recheck_at(array.not_before)))
    if dependencies.unmet:
        message = waiting_message(dependencies.unmet)
        return StartCheck(ArrayGate(ArrayReason.WAITING_FOR_DEPENDENCY, message), until)
    return StartCheck(precondition=children_precondition(dependencies, array.namespace))


def _earlier(first: float | None, other: float) -> float:
    return other if first is None else min(first, other)
