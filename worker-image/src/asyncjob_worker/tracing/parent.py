"""Which span the attempts of a job belong to: all of them the same, so that retries join.

It is the one of `spec.traceparent`. A job without one has the trace of its UID, which needs no
write and is the same in all its attempts; whether that is sampled is up to the sampler.
"""

import hashlib

from opentelemetry.context import Context
from opentelemetry.trace import TraceFlags, TracerProvider

from asyncjob.tracing.context import trace_id_of
from asyncjob.tracing.remote import remote_context, remote_context_from_ids

_SPAN_DIGITS = 16


def parent_context(traceparent: str | None, uid: str, provider: TracerProvider) -> Context:
    """Return the context of all attempts of a job."""
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
    """Ask the provider's sampler, if it shows one, as it would be asked for a new trace."""
    sampler = getattr(provider, "sampler", None)
    if sampler is None:
        return True
    decision = sampler.should_sample(None, trace_id, "job").decision
    sampled: bool = decision.is_sampled()
    return sampled
