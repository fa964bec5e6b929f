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


def noted(key: str) -> str:
    """Be a step within a span of its own."""
    with tracer.start_as_current_span(f"at {key}"):
        return key


@app.handler("stay")
async def stay(job: JobContext, seconds: float) -> int:
    """Take a step, sleep without a slot, and take another."""
    library_log.warning("resting")
    await job.step("arrive", noted, "arrive")
    await job.sleep("night", seconds=seconds)
    await job.step("leave", noted, "leave")
    return job.attempt


@app.handler("expedition")
async def expedition(job: JobContext, seconds: float) -> str:
    """Wait without a slot for a child that rests, then for a signal."""
    child = await job.submit("stay", seconds)
    await child.wait(check=True)
    return await job.signal("return", str)


@app.handler("stay-isolated", isolation="process")
def stay_isolated(job: JobContext, seconds: float) -> int:
    """Do the same in a process of its own."""
    job.step("arrive", noted, "arrive").result()
    job.sleep("night", seconds=seconds).result()
    job.step("leave", noted, "leave").result()
    return job.attempt
