"""Phases of a job and the reasons for being in one.

Closed lists. What each reason means stands in `asyncjob.explanations`.
"""

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where a job is in its life."""

    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    QUEUED = "Queued"
    RUNNING = "Running"
    RETRYING = "Retrying"
    SUCCEEDED = "Succeeded"
    DEAD_LETTER = "DeadLetter"
    CANCELLED = "Cancelled"


PHASE_DOCS: dict[Phase, str] = {
    Phase.PENDING: "Waits for something that `reason` names: a dependency, a paused or full queue, "
    "or, while it is parked, a signal or child jobs.",
    Phase.SCHEDULED: "Waits for `spec.notBefore`, or is parked while its handler sleeps.",
    Phase.QUEUED: "Waits for a worker; every job is created here.",
    Phase.RUNNING: "A worker holds the lease and runs the handler.",
    Phase.RETRYING: "An attempt failed; waits for its backoff.",
    Phase.SUCCEEDED: "The handler returned. Final.",
    Phase.DEAD_LETTER: "Given up; kept for a person, who may redrive or dismiss it.",
    Phase.CANCELLED: "Ended on request, by deadline or as a duplicate. Final.",
}

WAITING_PHASES: frozenset[Phase] = frozenset(
    {Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING}
)
"""Phases in which a job has yet to run, or to run again, and no worker holds it."""

FINISHED_PHASES: frozenset[Phase] = frozenset({Phase.SUCCEEDED, Phase.DEAD_LETTER, Phase.CANCELLED})
"""Phases in which nothing happens to a job without a person; each has a condition of its own."""

FINAL_PHASES: frozenset[Phase] = frozenset({Phase.SUCCEEDED, Phase.CANCELLED})
"""Finished phases without any way out: all but DeadLetter, which a person may end."""


class Reason(StrEnum):
    """Why a job is in its phase."""

    HANDLER_FAILED = "HandlerFailed"
    RETRY_REQUESTED = "RetryRequested"
    RETRIES_EXHAUSTED = "RetriesExhausted"
    CRASH_BUDGET_EXHAUSTED = "CrashBudgetExhausted"
    NOT_RETRYABLE = "NotRetryable"
    INVALID_PAYLOAD = "InvalidPayload"
    UNKNOWN_TYPE = "UnknownType"
    RESULT_REFUSED = "ResultRefused"
    EXECUTION_TIMEOUT = "ExecutionTimeout"
    QUEUE_TIMEOUT = "QueueTimeout"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    LEASE_EXPIRED = "LeaseExpired"
    WORKER_CRASHED = "WorkerCrashed"
    WORKER_GONE = "WorkerGone"
    HANDLER_CRASHED = "HandlerCrashed"
    RELEASED = "Released"
    CANCEL_REQUESTED = "CancelRequested"
    DISMISSED = "Dismissed"
    DUPLICATE = "Duplicate"
    NOT_BEFORE = "NotBefore"
    QUEUE_PAUSED = "QueuePaused"
    CONCURRENCY_LIMIT = "ConcurrencyLimit"
    RATE_LIMIT = "RateLimit"
    WAITING_FOR_DEPENDENCY = "WaitingForDependency"
    DEPENDENCY_FAILED = "DependencyFailed"
    SUSPENDED = "Suspended"
    START_TIME_REACHED = "StartTimeReached"
    SLEEPING = "Sleeping"
    WAITING_FOR_SIGNAL = "WaitingForSignal"
    WAITING_FOR_CHILDREN = "WaitingForChildren"
    WAIT_OVER = "WaitOver"
    BACKOFF_ELAPSED = "BackoffElapsed"
    GATE_OPENED = "GateOpened"
    REDRIVEN = "Redriven"


LOST_WORKER_REASONS: Final = frozenset({Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED})
"""Why the operator takes a job from a worker that has failed, which the job counts as a crash."""
