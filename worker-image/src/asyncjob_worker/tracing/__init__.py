"""What ties logs and spans to a job.

The log context names the job, its attempt and its trace; spans are made of claims and attempts
where somebody wants them. Tracing is off, and OpenTelemetry not even loaded, unless the standard
`OTEL_*` variables name an exporter or the app has set up a provider.
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


class AttemptTrace(Protocol):
    """One attempt as it is traced."""

    def ended(self, stored: PhaseChange | None) -> None:
        """Take what is stored of the attempt's outcome; None: nothing is, it was fenced."""


class Tracing(Protocol):
    """Traces attempts and what happens inside of them."""

    def attempt(self, held: HeldJob) -> AbstractContextManager[AttemptTrace]:
        """Trace the claim that has just been answered, and the attempt while inside.

        The job's `traceparent` is then that of the attempt: handler, children and logs go by it.
        """

    def attach(self, traceparent: str | None) -> AbstractContextManager[None]:
        """Let spans made while inside belong to that one, which lives in another process."""

    def close(self) -> None:
        """Hand on what has not been exported yet, but wait for that no longer than a moment."""


class _NoAttemptTrace:
    def ended(self, stored: PhaseChange | None) -> None:
        pass


class _NoTracing:
    @contextmanager
    def attempt(self, held: HeldJob) -> Iterator[AttemptTrace]:  # noqa: ARG002  # nothing to say
        yield _NO_ATTEMPT_TRACE

    @contextmanager
    def attach(self, traceparent: str | None) -> Iterator[None]:  # noqa: ARG002
        yield

    def close(self) -> None:
        pass


_NO_ATTEMPT_TRACE = _NoAttemptTrace()
NO_TRACING: Tracing = _NoTracing()


SERVICE_NAME: Final = "asyncjob-worker"
"""Of the service, and of the distribution with the extra `tracing`."""


def tracing_of(environ: Mapping[str, str]) -> Tracing:
    """Return what traces attempts; raises ConfigError for what cannot be done.

    Call it once the app is loaded, for it may have set up a provider.
    """
    close = set_up_tracing(environ, SERVICE_NAME, SERVICE_NAME)
    if close is None:
        return NO_TRACING
    from asyncjob_worker.tracing.spans import OpenTelemetryTracing

    return OpenTelemetryTracing(close)


def job_log_context(info: JobInfo) -> AbstractContextManager[None]:
    """Bind them while inside, and in tasks and threads that handlers are started in."""
    trace_id = trace_id_of(info.traceparent)
    more = {"trace_id": trace_id} if trace_id else {}
    return structlog.contextvars.bound_contextvars(job=info.name, attempt=info.attempt, **more)


__all__ = ["NO_TRACING", "AttemptTrace", "Tracing", "tracing_of"]
