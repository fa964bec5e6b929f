"""What each gateway process says of itself."""

from functools import partial
from typing import Final

from asyncjob.metrics.metric import SHORT_BUCKETS, Component, MetricSpec, MetricType

_counter = partial(MetricSpec, kind=MetricType.COUNTER, part=Component.GATEWAY)
_gauge = partial(MetricSpec, kind=MetricType.GAUGE, part=Component.GATEWAY)
_seconds = partial(
    MetricSpec,
    kind=MetricType.HISTOGRAM,
    part=Component.GATEWAY,
    unit="seconds",
    buckets=SHORT_BUCKETS,
)

REQUESTS: Final = _counter(
    "asyncjob_gateway_requests",
    unit="requests",
    help="Requests answered, by method, route (its pattern, not the address) and code.",
    labels=("method", "route", "code"),
)
REQUEST_SECONDS: Final = _seconds(
    "asyncjob_gateway_request_seconds",
    help="Time from their headers to the end of the answer, streams apart, by method and route.",
    labels=("method", "route"),
)
IN_FLIGHT: Final = _gauge(
    "asyncjob_gateway_in_flight",
    unit="requests",
    help="Requests being answered, streams included.",
)
STREAMS: Final = _gauge(
    "asyncjob_gateway_streams", unit="connections", help="Streams of events open right now."
)
STREAM_RESYNCS: Final = _counter(
    "asyncjob_gateway_stream_resyncs",
    unit="resyncs",
    help="Times that a follower had to list again: it was too slow, or away for too long.",
)
SUBMISSIONS: Final = _counter(
    "asyncjob_gateway_submissions",
    unit="jobs",
    help="Jobs submitted, by outcome (created, repeated, refused).",
    labels=("outcome",),
)
CACHE_JOBS: Final = _gauge(
    "asyncjob_gateway_cache_jobs",
    unit="jobs",
    help="Jobs in the cache, by namespace.",
    labels=("namespace",),
)
CACHE_SYNCED: Final = _gauge(
    "asyncjob_gateway_cache_synced",
    unit="1 or 0",
    help="1 once all of a namespace has been listed.",
    labels=("namespace",),
)
WATCH_STARTS: Final = _counter(
    "asyncjob_gateway_watch_starts",
    unit="watches",
    help="Watches begun, by what is watched (jobs, queues, cron jobs, workers). A healthy one "
    "lasts about ten minutes.",
    labels=("watch",),
)
API_REQUESTS: Final = _counter(
    "asyncjob_gateway_api_requests",
    unit="requests",
    help="Requests to the API server but for watches, by method and code (0: no answer; 429: "
    "throttled).",
    labels=("method", "code"),
)
API_REQUEST_SECONDS: Final = _seconds(
    "asyncjob_gateway_api_request_seconds",
    help="How long the API server took to answer them, by method.",
    labels=("method",),
)

TABLE: Final = (
    *(REQUESTS, REQUEST_SECONDS, IN_FLIGHT, STREAMS, STREAM_RESYNCS, SUBMISSIONS),
    *(CACHE_JOBS, CACHE_SYNCED, WATCH_STARTS, API_REQUESTS, API_REQUEST_SECONDS),
)
