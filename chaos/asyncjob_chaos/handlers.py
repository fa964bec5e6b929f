"""Handlers of jobs that run through: each leaves a trace of when it began and what it did.

The trace is one file for all workers, to which lines are appended whole. Times are of the machine's
monotonic clock, which no fault changes.
"""

import asyncio
import functools
import os
import signal
import tempfile
import time
from typing import Any, Final

import orjson

from asyncjob import ItemContext, JobContext, WorkerApp
from asyncjob.models.base import RetryPolicy

PLAIN: Final = "chaos.plain"
LONG: Final = "chaos.long"
POISON: Final = "chaos.poison"
HOG: Final = "chaos.hog"
NOTED_ITEM: Final = "chaos.noted-item"
ITEM_CONCURRENCY: Final = 8
TRACE_VARIABLE: Final = "ASYNCJOB_CHAOS_TRACE"
BEGAN: Final = ".began"
DONE: Final = ".done"
"""What the trace's name has behind it where items note that they begin, and that they are done."""

SCRATCH_BYTES: Final = 1 << 16
LEASE_SECONDS: Final = 5
"""The shortest that a job may have: faults need not last long to outlast it."""

RETRY: Final = RetryPolicy(
    max_retries=20, max_crashes=50, initial_delay_seconds=0.5, max_delay_seconds=2
)
"""Jobs that share a worker with poison die with it, and are not to blame."""

app = WorkerApp()


def trace(job: JobContext, event: str, **more: object) -> None:
    """Add a line. Its attempt is the number of the claim: one that ended by a park counts, too."""
    line = {
        "event": event,
        "name": job.name,
        "uid": job.info.uid,
        "attempt": job.info.attempt,
        "parks": job.info.parks,
        "at": time.clock_gettime(time.CLOCK_MONOTONIC),
        **more,
    }
    file = os.open(os.environ[TRACE_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, orjson.dumps(line) + b"\n")
    finally:
        os.close(file)


def write_scratch() -> None:
    """Write a temporary file; raises OSError where the disk is full."""
    with tempfile.TemporaryFile() as scratch:
        scratch.write(bytes(SCRATCH_BYTES))


@app.handler(PLAIN)
async def plain(job: JobContext, payload: Any) -> dict[str, int]:
    """Do something short, and have one effect."""
    trace(job, "entered")
    await asyncio.sleep(payload["seconds"])
    if payload.get("scratch"):
        write_scratch()
    trace(job, "effect")
    return {"attempt": job.attempt}


@app.handler(LONG)
async def long(job: JobContext, payload: Any) -> dict[str, int]:
    """Take steps with a checkpoint after each, fail once if it is asked to, have one effect."""
    trace(job, "entered")
    done: Any = job.last_checkpoint or {"step": 0}
    for step in range(done["step"], payload["steps"]):
        await asyncio.sleep(payload["seconds"])
        job.checkpoint({"step": step + 1})
        if payload.get("fails") and job.info.retries == 0 and step == 1:
            trace(job, "failed")
            raise RuntimeError("asked to fail once")
    trace(job, "effect")
    return {"attempt": job.attempt}


@app.handler(POISON)
async def poison(job: JobContext, payload: Any) -> None:
    """Kill the worker with all that it runs."""
    trace(job, "entered")
    await asyncio.sleep(payload["seconds"])
    os.kill(os.getpid(), signal.SIGKILL)


@app.handler(HOG)
async def hog(job: JobContext, payload: Any) -> dict[str, int]:
    """Use so much memory for a moment, and have one effect."""
    trace(job, "entered")
    taken = b"x" * (payload["mib"] << 20)  # zeros would be no memory before they are written
    await asyncio.sleep(payload["seconds"])
    trace(job, "effect")
    return {"bytes": len(taken)}


@app.item_handler(NOTED_ITEM, concurrency=ITEM_CONCURRENCY)
async def noted_item(job: ItemContext, _: Any) -> None:
    """Take as long as the array says, and note both ends: a kill loses nothing of it."""
    shared: Any = job.payload
    _note(BEGAN, job.number)
    await asyncio.sleep(shared["seconds"])
    _note(DONE, job.number)


def _note(kind: str, number: int) -> None:
    at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    os.write(_notes(kind), f"{os.getpid()} {number} {at}\n".encode())


@functools.cache
def _notes(kind: str) -> int:
    path = os.environ[TRACE_VARIABLE] + kind
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
