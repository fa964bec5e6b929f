"""Reads W3C trace context, as far as logs need it."""

import re

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_NONE = "0" * 32


def trace_id_of(traceparent: str | None) -> str | None:
    """Return the trace id of a `traceparent`, or None if it has none."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    return found[1] if found and found[1] != _NONE else None
