"""Phases of a job and the reasons for being in one.

Closed lists, each entry with the sentence that documents it.
"""

from enum import StrEnum


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
    Phase.PENDING: "Waits for something that `reason` names: a dependency, a paused or full queue.",
    Phase.SCHEDULED: "Waits for `spec.notBefore`.",
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
    BACKOFF_ELAPSED = "BackoffElapsed"
    GATE_OPENED = "GateOpened"
    REDRIVEN = "Redriven"


REASON_DOCS: dict[Reason, str] = {
    Reason.HANDLER_FAILED: "The handler raised; a retry is left.",
    Reason.RETRY_REQUESTED: "The handler raised `Retry`.",
    Reason.RETRIES_EXHAUSTED: "The handler failed and `maxRetries` is used up.",
    Reason.CRASH_BUDGET_EXHAUSTED: "More than `maxCrashes` attempts crashed: the worker or the "
    "handler's own process died, or the job had been released more than 100 times.",
    Reason.NOT_RETRYABLE: "The handler raised `Fail`, or an error of a category not retried.",
    Reason.INVALID_PAYLOAD: "The payload does not fit the handler's schema, or cannot be "
    "read from where the job says it is.",
    Reason.UNKNOWN_TYPE: "No live worker of the queue knows the type, and the queue's policy is "
    "DeadLetter.",
    Reason.RESULT_REFUSED: "The result or a checkpoint cannot be stored: too large, not "
    "JSON, or refused by the store for large results.",
    Reason.EXECUTION_TIMEOUT: "The attempt ran longer than `executionTimeoutSeconds`.",
    Reason.QUEUE_TIMEOUT: "No worker claimed the job within `queueTimeoutSeconds`.",
    Reason.DEADLINE_EXCEEDED: "`notAfter` passed before the first start.",
    Reason.LEASE_EXPIRED: "The worker's heartbeats stopped.",
    Reason.WORKER_CRASHED: "The worker's container ended with an error or was killed, or a newer "
    "process has taken its place.",
    Reason.WORKER_GONE: "The worker went without failing: its pod was deleted, evicted or lost its "
    "node, or its container ended with exit code 0.",
    Reason.HANDLER_CRASHED: "The handler's own process died.",
    Reason.RELEASED: "The worker gave the job back unfinished. It costs no retry, but is counted.",
    Reason.CANCEL_REQUESTED: "`spec.cancel` was set.",
    Reason.DISMISSED: "`spec.cancel` was set on a dead letter.",
    Reason.DUPLICATE: "Another live job holds the same deduplication id.",
    Reason.NOT_BEFORE: "`spec.notBefore` lies ahead.",
    Reason.QUEUE_PAUSED: "The queue is paused.",
    Reason.CONCURRENCY_LIMIT: "The queue, or the job's concurrency key, is at its limit.",
    Reason.RATE_LIMIT: "The queue's rate limit is used up for now.",
    Reason.WAITING_FOR_DEPENDENCY: "A job in `dependsOn` has not finished, or does not exist yet.",
    Reason.DEPENDENCY_FAILED: "A job in `dependsOn` did not succeed, does not exist, or waits for "
    "this one in turn.",
    Reason.SUSPENDED: "`spec.suspend` is true.",
    Reason.START_TIME_REACHED: "`spec.notBefore` has passed.",
    Reason.BACKOFF_ELAPSED: "The wait before the next attempt is over.",
    Reason.GATE_OPENED: "What the job waited for has come.",
    Reason.REDRIVEN: "`spec.redrive` was increased on a dead letter; its budgets start from 0.",
}
