"""Names job, attempt and trace in whatever is logged while something is done about a job."""

from contextlib import AbstractContextManager

import structlog

from asyncjob.json_types import JsonObject, child, opt_text
from asyncjob.lifecycle.view import JobView
from asyncjob.tracing.context import trace_id_of


def job_log_context(job: JobView, obj: JsonObject) -> AbstractContextManager[None]:
    """Bind them while inside; the trace is read off the object, views do not keep it."""
    trace_id = trace_id_of(opt_text(child(obj, "spec"), "traceparent"))
    more = {"trace_id": trace_id} if trace_id else {}
    return structlog.contextvars.bound_contextvars(job=job.key, attempt=job.attempt, **more)


def job_name_log_context(namespace: str, name: str) -> AbstractContextManager[None]:
    """Bind the name alone while inside, of a job that could not be read."""
    return structlog.contextvars.bound_contextvars(job=f"{namespace}/{name}")
