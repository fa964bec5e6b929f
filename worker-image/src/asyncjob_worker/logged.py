"""Names job, attempt and trace in whatever is logged for a job, by libraries too."""

from contextlib import AbstractContextManager

import structlog

from asyncjob.app import JobInfo
from asyncjob.tracing.context import trace_id_of


def job_log_context(info: JobInfo) -> AbstractContextManager[None]:
    """Bind them while inside, and in tasks and threads that handlers are started in."""
    trace_id = trace_id_of(info.traceparent)
    more = {"trace_id": trace_id} if trace_id else {}
    return structlog.contextvars.bound_contextvars(job=info.name, attempt=info.attempt, **more)
