"""One span for the claim and one for each attempt, both under the job's own parent.

The parent is the span of `spec.traceparent`. A job without one gets a trace ID from its UID, which
needs no write and is the same in all its attempts; whether that is sampled is up to the sampler.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TraceFlags, TracerProvider

from asyncjob.json_types import as_object, opt_text
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase
from asyncjob.tracing.context import (
    PROCESS,
    RECEIVE,
    format_traceparent,
    job_attributes,
    operation_attributes,
    trace_id_of,
)
from asyncjob.tracing.spans import remote_context, remote_context_from_ids
from asyncjob_worker.clock import boottime, wall_nanoseconds
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.tracing import AttemptTrace

_NANOSECONDS = 1_000_000_000

_SPAN_DIGITS = 16
_OPERATION_TYPES = {"claim": RECEIVE, "run": PROCESS}

_FAILURES = frozenset({Phase.RETRYING, Phase.DEAD_LETTER})


class OpenTelemetryTracing:
    """Traces with this process's provider. Spans hold no payload, no result and no message."""

    def __init__(
        self,
        close: Callable[[], None],
        provider: trace.TracerProvider | None = None,
    ) -> None:
        self._provider = provider or trace.get_tracer_provider()
        self._tracer = self._provider.get_tracer("asyncjob")
        self._close = close

    @contextmanager
    def attempt(self, held: HeldJob) -> Iterator[AttemptTrace]:
        """Trace the claim that has just been answered, and the attempt while inside."""
        parent = parent_context(held.traceparent, held.job.uid, self._provider)
        self._record_claim(held, parent)
        span = self._start_span("run", held, parent, SpanKind.CONSUMER, wall_nanoseconds())
        span_context = span.get_span_context()
        if span_context.is_valid:
            held.traceparent = format_traceparent(
                span_context.trace_id, span_context.span_id, span_context.trace_flags
            )
        token = context.attach(trace.set_span_in_context(span, parent))
        try:
            yield _AttemptSpan(span)
        finally:
            context.detach(token)
            span.end()

    @contextmanager
    def attach(self, traceparent: str | None) -> Iterator[None]:
        """Make spans started while inside children of that span."""
        if traceparent is None or not trace_id_of(traceparent):
            yield
            return
        token = context.attach(remote_context(traceparent))
        try:
            yield
        finally:
            context.detach(token)

    def close(self) -> None:
        """Export what has not been exported yet."""
        self._close()

    def _record_claim(self, held: HeldJob, parent: Context) -> None:
        now = wall_nanoseconds()
        started = now - int((boottime() - held.started_at) * _NANOSECONDS)
        self._start_span("claim", held, parent, SpanKind.CLIENT, started).end(now)

    def _start_span(
        self, operation: str, held: HeldJob, parent: Context, kind: SpanKind, started: int
    ) -> Span:
        job = held.job
        attributes: dict[str, str | int] = {
            **operation_attributes(operation, _OPERATION_TYPES[operation], job.type, job.queue),
            **job_attributes(job.name),
            "asyncjob.namespace": job.namespace,
            "asyncjob.uid": job.uid,
            "asyncjob.attempt": job.attempt,
        }
        return self._tracer.start_span(
            f"{operation} {job.type}", parent, kind, attributes, start_time=started
        )


class _AttemptSpan:
    def __init__(self, span: Span) -> None:
        self._span = span

    def ended(self, stored: PhaseChange | None) -> None:
        if stored is None:
            self._span.set_status(Status(StatusCode.ERROR, "fenced"))
            return
        self._span.set_attribute("asyncjob.phase", stored.target.value)
        reason = stored.reason.value if stored.reason else ""
        if reason:
            self._span.set_attribute("asyncjob.reason", reason)
        error = opt_text(as_object(stored.fields.get("error")), "type")
        if error:
            self._span.set_attribute("error.type", error)
        if stored.target in _FAILURES:
            self._span.set_status(Status(StatusCode.ERROR, reason))


def parent_context(traceparent: str | None, uid: str, provider: TracerProvider) -> Context:
    """Return the parent context of all attempts of a job."""
    if traceparent is not None and trace_id_of(traceparent):
        return remote_context(traceparent)
    trace_id = int(hashlib.sha256(uid.encode()).hexdigest()[:32], 16)
    plain = uid.replace("-", "")
    if trace_id_of(f"00-{plain}-{'1' * _SPAN_DIGITS}-01"):
        trace_id = int(plain, 16)
    span_id = int(hashlib.sha256(f"job {uid}".encode()).hexdigest()[:_SPAN_DIGITS], 16)
    sampled = TraceFlags.SAMPLED if _sampled(trace_id, provider) else TraceFlags.DEFAULT
    return remote_context_from_ids(trace_id, span_id, sampled)


def _sampled(trace_id: int, provider: TracerProvider) -> bool:
    """Return what the provider's sampler decides for a new trace; True if it has none to ask."""
    sampler = getattr(provider, "sampler", None)
    if sampler is None:
        return True
    decision = sampler.should_sample(None, trace_id, "job").decision
    sampled: bool = decision.is_sampled()
    return sampled
