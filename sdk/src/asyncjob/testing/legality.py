"""Holds every stored change of status to the table of transitions.

The API server checks more; but a step that the table does not know is a mistake of the kit, or of
a rule it shares with the operator and the workers, and must not go unnoticed.
"""

from typing import Final

from asyncjob.json_types import JsonObject, integer, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import StatusCounter, Transition, find_transition
from asyncjob.testing.errors import IllegalTransitionError

_REDRIVE: Final = (Phase.DEAD_LETTER, Phase.QUEUED)
_BUDGET_COUNTERS: Final = (StatusCounter.RETRIES, StatusCounter.CRASHES, StatusCounter.RELEASES)


def check_transition(name: str, before: JsonObject, after: JsonObject) -> None:
    """Raise IllegalTransitionError unless a job may go from the one status to the other."""
    source, target = Phase(text(before, "phase")), Phase(text(after, "phase"))
    if source is target:
        _check_same_phase(name, before, after)
        return
    edge = find_transition(source, target)
    if edge is None:
        raise IllegalTransitionError(f"{name}: no edge leads from {source} to {target}")
    reason = text(after, "reason")
    if reason not in (edge.reasons or {""}):
        raise IllegalTransitionError(
            f"{name}: reason {reason!r} does not lead from {source} to {target}"
        )
    _check_counters(name, edge, before, after)


def _check_same_phase(name: str, before: JsonObject, after: JsonObject) -> None:
    for counter in StatusCounter:
        if integer(before, counter) != integer(after, counter):
            raise IllegalTransitionError(f"{name}: {counter} changed without a change of phase")


def _check_counters(name: str, edge: Transition, before: JsonObject, after: JsonObject) -> None:
    if (edge.source, edge.target) == _REDRIVE:
        if any(integer(after, budget) for budget in _BUDGET_COUNTERS):
            raise IllegalTransitionError(f"{name}: a redrive starts the budgets anew")
        return
    for counter in StatusCounter:
        grown = integer(after, counter) - integer(before, counter)
        if grown not in ({0, 1} if counter in edge.incremented else {0}):
            raise IllegalTransitionError(
                f"{name}: {counter} grew by {grown} from {edge.source} to {edge.target}"
            )
