"""Handlers with processes of their own that take resources and submit children."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog

from asyncjob import JobContext, WorkerApp
from asyncjob.app import CallNext, ChildGoneError
from asyncjob.app.errors import (
    SubmitConflictError,
    SubmitError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.errors import ForbiddenError

app = WorkerApp()
log = structlog.get_logger()

FOLDER = Path(os.environ.get("FAMILY_FOLDER", "."))
MIB = 1024 * 1024


def note(line: str) -> None:
    """Append a line that the test looks for."""
    with (FOLDER / "trace").open("a") as file:
        file.write(f"{line}\n")


@dataclass
class Pool:
    """What is opened asynchronously, in process `opened`."""

    opened: int


@dataclass
class Files:
    """What is opened in a thread, and needs the other."""

    pool: Pool


@dataclass
class Model:
    """What takes much memory."""

    weights: bytes


class Shared:
    """What only a handler in the worker's own process takes."""


@app.resource
def files(*, pool: Pool) -> Iterator[Files]:
    """Open second, close first."""
    note("open files")
    yield Files(pool)
    note("close files")


@app.resource
async def pool() -> AsyncIterator[Pool]:
    """Open first, close last; fail or hang while the test wants it."""
    if (FOLDER / "dry").exists():
        raise ConnectionRefusedError("the pool is dry")
    if (FOLDER / "slow").exists():
        note("opening")
        await asyncio.Event().wait()
    note("open pool")
    yield Pool(os.getpid())
    log.info("closed by nobody's job")
    note("close pool")


@app.resource
def model() -> Model:
    """Hold much."""
    return Model(b"x" * (200 * MIB))


@app.resource
def shared() -> Shared:
    """Be opened in no process of a handler."""
    note("open shared")
    return Shared()


@app.handler("uses-shared")
async def uses_shared(job: JobContext, *, shared: Shared) -> None:
    """Need in the worker what nobody needs elsewhere."""


@app.handler("uses", isolation="process")
async def uses(
    job: JobContext, payload: int = 0, *, files: Files, missing: Path | None = None
) -> Any:
    """Return what it was given, and where."""
    return [payload, os.getpid(), files.pool.opened, missing]


@app.handler("uses-sync", isolation="process")
def uses_sync(job: JobContext, *, pool: Pool) -> Any:
    """Do the same in a thread."""
    return [os.getpid(), pool.opened]


@app.handler("heavy", isolation="process", memory_mib=400)
async def heavy(job: JobContext, *, model: Model) -> int:
    """Take what takes much."""
    return os.getpid() if model.weights else 0


@app.handler("plain", isolation="process")
async def plain(job: JobContext) -> Any:
    """Take nothing; return where it is and what it knows of its job."""
    job.log.info("handler speaks", extra=1)
    known = {
        "trace": job.trace_id,
        "request": job.request,
        "parent": job.parent and asdict(job.parent),
    }
    return {"pid": os.getpid(), "priority": job.info.priority, **known}


@app.handler("family", isolation="process")
async def family(job: JobContext, payload: int) -> Any:
    """Submit children at a time and wait for all."""
    keys = [str(number) for number in range(payload)]
    children = await asyncio.gather(*(job.submit("leaf", {"n": key}, key=key) for key in keys))
    seen = await asyncio.gather(*(child.wait(check=True) for child in children))
    return {"results": [view.result for view in seen], "all": len(await job.children())}


@app.handler("family-sync", isolation="process")
def family_sync(job: JobContext, payload: int) -> Any:
    """Do the same in a thread."""
    sent = [job.submit("leaf", {"n": str(number)}, key=str(number)) for number in range(payload)]
    seen = [submission.result().wait() for submission in sent]
    results = [view.result(10).result for view in seen]
    return {"results": results, "all": len(job.children().result())}


@app.handler("excepts", isolation="process")
async def excepts(job: JobContext) -> Any:
    """Return which `except` has caught what the worker has raised."""
    caught: list[list[Any]] = []
    for kind in (SubmitForbiddenError, SubmitRefusedError, SubmitConflictError, SubmitError):
        try:
            await job.submit("leaf", kind.__name__, name=kind.__name__.lower())
        except kind as error:
            caught.append([type(error).__name__, str(error)])
    gone = await job.submit("leaf", "gone", name="gone")
    try:
        await gone.wait()
    except ChildGoneError as error:
        caught.append([type(error).__name__, str(error)])
    running = await job.submit("leaf", "running", name="running")
    try:
        await running.wait(0.01)
    except TimeoutError as error:
        caught.append([type(error).__name__, str(error)])
    try:
        await job.children()
    except ForbiddenError as error:
        caught.append([type(error).__name__, str(error), error.status])
    return caught


@app.handler("forgets", isolation="process")
async def forgets(job: JobContext, name: str) -> str:
    """Submit and do not look."""
    job.submit("leaf", name=name)
    return "done"


@app.handler("parks", isolation="process")
async def parks(job: JobContext, names: list[str]) -> None:
    """Submit and do not look, and sleep once all answers are there."""
    for name in names:
        job.submit("leaf", name=name)
    await asyncio.sleep(0.3)
    await job.sleep("nap", hours=1)


@app.handler("gives-up", isolation="process")
async def gives_up(job: JobContext) -> str:
    """Wait for a child that never ends, but not for long."""
    child = await job.submit("leaf", name="running")
    try:
        async with asyncio.timeout(0.01):
            await child.wait()
    except TimeoutError:
        note("gave up")
    await job.submit("leaf", name="last")
    return "enough"


@app.handler("waits", isolation="process")
async def waits(job: JobContext) -> None:
    """Wait for a child that never ends; clean up when told to stop."""
    child = await job.submit("leaf", name="running")
    waiting = child.wait()
    note("waiting")
    try:
        await waiting
    finally:
        await asyncio.sleep(0.05)
        note(f"cleaned up {job.cancelled}")


@app.handler("waits-sync", isolation="process")
def waits_sync(job: JobContext) -> None:
    """Do the same in a thread, and try to go on."""
    child = job.submit("leaf", name="running").result()
    waiting = child.wait()
    note("waiting")
    try:
        waiting.result()
    except asyncio.CancelledError:
        note("told")
    try:
        job.submit("leaf", name="too-late").result()
    except asyncio.CancelledError as error:
        note(str(error))


stubborn = WorkerApp()


@stubborn.middleware
async def again(job: JobContext, call_next: CallNext) -> Any:
    """Run the handler once more within the attempt."""
    try:
        return await call_next()
    except Exception:  # noqa: BLE001  # whatever it was
        return await call_next()


_runs: list[str] = []


@stubborn.handler("fails-once", isolation="process")
async def fails_once(job: JobContext) -> str:
    """Submit and fail; return the second time."""
    _runs.append(job.name)
    if len(_runs) == 1:
        job.submit("leaf", name="kept")
        raise ValueError("the first time")
    return "done"


app.include(stubborn)

_kept: list[JobContext] = []


@app.handler("keeps", isolation="process")
async def keeps(job: JobContext) -> str:
    """Submit for a job that is over; return what that gives."""
    _kept.append(job)
    try:
        await _kept[0].submit("leaf", name="ghost")
    except asyncio.CancelledError as error:
        return str(error)
    return "submitted"
