"""The span of a submission, whose context the job then carries. Loads OpenTelemetry's API."""

from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from asyncjob.tracing.attributes import SEND, operation_attributes
from asyncjob.tracing.context import trace_id_of
from asyncjob.tracing.remote import remote_context


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
