"""The app that the benchmark's workers run."""

import asyncio
import functools
import os
import socket
import time
from typing import Any, Final

from asyncjob import JobContext, WorkerApp

NOTHING: Final = "bench.nothing"
STAMP: Final = "bench.stamp"
HOLD: Final = "bench.hold"
STAGES: Final = "bench.stages"
SIGNALLED: Final = "bench.signalled"
SIGNAL: Final = "go"
SLEEP_SECONDS: Final = 3
"""Longer than the grace in which a handler keeps its slot."""

RESULT: Final = {"ok": True}

STAMPS_VARIABLE: Final = "ASYNCJOB_BENCH_STAMPS"
"""Path of the socket to which a stamp's handler says when it was entered."""

app = WorkerApp()


@app.handler(NOTHING)
async def nothing(_: JobContext, __: Any) -> dict[str, bool]:
    """Return at once: what is measured is all but the handler."""
    return RESULT


@app.handler(STAMP)
async def stamp(job: JobContext, _: Any) -> dict[str, bool]:
    """Say when it was entered, on the clock that all processes of a machine share."""
    entered = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    _stamps().send(f"{job.name} {entered}".encode())
    return RESULT


@functools.cache
def _stamps() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.connect(os.environ[STAMPS_VARIABLE])
    return made


@app.handler(HOLD)
async def hold(_: JobContext, __: Any) -> None:
    """Go on until somebody ends it."""
    await asyncio.Event().wait()


@app.handler(STAGES)
async def stages(job: JobContext, _: Any) -> dict[str, bool]:
    """Take three steps, and sleep before the last: what the page about waits counts."""
    await job.step("first", _step)
    await job.step("second", _step)
    await job.sleep("pause", seconds=SLEEP_SECONDS)
    return await job.step("third", _step)


async def _step() -> dict[str, bool]:
    return RESULT


@app.handler(SIGNALLED)
async def signalled(job: JobContext, _: Any) -> dict[str, bool]:
    """Wait for a signal for ever, and say when it has come."""
    await job.signal(SIGNAL)
    return await stamp(job, None)
