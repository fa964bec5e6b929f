"""The state machine as data.

Every legal change of phase, who makes it, why, and which counters it increments. CEL rules,
documentation and tests are generated from this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from asyncjob.lifecycle.phases import LOST_WORKER_REASONS, Phase, Reason


class Actor(StrEnum):
    """Who makes a transition."""

    WORKER = "worker"
    OPERATOR = "operator"


class StatusCounter(StrEnum):
    """Counters in `status`; each grows by at most one, by the transitions that name it."""

    ATTEMPT = "attempt"
    RETRIES = "retries"
    CRASHES = "crashes"
    RELEASES = "releases"
    PARKS = "parks"


ReasonSet = frozenset[Reason]

_NO_REASON: ReasonSet = frozenset()


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal change of phase: who makes it and for which reasons, and which counters may grow.

    An actor with an empty set of reasons makes it without one: the status then has no `reason`.
    """

    source: Phase
    target: Phase
    reasons_by_actor: Mapping[Actor, ReasonSet]
    description: str
    incremented: frozenset[StatusCounter] = field(default=frozenset())

    @property
    def actors(self) -> frozenset[Actor]:
        """Who makes it."""
        return frozenset(self.reasons_by_actor)

    @property
    def reasons(self) -> ReasonSet:
        """Why it is made, by either actor."""
        return _NO_REASON.union(*self.reasons_by_actor.values())


def _by_worker(*reasons: Reason) -> dict[Actor, ReasonSet]:
    return {Actor.WORKER: frozenset(reasons)}


def _by_operator(*reasons: Reason) -> dict[Actor, ReasonSet]:
    return {Actor.OPERATOR: frozenset(reasons)}


def _cancel_transition(source: Phase) -> Transition:
    by = _by_operator(Reason.CANCEL_REQUESTED, Reason.DEADLINE_EXCEEDED, Reason.DUPLICATE)
    when = (
        "`cancel` is set; `notAfter` passed before the first start; `deadlineSeconds` passed; the "
        "job is a duplicate."
    )
    return Transition(source, Phase.CANCELLED, by, when)


def _dead_letter_transition(source: Phase) -> Transition:
    by = _by_operator(Reason.QUEUE_TIMEOUT, Reason.UNKNOWN_TYPE, Reason.DEPENDENCY_FAILED)
    when = "Queue timeout; a type nobody knows, if the queue says so; a dependency failed."
    return Transition(source, Phase.DEAD_LETTER, by, when)


def _queue_transition(source: Phase, when: str, *reasons: Reason) -> Transition:
    return Transition(source, Phase.QUEUED, _by_operator(*reasons), when)


TRANSITIONS: tuple[Transition, ...] = (
    Transition(
        Phase.QUEUED,
        Phase.RUNNING,
        _by_worker(),
        "A worker claims it: attempt + 1, a new claim, the lease in its own name.",
        incremented=frozenset({StatusCounter.ATTEMPT}),
    ),
    Transition(
        Phase.QUEUED,
        Phase.SCHEDULED,
        _by_operator(Reason.NOT_BEFORE),
        "`notBefore` lies ahead.",
    ),
    Transition(
        Phase.QUEUED,
        Phase.PENDING,
        _by_operator(
            Reason.WAITING_FOR_DEPENDENCY,
            Reason.SUSPENDED,
            Reason.QUEUE_PAUSED,
            Reason.CONCURRENCY_LIMIT,
            Reason.RATE_LIMIT,
        ),
        "It waits for something it should name.",
    ),
    _cancel_transition(Phase.QUEUED),
    _cancel_transition(Phase.PENDING),
    _cancel_transition(Phase.SCHEDULED),
    _cancel_transition(Phase.RETRYING),
    _dead_letter_transition(Phase.QUEUED),
    _dead_letter_transition(Phase.PENDING),
    _queue_transition(
        Phase.PENDING,
        "What it waited for has come; for a parked job, a signal, the end of its children or of "
        "its wait.",
        Reason.GATE_OPENED,
        Reason.WAIT_OVER,
    ),
    _queue_transition(
        Phase.SCHEDULED,
        "`notBefore` has passed, or the sleep of a parked job is over.",
        Reason.START_TIME_REACHED,
        Reason.WAIT_OVER,
    ),
    _queue_transition(Phase.RETRYING, "The backoff is over.", Reason.BACKOFF_ELAPSED),
    Transition(Phase.RUNNING, Phase.SUCCEEDED, _by_worker(), "The handler returned."),
    Transition(
        Phase.RUNNING,
        Phase.RETRYING,
        {
            **_by_worker(
                Reason.HANDLER_FAILED,
                Reason.RETRY_REQUESTED,
                Reason.EXECUTION_TIMEOUT,
                Reason.HANDLER_CRASHED,
                Reason.RELEASED,
            ),
            **_by_operator(
                Reason.LEASE_EXPIRED,
                Reason.WORKER_CRASHED,
                Reason.WORKER_GONE,
                Reason.EXECUTION_TIMEOUT,
            ),
        },
        "A failure with retries left, a crash with crash budget left that is not the first of a "
        "lost worker, or a release beyond the third; by the operator once the worker is lost or "
        "the attempt timed out.",
        frozenset({StatusCounter.RETRIES, StatusCounter.CRASHES, StatusCounter.RELEASES}),
    ),
    Transition(
        Phase.RUNNING,
        Phase.QUEUED,
        {
            **_by_worker(Reason.RELEASED),
            **_by_operator(Reason.WORKER_GONE, *sorted(LOST_WORKER_REASONS)),
        },
        "Released by its worker, or by the operator once the worker is gone without having failed; "
        "at most three times. Or taken by the operator from a lost worker: its first crash.",
        frozenset({StatusCounter.RELEASES, StatusCounter.CRASHES}),
    ),
    Transition(
        Phase.RUNNING,
        Phase.SCHEDULED,
        _by_worker(Reason.SLEEPING),
        "Parked: its handler sleeps, and holds no slot meanwhile.",
        frozenset({StatusCounter.PARKS}),
    ),
    Transition(
        Phase.RUNNING,
        Phase.PENDING,
        _by_worker(Reason.WAITING_FOR_SIGNAL, Reason.WAITING_FOR_CHILDREN),
        "Parked: its handler waits for a signal or for child jobs, and holds no slot meanwhile.",
        frozenset({StatusCounter.PARKS}),
    ),
    Transition(
        Phase.RUNNING,
        Phase.DEAD_LETTER,
        {
            **_by_worker(
                Reason.RETRIES_EXHAUSTED,
                Reason.CRASH_BUDGET_EXHAUSTED,
                Reason.NOT_RETRYABLE,
                Reason.INVALID_PAYLOAD,
                Reason.RESULT_REFUSED,
                Reason.EXECUTION_TIMEOUT,
            ),
            **_by_operator(
                Reason.RETRIES_EXHAUSTED,
                Reason.CRASH_BUDGET_EXHAUSTED,
                Reason.EXECUTION_TIMEOUT,
            ),
        },
        "Retries or crash budget spent, not retryable, payload or result refused. A release "
        "beyond the hundredth counts as a crash, and may spend the last.",
        frozenset({StatusCounter.CRASHES, StatusCounter.RELEASES}),
    ),
    Transition(
        Phase.RUNNING,
        Phase.CANCELLED,
        {
            **_by_worker(Reason.CANCEL_REQUESTED, Reason.DEADLINE_EXCEEDED),
            **_by_operator(Reason.CANCEL_REQUESTED, Reason.DEADLINE_EXCEEDED),
        },
        "`cancel` is set, or `deadlineSeconds` passed: by the worker, or by the operator after the "
        "grace period.",
    ),
    _queue_transition(
        Phase.DEAD_LETTER,
        "`redrive` was increased; retries, crashes, releases and parks start from 0.",
        Reason.REDRIVEN,
    ),
    Transition(
        Phase.DEAD_LETTER,
        Phase.CANCELLED,
        _by_operator(Reason.DISMISSED),
        "Dismissed: `cancel` on a dead letter.",
    ),
)

_BY_PAIR: dict[tuple[Phase, Phase], Transition] = {
    (transition.source, transition.target): transition for transition in TRANSITIONS
}


def find_transition(source: Phase, target: Phase) -> Transition | None:
    """Return the transition between two phases, or None where there is none."""
    return _BY_PAIR.get((source, target))


def targets_of(source: Phase) -> tuple[Phase, ...]:
    """Return the phases a job may go to from the given one, in the table's order."""
    return tuple(transition.target for transition in TRANSITIONS if transition.source is source)
