"""Tracing of claims and attempts, and the log context that names a job, its attempt and its trace.

Tracing is off, and OpenTelemetry not even loaded, unless the standard `OTEL_*` variables name an
exporter or the app has set up a provider.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

import structlog

from asyncjob.app import JobInfo
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.tracing.context import trace_id_of
from asyncjob.tracing.provider import set_up_tracing
from asyncjob_worker.leases.held_job import HeldJob

SERVICE_NAME: Final = "asyncjob-worker"
"""Name of the service in traces, and of the distribution with the extra `tracing`."""


class AttemptTrace(Protocol):
    """The trace of one attempt."""

    def ended(self, stored: PhaseChange | None) -> None:
        """Record the stored outcome of the attempt; None if none was stored: it was fenced."""


class Tracing(Protocol):
    """Traces attempts and what happens inside them."""

    def attempt(self, held: HeldJob) -> AbstractContextManager[AttemptTrace]:
        """Trace the claim that has just been answered, and the attempt while inside.

        Sets the job's `traceparent` to that of the attempt: handler, children and logs use it.
        """

    def attach(self, traceparent: str | None) -> AbstractContextManager[None]:
        """Make spans started while inside children of that span, which is in another process."""

    def close(self) -> None:
        """Export what has not been exported yet, within a bounded time."""


def tracing_of(environ: Mapping[str, str]) -> Tracing:
    """Return the tracing that the environment or the app has configured.

    Call it once the app is loaded, which may have set up a provider. Raises ConfigError for a
    configuration that is not supported.
    """
    close = set_up_tracing(environ, SERVICE_NAME, SERVICE_NAME)
    if close is None:
        return NO_TRACING
    # Imported here, so that OpenTelemetry is only loaded where it is used.
    from asyncjob_worker.tracing.spans import OpenTelemetryTracing

    return OpenTelemetryTracing(close)


def job_log_context(info: JobInfo) -> AbstractContextManager[None]:
    """Bind job, attempt and trace to log lines while inside, also in tasks started inside."""
    trace_id = trace_id_of(info.traceparent)
    trace = {"trace_id": trace_id} if trace_id else {}
    return structlog.contextvars.bound_contextvars(job=info.name, attempt=info.attempt, **trace)


class _NoAttemptTrace:
    def ended(self, stored: PhaseChange | None) -> None:
        pass


_NO_ATTEMPT_TRACE = _NoAttemptTrace()


class _NoTracing:
    @contextmanager
    def attempt(self, held: HeldJob) -> Iterator[AttemptTrace]:  # noqa: ARG002  # nothing is traced
        yield _NO_ATTEMPT_TRACE

    @contextmanager
    def attach(self, traceparent: str | None) -> Iterator[None]:  # noqa: ARG002
        yield

    def close(self) -> None:
        pass


NO_TRACING: Tracing = _NoTracing()
