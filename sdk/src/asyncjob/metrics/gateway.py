"""What each gateway process says of itself."""

from functools import partial
from typing import Final

from asyncjob.metrics.spec import SHORT, Kind, Part, Spec

_counter = partial(Spec, kind=Kind.COUNTER, part=Part.GATEWAY, unit="requests")
_seconds = partial(Spec, kind=Kind.HISTOGRAM, part=Part.GATEWAY, unit="seconds", buckets=SHORT)

REQUESTS: Final = _counter(
    "asyncjob_gateway_requests",
    help="Requests answered, by method, route (its pattern, not the address) and code.",
    labels=("method", "route", "code"),
)
REQUEST_SECONDS: Final = _seconds(
    "asyncjob_gateway_request_seconds",
    help="How long they took, streams apart, by method and route.",
    labels=("method", "route"),
)
STREAMS: Final = Spec(
    "asyncjob_gateway_streams",
    Kind.GAUGE,
    Part.GATEWAY,
    "connections",
    "Streams of events open right now.",
)
API_REQUESTS: Final = _counter(
    "asyncjob_gateway_api_requests",
    help="Requests to the API server but for watches, by method and code (0: no answer; 429: "
    "throttled).",
    labels=("method", "code"),
)
API_REQUEST_SECONDS: Final = _seconds(
    "asyncjob_gateway_api_request_seconds",
    help="How long the API server took to answer them, by method.",
    labels=("method",),
)

TABLE: Final = (REQUESTS, REQUEST_SECONDS, STREAMS, API_REQUESTS, API_REQUEST_SECONDS)
