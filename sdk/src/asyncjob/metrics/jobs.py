"""What the leading operator says of all jobs. Replicas that do not lead export no gauge of these.

Gauges are counted from what is known of all jobs when somebody asks, and so are exact as soon as a
new operator has listed them. Counters and histograms take in what was seen to happen while leading.
"""

from functools import partial
from typing import Final

from asyncjob.metrics.metric import LONG_BUCKETS, Component, MetricSpec, MetricType

_gauge = partial(MetricSpec, kind=MetricType.GAUGE, part=Component.LEADER)
_counter = partial(MetricSpec, kind=MetricType.COUNTER, part=Component.LEADER, unit="jobs")
_seconds = partial(
    MetricSpec,
    kind=MetricType.HISTOGRAM,
    part=Component.LEADER,
    unit="seconds",
    buckets=LONG_BUCKETS,
)
_QUEUE = ("namespace", "queue")
_QUEUE_AND_TYPE = (*_QUEUE, "type")

JOBS: Final = _gauge(
    "asyncjob_jobs", unit="jobs", help="Jobs there are.", labels=(*_QUEUE, "phase")
)
PARKED: Final = _gauge(
    "asyncjob_jobs_parked",
    unit="jobs",
    help="Jobs that wait without a slot, by what they wait for (Sleep, Signal, Children): once "
    "for each kind, if for several; counted every few seconds.",
    labels=(*_QUEUE, "kind"),
)
OLDEST_PARK_SECONDS: Final = _gauge(
    "asyncjob_parked_oldest_seconds",
    unit="seconds",
    help="How long the job that was parked first has waited without a slot, by what it waits for "
    "(Sleep, Signal, Children); missing where none does.",
    labels=(*_QUEUE, "kind"),
)
OLDEST_SECONDS: Final = _gauge(
    "asyncjob_queue_oldest_seconds",
    unit="seconds",
    help="How long the oldest job waits that could be claimed, were there a worker and a place; "
    "0 where none waits or the queue is paused.",
    labels=_QUEUE,
)
WORKERS: Final = _gauge(
    "asyncjob_queue_workers",
    unit="workers",
    help="Workers that take jobs of the queue; missing where Leases may not be watched.",
    labels=_QUEUE,
)
SLOTS: Final = _gauge(
    "asyncjob_queue_slots",
    unit="jobs",
    help="Jobs that those workers run at a time; missing where Leases may not be watched.",
    labels=_QUEUE,
)
FINISHED_LIMIT: Final = _gauge(
    "asyncjob_finished_limit",
    unit="jobs",
    help="Finished jobs that a namespace may hold (`--retention-namespace-limit`); missing "
    "without retention.",
)
SUBMITTED: Final = _counter("asyncjob_jobs_submitted", help="Jobs created.", labels=_QUEUE_AND_TYPE)
CLAIMED: Final = _counter("asyncjob_jobs_claimed", help="Attempts begun.", labels=_QUEUE_AND_TYPE)
SUCCEEDED: Final = _counter(
    "asyncjob_jobs_succeeded", help="Jobs that succeeded.", labels=_QUEUE_AND_TYPE
)
RETRIED: Final = _counter(
    "asyncjob_jobs_retried",
    help="Attempts that ended with another to follow.",
    labels=_QUEUE_AND_TYPE,
)
DEAD_LETTERED: Final = _counter(
    "asyncjob_jobs_dead_lettered",
    help="Jobs given up, by reason.",
    labels=(*_QUEUE_AND_TYPE, "reason"),
)
CANCELLED: Final = _counter(
    "asyncjob_jobs_cancelled",
    help="Jobs cancelled, by reason: dismissed dead letters and duplicates, too.",
    labels=(*_QUEUE_AND_TYPE, "reason"),
)
REDRIVEN: Final = _counter(
    "asyncjob_jobs_redriven", help="Dead letters queued again.", labels=_QUEUE_AND_TYPE
)
QUEUE_SECONDS: Final = _seconds(
    "asyncjob_job_queue_seconds",
    help="From entering the phase Queued to the claim, where both were seen to happen.",
    labels=_QUEUE,
)
END_TO_END_SECONDS: Final = _seconds(
    "asyncjob_job_end_to_end_seconds",
    help="From creation to the first end, of whatever kind, where both were seen to happen.",
    labels=_QUEUE,
)

TABLE: Final = (
    JOBS,
    PARKED,
    OLDEST_PARK_SECONDS,
    OLDEST_SECONDS,
    WORKERS,
    SLOTS,
    FINISHED_LIMIT,
    SUBMITTED,
    CLAIMED,
    SUCCEEDED,
    RETRIED,
    DEAD_LETTERED,
    CANCELLED,
    REDRIVEN,
    QUEUE_SECONDS,
    END_TO_END_SECONDS,
)
