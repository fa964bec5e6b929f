"""Spans over process boundaries.

The remote parent, and the span of a submission whose context the job then carries. Loads
OpenTelemetry's API.
"""

from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from asyncjob.tracing.context import MESSAGING_SYSTEM, SEND, operation_attributes, trace_id_of


def remote_context(traceparent: str) -> Context:
    """Return the context in which spans belong to the one named."""
    _, trace_id, span_id, flags, *_ = traceparent.split("-")
    return remote_context_from_ids(int(trace_id, 16), int(span_id, 16), int(flags, 16))


def remote_context_from_ids(trace_id: int, span_id: int, flags: int) -> Context:
    """Return the same for a span given by its numbers."""
    span = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return trace.set_span_in_context(NonRecordingSpan(span), Context())


@contextmanager
def submission_span(
    type_: str,
    queue: str,
    traceparent: str | None,
    provider: trace.TracerProvider | None = None,
) -> Generator[Span]:
    """Make a span while inside, below the one named, else below the caller's own.

    What goes wrong inside is told by its type alone.
    """
    tracer = trace.get_tracer("asyncjob", tracer_provider=provider)
    above = remote_context(traceparent) if traceparent and trace_id_of(traceparent) else None
    with tracer.start_as_current_span(
        f"submit {type_}",
        above,
        SpanKind.PRODUCER,
        operation_attributes("submit", SEND, type_, queue),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except Exception as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise


@contextmanager
def step_span(
    type_: str, key: str, provider: trace.TracerProvider | None = None
) -> Generator[Span]:
    """Make a span for one try of a step while inside, below the caller's own."""
    tracer = trace.get_tracer("asyncjob", tracer_provider=provider)
    attributes = {
        "messaging.system": MESSAGING_SYSTEM,
        "asyncjob.type": type_,
        "asyncjob.step": key,
    }
    with tracer.start_as_current_span(
        f"step {type_}",
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except Exception as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise
