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
WORKER: Final = "Worker"


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column; `wide` ones appear with `-o wide` only."""

    name: str
    type: str
    json_path: str
    description: str
    wide: bool = False


JOB_COLUMNS: Final[tuple[Column, ...]] = (
    Column(PHASE, "string", ".status.phase", "Phase of the job's life cycle."),
    Column(TYPE, "string", ".spec.type", "Type, which selects the handler."),
    Column(QUEUE, "string", ".spec.queue", "Name of the queue."),
    Column(ATTEMPT, "integer", ".status.attempt", "Number of claims so far."),
    Column(PROGRESS, "integer", ".status.progress.percent", "Percent done."),
    Column(AGE, "date", ".metadata.creationTimestamp", "Time since it was created."),
    Column(REASON, "string", ".status.reason", "Reason of the phase.", wide=True),
    Column(
        DURATION,
        "number",
        ".status.durationSeconds",
        "Seconds from the first start to completion.",
        wide=True,
    ),
    Column(CRASHES, "integer", ".status.crashes", "Attempts whose worker died.", wide=True),
    Column(PRIORITY, "integer", ".spec.priority", "Higher priority starts first.", wide=True),
    Column(ADMITTED, "boolean", ".status.admitted", "Admitted by the operator.", wide=True),
    Column(
        GATE,
        "string",
        # An empty dependsOn is no gate, and would hide what comes after it.
        ".spec['notBefore','deduplicationId','notAfter','dependsOn']",
        "First field that holds the job back until it is admitted.",
        wide=True,
    ),
    Column(SUSPEND, "boolean", ".spec.suspend", "The job is suspended.", wide=True),
    Column(CANCEL, "boolean", ".spec.cancel", "Cancel is requested.", wide=True),
    Column(
        TIMEOUT,
        "integer",
        ".spec.executionTimeoutSeconds",
        "Time limit of one attempt set by the job, in seconds.",
        wide=True,
    ),
    Column(
        LEASE,
        "integer",
        ".spec.leaseDurationSeconds",
        "Duration of the lease set by the job, in seconds.",
        wide=True,
    ),
    Column(
        RETRY_POLICY,
        "string",
        ".spec.retryPolicy",
        "Retry policy set by the job, as JSON.",
        wide=True,
    ),
    Column(WORKER, "string", ".status.lease.holder", "Pod that runs it.", wide=True),
)

QUEUE_COLUMNS: Final[tuple[Column, ...]] = (
    Column("Paused", "boolean", ".spec.paused", "No job of the queue starts."),
    Column("Limit", "integer", ".spec.maxConcurrency", "Maximum number of running jobs."),
    Column(
        "Queued", "integer", '.status.counts[?(@.phase=="Queued")].count', "Number of queued jobs."
    ),
    Column(
        "Running",
        "integer",
        '.status.counts[?(@.phase=="Running")].count',
        "Number of running jobs.",
    ),
    Column(
        "Dead",
        "integer",
        '.status.counts[?(@.phase=="DeadLetter")].count',
        "Number of dead letters.",
    ),
    Column(
        "Oldest",
        "integer",
        ".status.oldestQueuedSeconds",
        "Seconds since the oldest job that could start was queued.",
    ),
    Column("Workers", "integer", ".status.workers", "Number of live workers."),
    Column("Slots", "integer", ".status.slots", "Jobs that the workers can run.", wide=True),
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
        "Maximum number of running jobs with the same concurrencyKey.",
        wide=True,
    ),
    Column("Rate", "string", ".spec.rateLimit", "Maximum starts in a period.", wide=True),
    Column(
        "Unknown-Type",
        "string",
        ".spec.unknownType",
        "What happens to a job for whose type no live worker has a handler.",
        wide=True,
    ),
)

CRON_JOB_COLUMNS: Final[tuple[Column, ...]] = (
    Column("Schedule", "string", ".spec.schedule", "The schedule."),
    Column("Time-Zone", "string", ".spec.timeZone", "Time zone of the schedule."),
    Column(SUSPEND, "boolean", ".spec.suspend", "The cron job is suspended."),
    Column("Active", "integer", ".status.activeCount", "Number of unfinished jobs."),
    Column("Last", "date", ".status.lastScheduleTime", "Time since the last run was due."),
    Column("Next", "string", ".status.nextScheduleTime", "When the next run is due."),
    Column(REASON, "string", ".status.reason", "What it did last, or why it does nothing."),
    Column(AGE, "date", ".metadata.creationTimestamp", "Time since it was created."),
    Column(TYPE, "string", ".spec.jobTemplate.spec.type", "Which handler runs.", wide=True),
    Column(
        "Concurrency",
        "string",
        ".spec.concurrencyPolicy",
        "Policy for overlapping runs.",
        wide=True,
    ),
    Column("Misfire", "string", ".spec.misfirePolicy", "Policy for missed runs.", wide=True),
    Column("Missed", "integer", ".status.missed", "Number of missed runs.", wide=True),
    Column(
        "Last-Success",
        "date",
        ".status.lastSuccessfulTime",
        "Time since a job succeeded.",
        wide=True,
    ),
    Column("Message", "string", ".status.message", "Explanation of the reason.", wide=True),
)

ARRAY_COLUMNS: Final[tuple[Column, ...]] = (
    Column(PHASE, "string", ".status.phase", "Phase of the array."),
    Column(TYPE, "string", ".spec.type", "Type, which selects the item handler."),
    Column("Total", "integer", ".status.total", "Number of items."),
    Column("Succeeded", "integer", ".status.succeeded", "Number of items that are done."),
    Column("Failed", "integer", ".status.failed", "Number of items that have failed."),
    Column("Open", "integer", ".status.openCount", "Number of chunks under way."),
    Column(PROGRESS, "integer", ".status.percent", "Percent of the items done or failed."),
    Column("Per-Minute", "integer", ".status.itemsPerMinute", "Items run in a minute."),
    Column(AGE, "date", ".metadata.creationTimestamp", "Time since it was created."),
    Column(
        "Expected-End",
        "string",
        ".status.expectedEndTime",
        "When it ends if it goes on at this rate.",
        wide=True,
    ),
    Column(QUEUE, "string", ".spec.queue", "Name of the queue of the chunks.", wide=True),
    Column(REASON, "string", ".status.reason", "Reason of the phase.", wide=True),
    Column("Message", "string", ".status.message", "Explanation of the reason.", wide=True),
)
