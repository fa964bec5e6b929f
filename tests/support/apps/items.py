"""Item handlers that tests drive from outside, as `support.apps.worker` has for jobs."""

import asyncio
import ctypes
import os
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from asyncjob import Fail, ItemContext, JobContext, WorkerApp
from asyncjob.app import ChildView
from asyncjob.json_types import as_object, text

app = WorkerApp()
FOLDER = Path(os.environ.get("WORKER_APP_FOLDER", "."))
AGES = 60


class Row(BaseModel):
    """A record of a file."""

    name: str
    size: int
    waits: bool = False


class Pool:
    """A resource that knows its process."""

    def __init__(self) -> None:
        self.pid = os.getpid()


@app.resource
def open_pool() -> Pool:
    """Open the pool."""
    return Pool()


def trace(word: str, job: ItemContext, *more: object) -> None:
    """Append a line that the test counts; one write, so that processes do not mix theirs."""
    line = " ".join(map(str, (word, job.array, job.number, job.attempt, *more)))
    with (Path(order(job, "folder") or FOLDER) / "trace").open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def order(job: ItemContext, what: object = None) -> str:
    """Return what the array's payload orders this item to do, or another word of it."""
    orders = as_object(job.payload)
    return text(orders, str(job.number if what is None else what))


@app.item_handler("note", concurrency=8)
async def note(job: ItemContext, item: int) -> None:
    """Leave a trace of the item."""
    trace("done", job)


@app.item_handler("slow", concurrency=8)
async def slow(job: ItemContext, item: int) -> None:
    """Take a twentieth of a second."""
    await asyncio.sleep(0.05)
    trace("done", job)


@app.item_handler("threaded", concurrency=4)
def threaded(job: ItemContext, item: int) -> None:
    """Work in a thread."""
    time.sleep(0.01)
    trace("done", job)


@app.item_handler("picky", concurrency=8)
async def picky(job: ItemContext, item: Any) -> None:
    """Fail for what the test has listed in a file, and end the process for other items."""
    if item in read_numbers("fatal"):
        trace("fatal", job)
        os._exit(7)
    if item in read_numbers("failing"):
        trace("failed", job)
        raise Fail(f"item {item} is wrong")
    if item in read_numbers("shaky") and job.attempt < 3:
        trace("shaky", job)
        raise ValueError(f"item {item} is not right yet")
    if item in read_numbers("hanging"):
        trace("hanging", job)
        await asyncio.sleep(3600)
    trace("done", job)


@app.item_handler("double", concurrency=8)
async def double(job: ItemContext, item: int) -> dict[str, Any]:
    """Return something of the item, and which process has run it; one item's is too large."""
    await asyncio.sleep(0.05)
    trace("done", job)
    large = item in read_numbers("large")
    return {"twice": 2 * item, "by": os.getpid(), "pad": "x" * (300_000 if large else 10)}


@app.item_handler("apart-double", concurrency=4, isolation="process")
async def apart_double(job: ItemContext, item: int) -> dict[str, Any]:
    """Return something of the item from a process of its own."""
    return {"twice": 2 * item, "by": os.getpid(), "pad": ""}


@app.item_handler("apart", concurrency=2, isolation="process")
async def apart(job: ItemContext, item: int, *, pool: Pool) -> None:
    """Do as ordered, in the event loop of the chunk's own process."""
    trace("begin", job, os.getpid(), pool.pid)
    match order(job):
        case "fail":
            raise Fail(f"{item} is wrong")
        case "wait":
            await asyncio.sleep(AGES)
        case "exit":
            await asyncio.sleep(1.2)  # what is done by then has been reported
            os._exit(7)
        case "segfault":
            ctypes.string_at(0)
        case "deaf":
            trace("deaf", job)
            ctypes.PyDLL(None).sleep(AGES)
        case _:
            await asyncio.sleep(float(order(job, "seconds") or 0))
    trace("done", job)


@app.item_handler("apart-threads", concurrency=3, isolation="process", memory_mib=300)
def apart_threads(job: ItemContext, item: int) -> None:
    """Do as ordered, in a thread of the chunk's own process."""
    trace("begin", job, os.getpid())
    if (mib := order(job)).isdecimal():
        trace("swollen", job, len(b"x" * (int(mib) * 1024 * 1024)))
    while order(job) == "wait" and not job.cancelled:
        time.sleep(0.01)
    trace("done", job)


@app.item_handler("apart-crowded", concurrency=64, isolation="process", memory_mib=300)
def apart_crowded(job: ItemContext, item: int) -> None:
    """Have more threads than there is memory for."""
    trace("begin", job)


@app.item_handler("apart-rows", concurrency=4, isolation="process")
async def apart_rows(job: ItemContext, item: Row) -> None:
    """Leave a trace of what the record says, from the chunk's own process."""
    trace("row", job, item.name)


@app.item_handler("rows", concurrency=4)
async def rows(job: ItemContext, item: Row) -> None:
    """Leave a trace of what the record says."""
    with (FOLDER / "rows").open("ab", buffering=0) as file:
        file.write(f"{job.number} {item.name} {item.size}\n".encode())
    trace("begin", job)
    while item.waits and not (FOLDER / "gate").exists():  # noqa: ASYNC110  # a file
        await asyncio.sleep(0.02)
    trace("done", job)


@app.item_handler("gated", concurrency=2)
async def gated(job: ItemContext, item: int) -> None:
    """Wait until the test opens the gate."""
    trace("begin", job)
    while not (FOLDER / "gate").exists():  # noqa: ASYNC110  # a file
        await asyncio.sleep(0.02)
    trace("done", job)


@app.handler("album")
async def album(job: JobContext, options: dict[str, Any]) -> Any:
    """Submit an array, and wait for it without a slot."""
    child = await job.map(**options)
    note_call("album", job)
    view = await child.wait()
    return [view.phase, view.name == child.name, counts_of(view)]


@app.handler("album-sync")
def album_sync(job: JobContext, options: dict[str, Any]) -> Any:
    """Do the same in a thread."""
    child = job.map(**options).result()
    note_call("album", job)
    view = child.wait().result()
    return [view.phase, view.name == child.name, counts_of(view)]


@app.handler("album-isolated", isolation="process")
async def album_isolated(job: JobContext, options: dict[str, Any]) -> Any:
    """Do the same in a process, beside a job."""
    child, one = await job.map(**options), await job.submit("single")
    note_call("album", job)
    view, single = await job.gather(child, one)
    return [view.phase, single.result == one.name, counts_of(view)]


def counts_of(view: ChildView) -> Any:
    """Return what an array's handler is told of its items."""
    return [view.items.total, view.items.succeeded, view.items.failed, view.items.failed_items]


def note_call(word: str, job: JobContext) -> None:
    """Append a line that the test counts."""
    with (FOLDER / "trace").open("ab", buffering=0) as file:
        file.write(f"{word} {job.name} {job.attempt}\n".encode())


@app.handler("single")
async def single(job: JobContext) -> str:
    """Be a job like any other."""
    return job.name


def read_numbers(name: str) -> set[int]:
    """Return the numbers in a file of the test's."""
    file = FOLDER / name
    return {int(part) for part in file.read_text().split()} if file.exists() else set()
