"""W3C trace context as logs, submissions and child jobs need it.

Also the attributes that all spans share.

OpenTelemetry is used only if something else has loaded it: it is no dependency here. Attributes
never hold a payload, a result or a message: who may read traces need not be allowed to read
jobs.
"""

import re
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Final

_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<more>-.*)?"
)
_FIRST_VERSION = "00"
_INVALID_VERSION = "ff"


def trace_id_of(traceparent: str | None) -> str | None:
    """Return the trace id of a `traceparent`, or None if it has none."""
    found = _parse_traceparent(traceparent)
    return found["trace"] if found else None


def normalize_traceparent(traceparent: str | None) -> str | None:
    """Return a request's `traceparent` as jobs carry it, None for what is none.

    What later versions append is left out, as the standard has it.
    """
    found = _parse_traceparent(traceparent)
    return f"00-{found['trace']}-{found['span']}-{found['flags']}" if found else None


def format_traceparent(trace_id: int, span_id: int, flags: int) -> str:
    """Return the `traceparent` of a span."""
    return f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"


def current_traceparent() -> str | None:
    """Return the `traceparent` of the span that the caller is in, None outside of any."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return format_traceparent(span.trace_id, span.span_id, span.trace_flags)


def step_span(type_: str, key: str) -> AbstractContextManager[object]:
    """Make a span for a step of a handler while inside, where OpenTelemetry is loaded."""
    if "opentelemetry.trace" not in sys.modules:
        return nullcontext()
    from asyncjob.tracing import spans

    return spans.step_span(type_, key)


def _parse_traceparent(traceparent: str | None) -> re.Match[str] | None:
    found = _TRACEPARENT.fullmatch(traceparent or "")
    if not found or found["version"] == _INVALID_VERSION:
        return None
    if found["more"] and found["version"] == _FIRST_VERSION:
        return None
    return found if found["trace"].strip("0") and found["span"].strip("0") else None


MESSAGING_SYSTEM: Final = "asyncjob"

SEND: Final = "send"
RECEIVE: Final = "receive"
PROCESS: Final = "process"


def operation_attributes(name: str, kind: str, type_: str, queue: str) -> dict[str, str]:
    """Return those of an operation; `kind` is one of the closed list above."""
    return {
        "messaging.system": MESSAGING_SYSTEM,
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": queue,
        "asyncjob.type": type_,
        "asyncjob.queue": queue,
    }


def job_attributes(name: str) -> dict[str, str]:
    """Return those that name the job."""
    return {"messaging.message.id": name, "asyncjob.name": name}
