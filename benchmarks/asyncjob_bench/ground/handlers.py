"""The app that the benchmark's workers run."""

import asyncio
import os
import socket
import time
from typing import Any, Final

from asyncjob import JobContext, WorkerApp

NOTHING: Final = "bench.nothing"
STAMP: Final = "bench.stamp"
SLEEP: Final = "bench.sleep"
RESULT: Final = {"ok": True}

STAMPS_VARIABLE: Final = "ASYNCJOB_BENCH_STAMPS"
"""Path of the socket to which a stamp's handler says when it was entered."""

app = WorkerApp()
_stamps = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


@app.handler(NOTHING)
async def nothing(_: JobContext, __: Any) -> dict[str, bool]:
    """Return at once: what is measured is all but the handler."""
    return RESULT


@app.handler(STAMP)
async def stamp(job: JobContext, _: Any) -> dict[str, bool]:
    """Say when it was entered, on the clock that all processes of a machine share."""
    entered = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    _stamps.sendto(f"{job.name} {entered}".encode(), os.environ[STAMPS_VARIABLE])
    return RESULT


@app.handler(SLEEP)
async def sleep(_: JobContext, seconds: float) -> dict[str, bool]:
    """Take so many seconds."""
    await asyncio.sleep(seconds)
    return RESULT
