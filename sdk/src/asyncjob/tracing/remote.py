"""The context of a span in another process, for spans that are to belong to it."""

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags


def remote_context(traceparent: str) -> Context:
    """Return the context in which spans belong to the one named."""
    _, trace_id, span_id, flags, *_ = traceparent.split("-")
    return remote_context_from_ids(int(trace_id, 16), int(span_id, 16), int(flags, 16))


def remote_context_from_ids(trace_id: int, span_id: int, flags: int) -> Context:
    """Return the same for a span given by its numbers."""
    span = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return trace.set_span_in_context(NonRecordingSpan(span), Context())
