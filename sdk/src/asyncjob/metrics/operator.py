"""What each operator process says of itself, whether it leads or not."""

from functools import partial
from typing import Final

from asyncjob.metrics.metric import LONG_BUCKETS, SHORT_BUCKETS, Component, MetricSpec, MetricType

_gauge = partial(MetricSpec, kind=MetricType.GAUGE, part=Component.OPERATOR)
_counter = partial(MetricSpec, kind=MetricType.COUNTER, part=Component.OPERATOR)
_seconds = partial(MetricSpec, kind=MetricType.HISTOGRAM, part=Component.OPERATOR, unit="seconds")

LEADING: Final = _gauge(
    "asyncjob_operator_leading", unit="yes/no", help="1 while this replica may act."
)
SYNCED: Final = _gauge(
    "asyncjob_operator_synced", unit="yes/no", help="1 once all jobs have been listed."
)
KNOWN_JOBS: Final = _gauge(
    "asyncjob_operator_known_jobs",
    unit="jobs",
    help="Jobs that this replica knows of; every replica knows them all, so do not add them up.",
    labels=("phase",),
)
PENDING_REQUEUES: Final = _gauge(
    "asyncjob_operator_pending_requeues",
    unit="jobs",
    help="Jobs that will be evaluated again at a set time.",
)
WATCH_EVENTS: Final = _counter(
    "asyncjob_operator_watch_events", unit="events", help="Watch events about jobs taken in."
)
WATCH_LAG_SECONDS: Final = _gauge(
    "asyncjob_operator_watch_lag_seconds",
    unit="seconds",
    help="How old the newest job was when this replica first saw it, by its own clock and the API "
    "server's, which is in whole seconds; less than 1 is shown as 0, and so is a lag of a minute "
    "ago.",
)
WATCH_RESTARTS: Final = _counter(
    "asyncjob_operator_watch_restarts",
    unit="restarts",
    help="Times the watch was restarted.",
)
RESYNC_REPAIRS: Final = _counter(
    "asyncjob_operator_resync_repairs",
    unit="jobs",
    help="Jobs whose change the watch had missed, by kind (added, changed, deleted).",
    labels=("kind",),
)
QUARANTINED: Final = _counter(
    "asyncjob_operator_quarantined",
    unit="objects",
    help="Objects quarantined because something in them made the operator fail, by kind; each "
    "counts once per version.",
    labels=("kind",),
)
QUARANTINED_OBJECTS: Final = _gauge(
    "asyncjob_operator_quarantined_objects",
    unit="objects",
    help="Objects that are quarantined now, by kind: nothing is done about them until they change "
    "or are tried again.",
    labels=("kind",),
)
WRITES: Final = _counter(
    "asyncjob_operator_writes",
    unit="writes",
    help="Decisions carried to the API server, by policy and outcome: done, conflict (somebody was "
    "quicker), gone, refused (by a rule), error, disproved (by a live read).",
    labels=("policy", "outcome"),
)
RECOVERY_CYCLES: Final = _counter(
    "asyncjob_operator_recovery_cycles",
    unit="rounds",
    help="Rounds of the loop that evaluates jobs whose lease or other deadline is due.",
)
RECOVERY_CYCLE_SECONDS: Final = _seconds(
    "asyncjob_operator_recovery_duration_seconds",
    help="Duration of such a round.",
    buckets=(0.0001, 0.001, 0.01, 0.1, 1, 10),
)
SCHEDULER_LAG_SECONDS: Final = _seconds(
    "asyncjob_operator_scheduler_lag_seconds",
    help="How late such a round began for the deadline that was due first.",
    buckets=SHORT_BUCKETS,
)
RECOVERY_ERRORS: Final = _counter(
    "asyncjob_operator_recovery_errors",
    unit="rounds",
    help="Rounds of that loop that failed; it goes on after a pause.",
)
RECOVERED: Final = _counter(
    "asyncjob_operator_recovery_recovered",
    unit="jobs",
    help="Jobs taken from dead workers, by reason.",
    labels=("reason",),
)
RECOVERY_SECONDS: Final = _seconds(
    "asyncjob_operator_recovery_seconds",
    help="From the last heartbeat, or the claim, to taking the job from its dead worker.",
    buckets=LONG_BUCKETS,
)
RECOVERY_FAILED: Final = _counter(
    "asyncjob_operator_recovery_failed",
    unit="writes",
    help="Attempts to take a job from a dead worker that failed; each is tried again.",
)
WORKERS_REMOVED: Final = _counter(
    "asyncjob_operator_workers_removed", unit="workers", help="Leases of silent workers removed."
)
CRON_RUNS: Final = _counter(
    "asyncjob_operator_cron_runs",
    unit="jobs",
    help="Runs of cron jobs created, by what asked for them (schedule, trigger, backfill).",
    labels=("kind",),
)
ARRAYS: Final = _gauge(
    "asyncjob_operator_arrays",
    unit="arrays",
    help="Arrays by phase; 0 where another replica leads.",
    labels=("phase",),
)
ARRAY_ITEMS: Final = _counter(
    "asyncjob_operator_array_items",
    unit="items",
    help="Items of arrays counted, by outcome (succeeded, failed).",
    labels=("outcome",),
)
RETENTION_REMOVED: Final = _counter(
    "asyncjob_operator_retention_removed", unit="jobs", help="Finished jobs removed."
)
RETENTION_OVER_LIMIT: Final = _gauge(
    "asyncjob_operator_retention_over_limit",
    unit="namespaces",
    help="Namespaces that held more finished jobs than their limit at the last pass; 0 where "
    "another replica leads.",
)
EVENTS_POSTED: Final = _counter(
    "asyncjob_operator_events_posted",
    unit="events",
    help="Kubernetes Events, by outcome: posted, dropped (too many), error.",
    labels=("outcome",),
)
API_REQUESTS: Final = _counter(
    "asyncjob_operator_api_requests",
    unit="requests",
    help="Requests to the API server but for watches and the election, by method and code (0: no "
    "answer; 429: throttled).",
    labels=("method", "code"),
)
API_REQUEST_SECONDS: Final = _seconds(
    "asyncjob_operator_api_request_seconds",
    help="How long the API server took to answer them, by method.",
    labels=("method",),
    buckets=SHORT_BUCKETS,
)

TABLE: Final = (
    LEADING,
    SYNCED,
    KNOWN_JOBS,
    PENDING_REQUEUES,
    WATCH_EVENTS,
    WATCH_LAG_SECONDS,
    WATCH_RESTARTS,
    RESYNC_REPAIRS,
    QUARANTINED,
    QUARANTINED_OBJECTS,
    WRITES,
    RECOVERY_CYCLES,
    RECOVERY_CYCLE_SECONDS,
    SCHEDULER_LAG_SECONDS,
    RECOVERY_ERRORS,
    RECOVERED,
    RECOVERY_SECONDS,
    RECOVERY_FAILED,
    WORKERS_REMOVED,
    CRON_RUNS,
    ARRAYS,
    ARRAY_ITEMS,
    RETENTION_REMOVED,
    RETENTION_OVER_LIMIT,
    EVENTS_POSTED,
    API_REQUESTS,
    API_REQUEST_SECONDS,
)
