"""Handlers of jobs that stop and go on: with steps, sleeps, signals and children, and of arrays.

A parked job is run again from its top. What must not happen again is in steps, so each step leaves
a line when its body begins, when it takes effect and when its result is there, with a token that
tells one run of the body from another.
"""

import asyncio
import secrets
from typing import Any, Final

from asyncjob import ItemContext, JobContext, SignalTimeout, WorkerApp
from asyncjob_chaos import handlers
from asyncjob_chaos.handlers import LEASE_SECONDS, RETRY, trace, write_scratch

STEPS: Final = "chaos.steps"
ANSWERED: Final = "chaos.answered"
PARENT: Final = "chaos.parent"
CHILD: Final = "chaos.child"
ITEM: Final = "chaos.item"
SIGNAL: Final = "go"
CHILDREN: Final = ("left", "right")

app = WorkerApp()
"""What the workers run, with the handlers of jobs that run through."""

app.include(handlers.app)


async def _take_step(job: JobContext, key: str, payload: Any) -> None:
    async def body() -> str:
        trace(job, "begun", step=key)
        await asyncio.sleep(payload["seconds"])
        if payload.get("scratch"):
            write_scratch()
        token = secrets.token_hex(8)
        trace(job, "taken", step=key, token=token)
        return token

    trace(job, "kept", step=key, token=await job.step(key, body))


@app.handler(STEPS)
async def steps(job: JobContext, payload: Any) -> None:
    """Take steps and sleep between them, fail once if it is asked to, have one effect."""
    trace(job, "entered")
    for number in range(payload["steps"]):
        if number:
            await job.sleep(f"sleep-{number}", seconds=payload["sleep"])
        await _take_step(job, f"step-{number}", payload)
    if payload.get("fails") and job.info.retries == 0:
        trace(job, "failed")
        raise RuntimeError("asked to fail once")
    trace(job, "effect")


@app.handler(ANSWERED)
async def answered(job: JobContext, payload: Any) -> None:
    """Wait for a signal between two steps, no longer than it is told to; have one effect."""
    trace(job, "entered")
    await _take_step(job, "before", payload)
    try:
        value = await job.signal(SIGNAL, int, timeout=payload["limit"])
    except SignalTimeout:
        trace(job, "late")
    else:
        trace(job, "received", value=value)
    await _take_step(job, "after", payload)
    trace(job, "effect")


@app.handler(PARENT)
async def parent(job: JobContext, payload: Any) -> None:
    """Submit two children and wait for them, then have one effect."""
    trace(job, "entered")
    children = [await job.submit(CHILD, payload, key=key) for key in CHILDREN]
    await job.gather(*children, check=True)
    trace(job, "gathered", children=[child.name for child in children])
    trace(job, "effect")


@app.handler(CHILD, lease=LEASE_SECONDS, retry=RETRY)
async def child(job: JobContext, payload: Any) -> None:
    """Take a moment, and have one effect."""
    trace(job, "entered")
    await asyncio.sleep(payload["seconds"])
    trace(job, "effect")


@app.item_handler(ITEM, concurrency=2)
async def item(one: ItemContext, number: int) -> None:
    """Take a moment, fail the first try if it is asked to, and have one effect."""
    payload: Any = one.payload
    await asyncio.sleep(payload["seconds"])
    if number == payload["fails"] and one.attempt == 1:
        raise RuntimeError("asked to fail once")
    trace(one.chunk, "item", array=one.array, item=number)
