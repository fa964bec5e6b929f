"""An app with resources, middleware, hooks, child jobs and a limited type, for real workers."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from asyncjob import JobContext, Retry, WorkerApp
from asyncjob.app import CallNext, Event, JobEnded, JobEvent, WorkerEvent
from support.apps.worker import FOLDER, LOOK_SECONDS, is_open, pass_gate, trace

app = WorkerApp()


def note(line: str) -> None:
    """Append a line that the test looks for."""
    with (FOLDER / "trace").open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


@dataclass
class Pool:
    """What is opened asynchronously."""

    opened: int


@dataclass
class Files:
    """What is opened in a thread, and needs the other."""

    pool: Pool


@app.resource
def files(*, pool: Pool) -> Iterator[Files]:
    """Open second, close first."""
    note("open files")
    yield Files(pool)
    note("close files")


@app.resource
async def pool() -> AsyncIterator[Pool]:
    """Open first, close last; hang or fail if the test wants it."""
    if os.environ.get("POOL_FAILS"):
        raise ConnectionRefusedError("the pool is dry")
    note("open pool")
    yield Pool(os.getpid())
    if os.environ.get("POOL_HANGS"):
        await asyncio.Event().wait()
    note("close pool")


@app.middleware
async def around(job: JobContext, call_next: CallNext, *, pool: Pool) -> Any:
    """Note what it wraps; change one kind of result, retry one kind of job."""
    note(f"before {job.name} {job.attempt} {pool.opened == os.getpid()}")
    result = await call_next()
    if job.info.type == "retried" and job.attempt == 1:
        raise Retry("the middleware wants it again", after=0)
    note(f"after {job.name} {job.attempt}")
    return {"wrapped": result} if job.info.type == "shared-sync" else result


@app.on(Event.WORKER_STARTED, Event.WORKER_STOPPING)
def of_worker(event: WorkerEvent) -> None:
    """Note it."""
    note(f"told {event.event} {event.queue} {event.slots}")


@app.on(Event.CLAIMED, Event.STARTED)
async def of_start(event: JobEvent, *, files: Files) -> None:
    """Note it."""
    note(f"told {event.event} {event.job.name} {event.job.attempt}")


@app.on(Event.SUCCEEDED, Event.RETRIED, Event.DEAD_LETTERED, Event.CANCELLED, Event.RELEASED)
def of_end(event: JobEnded) -> None:
    """Note it, and fail: nobody cares."""
    error = f" {event.error_type}" if event.error_type else ""
    note(f"told {event.event} {event.job.name} {event.job.attempt} {event.phase}{error}")
    raise RuntimeError("a hook that fails")


@app.handler("shared")
async def shared(job: JobContext, *, pool: Pool, files: Files) -> bool:
    """Return whether there is one pool for all."""
    job.log.info("handler speaks", extra=1)
    return files.pool is pool


@app.handler("shared-sync")
def shared_sync(job: JobContext, payload: int, *, files: Files) -> int:
    """Take a resource in a thread."""
    job.progress(50, "half")
    return payload + (files.pool.opened == os.getpid())


@app.handler("retried")
def retried(job: JobContext) -> int:
    """Return the attempt."""
    return job.attempt


@app.handler("waits")
async def waits(job: JobContext, gate: str) -> None:
    """Wait for a gate."""
    trace("begin", job)
    await pass_gate(gate)


@app.handler("limited", concurrency=1)
async def limited(job: JobContext, gate: str) -> None:
    """Wait for a gate, one at a time."""
    trace("begin", job)
    await pass_gate(gate)


@app.handler("leaf")
async def leaf(job: JobContext, payload: Any) -> Any:
    """Return what a child knows of its parent."""
    parent = job.parent
    return {"payload": payload, "parent": parent and parent.name, "trace": job.trace_id}


@app.handler("fan-out")
async def fan_out(job: JobContext, payload: dict[str, Any]) -> Any:
    """Submit children and wait for them; run twice where the test wants it."""
    children = [await job.submit("leaf", number, key=f"n{number}") for number in range(3)]
    job.submit("leaf", "unawaited")
    if job.attempt == 1 and payload.get("again"):
        raise Retry(after=0)
    done = await asyncio.gather(*(child.wait(30, check=True) for child in children))
    return {"results": [view.result for view in done], "all": len(await job.children())}


@app.handler("fan-out-sync")
def fan_out_sync(job: JobContext, type_: str) -> Any:
    """Do the same in a thread."""
    child = job.submit(type_, 1, key="only").result()
    view = child.wait(30).result()
    return {"name": child.name, "phase": view.phase, "error": view.error_message}


@app.handler("forgetful")
async def forgetful(job: JobContext, payload: dict[str, Any]) -> None:
    """Submit what cannot be submitted, and do not look."""
    job.submit("leaf", payload, name=payload.get("name"))


@app.handler("waits-for-child-sync")
def waits_for_child_sync(job: JobContext) -> None:
    """Wait in a thread for a child that never ends."""
    child = job.submit("waits", "never", key="endless").result()
    trace("waiting", job)
    child.wait().result()


@app.handler("looks-sync")
def looks_sync(job: JobContext, gate: str) -> str:
    """Wait for a gate in a thread."""
    trace("begin", job)
    while not is_open(gate) and not job.cancelled:
        time.sleep(LOOK_SECONDS)
    return "looked"


@dataclass
class Private:
    """What only a handler with a process of its own takes."""

    pool: Pool


@app.resource
async def private(*, pool: Pool) -> AsyncIterator[Private]:
    """Be opened in no worker."""
    note(f"open private {os.getpid()}")
    yield Private(pool)
    note(f"close private {os.getpid()}")


@app.handler("isolated-parent", isolation="process")
async def isolated_parent(job: JobContext, *, private: Private) -> Any:
    """Submit children from a process, and wait for them there."""
    own = private.pool.opened == os.getpid()
    children = [await job.submit("isolated-leaf", number, key=str(number)) for number in range(2)]
    done = await asyncio.gather(*(child.wait(30, check=True) for child in children))
    return {"pid": os.getpid(), "own": own, "results": [view.result for view in done]}


@app.handler("isolated-leaf", isolation="process", concurrency=1)
def isolated_leaf(job: JobContext, payload: int) -> Any:
    """Take long enough to be seen beside another."""
    trace("leaf-begin", job)
    time.sleep(0.5)
    trace("leaf-end", job)
    return [payload, job.parent and job.parent.name, job.trace_id]
