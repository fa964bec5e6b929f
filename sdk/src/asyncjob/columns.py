"""Printer columns: what `kubectl get` shows, and for an AsyncJob what a worker chooses by.

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
CRASHES: Final = "Crashes"
DURATION: Final = "Duration"
PRIORITY: Final = "Priority"
ADMITTED: Final = "Admitted"
GATE: Final = "Gate"
SUSPEND: Final = "Suspend"
CANCEL: Final = "Cancel"
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
    Column(
        DURATION,
        "number",
        ".status.durationSeconds",
        "Seconds from the first start to completion.",
        wide=True,
    ),
    Column(CRASHES, "integer", ".status.crashes", "Attempts whose worker died.", wide=True),
    Column(PRIORITY, "integer", ".spec.priority", "Higher starts first.", wide=True),
    Column(ADMITTED, "boolean", ".status.admitted", "The operator opened its gate.", wide=True),
    Column(
        GATE,
        "string",
        # An empty dependsOn is no gate, and would hide what comes after it.
        ".spec['notBefore','deduplicationId','notAfter','dependsOn']",
        "What holds it back until it is admitted; of several the first.",
        wide=True,
    ),
    Column(SUSPEND, "boolean", ".spec.suspend", "It is not to be started.", wide=True),
    Column(CANCEL, "boolean", ".spec.cancel", "It is to be cancelled.", wide=True),
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
    Column(
        RETRY_POLICY, "string", ".spec.retryPolicy", "Its own retry policy, as JSON.", wide=True
    ),
)

QUEUE_COLUMNS: Final[tuple[Column, ...]] = (
    Column("Paused", "boolean", ".spec.paused", "No job of the queue starts."),
    Column("Limit", "integer", ".spec.maxConcurrency", "So many jobs may run at once."),
    Column(
        "Queued", "integer", '.status.counts[?(@.phase=="Queued")].count', "Jobs to be claimed."
    ),
    Column("Running", "integer", '.status.counts[?(@.phase=="Running")].count', "Jobs running."),
    Column(
        "Dead", "integer", '.status.counts[?(@.phase=="DeadLetter")].count', "Dead letters kept."
    ),
    Column(
        "Oldest",
        "integer",
        ".status.oldestQueuedSeconds",
        "How long the oldest job that could start has been queued, in seconds.",
    ),
    Column("Workers", "integer", ".status.workers", "Live workers that serve the queue."),
    Column("Slots", "integer", ".status.slots", "How many jobs these run at once.", wide=True),
    Column(
        "Per-Minute",
        "integer",
        ".status.finishedPerMinute",
        "Jobs that finished within the last minute.",
        wide=True,
    ),
    Column(AGE, "date", ".metadata.creationTimestamp", "Time since it was created."),
    Column(
        "Per-Key",
        "integer",
        ".spec.maxConcurrencyPerKey",
        "So many jobs with one concurrencyKey may run at once.",
        wide=True,
    ),
    Column("Rate", "string", ".spec.rateLimit", "So many starts in a period.", wide=True),
    Column(
        "Unknown-Type",
        "string",
        ".spec.unknownType",
        "What becomes of a job whose type nobody knows.",
        wide=True,
    ),
)

CRON_JOB_COLUMNS: Final[tuple[Column, ...]] = (
    Column("Schedule", "string", ".spec.schedule", "When jobs are created."),
    Column("Time-Zone", "string", ".spec.timeZone", "Zone that the schedule is meant in."),
    Column(SUSPEND, "boolean", ".spec.suspend", "The schedule creates no job."),
    Column("Active", "integer", ".status.activeCount", "Unfinished jobs."),
    Column("Last", "date", ".status.lastScheduleTime", "Time since the last run was due."),
    Column("Next", "string", ".status.nextScheduleTime", "When the next run is due."),
    Column(REASON, "string", ".status.reason", "What it did last, or what keeps it."),
    Column(AGE, "date", ".metadata.creationTimestamp", "Time since it was created."),
    Column(TYPE, "string", ".spec.jobTemplate.spec.type", "Which handler runs.", wide=True),
    Column(
        "Concurrency", "string", ".spec.concurrencyPolicy", "If a run is unfinished.", wide=True
    ),
    Column("Misfire", "string", ".spec.misfirePolicy", "If runs were missed.", wide=True),
    Column("Missed", "integer", ".status.missed", "Times without a run.", wide=True),
    Column(
        "Last-Success", "date", ".status.lastSuccessfulTime", "Time since a success.", wide=True
    ),
    Column("Message", "string", ".status.message", "The reason in words.", wide=True),
)
