"""Handlers that are traced: one fails once and then has a child, which runs elsewhere."""

import logging
from typing import Any

from opentelemetry import trace

from asyncjob import JobContext, WorkerApp
from asyncjob.models.base import RetryPolicy

app = WorkerApp()
tracer = trace.get_tracer(__name__)
library_log = logging.getLogger("some.library")

QUICK = RetryPolicy(max_retries=1, initial_delay_seconds=0.1, jitter=0)


@app.handler("trip", retry=QUICK)
async def trip(job: JobContext, payload: Any) -> Any:
    """Fail at first, then have a leg made within a span of the handler's own."""
    library_log.warning("on the way")
    if job.attempt == 1:
        raise ValueError("stumbled")
    with tracer.start_as_current_span("packing"):
        leg = await job.submit("leg", payload)
    return (await leg.wait()).result


@app.handler("leg", isolation="process")
def leg(job: JobContext, payload: Any) -> Any:
    """Run in a process of its own, with a span of the handler's own."""
    library_log.warning("far away")
    with tracer.start_as_current_span("walking"):
        return payload
