"""Printer columns of an AsyncJob: what `kubectl get` shows and what a worker chooses by.

A worker watches queued jobs as a table without objects, so that a payload never crosses the wire
before the claim; hence everything that choosing and claiming need must be a column.
"""

from dataclasses import dataclass
from typing import Final

NAME: Final = "Name"
PHASE: Final = "Phase"
TYPE: Final = "Type"
QUEUE: Final = "Queue"
ATTEMPT: Final = "Attempt"
PROGRESS: Final = "Progress"
AGE: Final = "Age"
REASON: Final = "Reason"
PRIORITY: Final = "Priority"
ADMITTED: Final = "Admitted"
GATE: Final = "Gate"
TIMEOUT: Final = "Timeout"
LEASE: Final = "Lease"
RETRY_POLICY: Final = "Retry-Policy"


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column; `wide` ones appear with `-o wide` only."""

    name: str
    type: str
    json_path: str
    description: str
    wide: bool = False


JOB_COLUMNS: Final[tuple[Column, ...]] = (
    Column(PHASE, "string", ".status.phase", "Where the job is in its life."),
    Column(TYPE, "string", ".spec.type", "Which handler runs it."),
    Column(QUEUE, "string", ".spec.queue", "Queue it waits in."),
    Column(ATTEMPT, "integer", ".status.attempt", "Claims so far."),
    Column(PROGRESS, "integer", ".status.progress.percent", "Percent done."),
    Column(AGE, "date", ".metadata.creationTimestamp", "Time since it was created."),
    Column(REASON, "string", ".status.reason", "Why it is in its phase.", wide=True),
    Column(PRIORITY, "integer", ".spec.priority", "Higher starts first.", wide=True),
    Column(ADMITTED, "boolean", ".status.admitted", "The operator opened its gate.", wide=True),
    Column(
        GATE,
        "string",
        ".spec['notBefore','deduplicationId','dependsOn','suspend','cancel']",
        "The first of the things that hold it back until it is admitted.",
        wide=True,
    ),
    Column(
        TIMEOUT,
        "integer",
        ".spec.executionTimeoutSeconds",
        "Its own limit on an attempt, in seconds.",
        wide=True,
    ),
    Column(
        LEASE,
        "integer",
        ".spec.leaseDurationSeconds",
        "Its own duration of the lease, in seconds.",
        wide=True,
    ),
    Column(RETRY_POLICY, "string", ".spec.retryPolicy", "Its own retry policy.", wide=True),
)
