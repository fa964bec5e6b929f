"""The app that the benchmark's workers run."""

import asyncio
import functools
import os
import random
import socket
import time
from typing import Any, Final

from asyncjob import ItemContext, JobContext, WorkerApp

NOTHING: Final = "bench.nothing"
STAMP: Final = "bench.stamp"
HOLD: Final = "bench.hold"
STAGES: Final = "bench.stages"
SIGNALLED: Final = "bench.signalled"
SIGNAL: Final = "go"
ITEM: Final = "bench.item"
LONG_ITEM: Final = "bench.long-item"
NOTED_ITEM: Final = "bench.noted-item"
LONG_ITEM_SECONDS: Final = (0.25, 0.75)
NOTED_ITEM_SECONDS: Final = 0.05
SLEEP_SECONDS: Final = 3
"""Longer than the grace in which a handler keeps its slot."""

RESULT: Final = {"ok": True}

STAMPS_VARIABLE: Final = "ASYNCJOB_BENCH_STAMPS"
"""Path of the socket to which a stamp's handler says when it was entered."""

NOTES_VARIABLE: Final = "ASYNCJOB_BENCH_NOTES"
"""Path of the file to which each noted item adds a line as it begins."""

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


@app.item_handler(ITEM)
async def item(_: ItemContext, __: Any) -> None:
    """Do nothing: what is measured is all but the handler."""


@app.item_handler(LONG_ITEM, concurrency=8)
async def long_item(_: ItemContext, __: Any) -> None:
    """Wait for something: 500 of them take a chunk half a minute, as they should.

    No two for as long, or all items of all chunks would go on at the same moments.
    """
    await asyncio.sleep(random.uniform(*LONG_ITEM_SECONDS))


@app.item_handler(NOTED_ITEM, concurrency=8)
async def noted_item(job: ItemContext, _: Any) -> None:
    """Note which item begins when, and in which process; a kill loses nothing of it."""
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    os.write(_notes(), f"{os.getpid()} {job.number} {began}\n".encode())
    await asyncio.sleep(NOTED_ITEM_SECONDS)


@functools.cache
def _notes() -> int:
    return os.open(os.environ[NOTES_VARIABLE], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
