"""Reads and writes W3C trace context, as far as logs and child jobs need it.

OpenTelemetry is looked at only where somebody has loaded it already: it is no dependency here.
"""

import re
import sys

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_NONE = "0" * 32


def trace_id_of(traceparent: str | None) -> str | None:
    """Return the trace id of a `traceparent`, or None if it has none."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    return found[1] if found and found[1] != _NONE else None


def traceparent_text(trace_id: int, span_id: int, flags: int) -> str:
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
    return traceparent_text(span.trace_id, span.span_id, span.trace_flags)
