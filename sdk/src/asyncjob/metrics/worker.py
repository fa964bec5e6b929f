"""What each worker process says of itself."""

from functools import partial
from typing import Final

from asyncjob.metrics.metric import LONG_BUCKETS, SHORT_BUCKETS, Component, MetricSpec, MetricType

_gauge = partial(MetricSpec, kind=MetricType.GAUGE, part=Component.WORKER)
_counter = partial(MetricSpec, kind=MetricType.COUNTER, part=Component.WORKER)
_seconds = partial(MetricSpec, kind=MetricType.HISTOGRAM, part=Component.WORKER, unit="seconds")

CLAIMS: Final = _counter(
    "asyncjob_worker_claims",
    unit="claims",
    help="Claims, by what became of them: won, conflict (another worker has the job), refused (by "
    "the API server's rules), postponed (not sent, because heartbeats are too late for the lease).",
    labels=("outcome",),
)
TAKEOVERS: Final = _counter(
    "asyncjob_worker_takeovers",
    unit="claims",
    help="Claims of jobs that another worker claims first, unless it is busy or gone: won, lost "
    "(mostly to that worker). The claims are among those of asyncjob_worker_claims_total.",
    labels=("outcome",),
)
FINISHED: Final = _counter(
    "asyncjob_worker_jobs_finished",
    unit="attempts",
    help="Attempts whose outcome is stored, by job type, the phase that the job went to and the "
    "reason.",
    labels=("type", "phase", "reason"),
)
FENCED: Final = _counter(
    "asyncjob_worker_fenced",
    unit="attempts",
    help="Attempts without a stored outcome: the job was no longer ours, or every form of the "
    "outcome was refused.",
    labels=("type",),
)
HANDLER_SECONDS: Final = _seconds(
    "asyncjob_worker_handler_seconds",
    help="How long handlers ran, by job type, abandoned ones included once they end.",
    labels=("type",),
    buckets=LONG_BUCKETS,
)
STEP_SECONDS: Final = _seconds(
    "asyncjob_worker_step_seconds",
    help="How long steps of handlers took until their results were stored, by job type. Steps that "
    "an earlier attempt has done do not count.",
    labels=("type",),
    buckets=LONG_BUCKETS,
)
RUNNING: Final = _gauge("asyncjob_worker_running", unit="jobs", help="Jobs held right now.")
SLOTS: Final = _gauge("asyncjob_worker_slots", unit="jobs", help="Jobs that may run at a time.")
ABANDONED: Final = _gauge(
    "asyncjob_worker_abandoned", unit="slots", help="Slots held by handlers that ignore their stop."
)
BACKLOG: Final = _gauge("asyncjob_worker_backlog", unit="jobs", help="Claimable jobs kept in mind.")
SHARDS: Final = _gauge(
    "asyncjob_worker_shards",
    unit="shards",
    help="Shards of the queue's jobs that this process watches, by its part in them: own, deputy. "
    "None while it watches all jobs, which it does with fewer than five workers of the same types.",
    labels=("part",),
)
JOB_EVENTS: Final = _counter(
    "asyncjob_worker_job_events",
    unit="events",
    help="How often this process has learned of a queued job, by a watch or a list. For a job that "
    "it watches, twice: that it can be claimed, and that it no longer can.",
)
LEASE_RENEWALS: Final = _counter(
    "asyncjob_worker_lease_renewals",
    unit="heartbeats",
    help="Heartbeats, by outcome: stored, failed (no answer or refused; tried again).",
    labels=("outcome",),
)
HEARTBEAT_LATE_SECONDS: Final = _gauge(
    "asyncjob_worker_heartbeat_late_seconds",
    unit="seconds",
    help="By how much the heartbeat thread got to run too late, at worst in the last minute.",
)
EVENT_LOOP_STALLS: Final = _counter(
    "asyncjob_worker_event_loop_stalls",
    unit="stalls",
    help="Times the event loop stood still for more than a second, by the job type whose handler "
    "blocked it; empty where that cannot be known.",
    labels=("type",),
)
EVENT_LOOP_STALLED_SECONDS: Final = _counter(
    "asyncjob_worker_event_loop_stalled_seconds",
    unit="seconds",
    help="Seconds it stood still in all; grows while it does.",
    labels=("type",),
)
WATCH_STARTS: Final = _counter(
    "asyncjob_worker_watch_starts",
    unit="watches",
    help="Watches begun, by what is watched (jobs, queue, workers, cancels). A healthy one lasts "
    "about ten minutes.",
    labels=("watch",),
)
API_REQUESTS: Final = _counter(
    "asyncjob_worker_api_requests",
    unit="requests",
    help="Requests to the API server but for watches, by method and code (0: no answer; 429: "
    "throttled).",
    labels=("method", "code"),
)
API_REQUEST_SECONDS: Final = _seconds(
    "asyncjob_worker_api_request_seconds",
    help="How long the API server took to answer them, by method.",
    labels=("method",),
    buckets=SHORT_BUCKETS,
)

TABLE: Final = (
    CLAIMS,
    TAKEOVERS,
    FINISHED,
    FENCED,
    HANDLER_SECONDS,
    STEP_SECONDS,
    RUNNING,
    SLOTS,
    ABANDONED,
    BACKLOG,
    SHARDS,
    JOB_EVENTS,
    LEASE_RENEWALS,
    HEARTBEAT_LATE_SECONDS,
    EVENT_LOOP_STALLS,
    EVENT_LOOP_STALLED_SECONDS,
    WATCH_STARTS,
    API_REQUESTS,
    API_REQUEST_SECONDS,
)
