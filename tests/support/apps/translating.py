"""Handlers of all kinds that wait, inside middleware that makes a dead letter of each Exception."""

import asyncio
from typing import Any, Final

from asyncjob import CallNext, Fail, JobContext, WorkerApp

app = WorkerApp()

KINDS: Final = ("async", "sync", "process-async", "process-sync")
WAITS: Final = ("sleep", "signal", "child")

seen: Final[list[str]] = []
"""What the middleware that counts errors has seen, in the process that it runs in."""


@app.middleware
async def translate(job: JobContext, call_next: CallNext) -> Any:
    """Give up at each error, as an app does that translates those of its libraries."""
    try:
        return await call_next()
    except Exception as error:
        raise Fail(f"translated: {type(error).__name__}") from error


@app.middleware
async def count(job: JobContext, call_next: CallNext) -> Any:
    """Report each error."""
    try:
        return await call_next()
    except Exception as error:
        seen.append(type(error).__name__)
        raise


def charge() -> int:
    """Be a step whose kept result is of another type."""
    return 1


async def wait(job: JobContext, what: str) -> str:
    """Wait for what the payload names."""
    if what == "sleep":
        await job.sleep("nap", hours=1)
    elif what == "signal":
        await job.signal("go")
    elif what == "child":
        await (await job.submit("leaf", name="running")).wait()
    elif what == "kept":
        await job.step("charge", charge)
    else:
        raise asyncio.CancelledError("of its own accord")
    return "done"


def wait_blocking(job: JobContext, what: str) -> str:
    """Do the same in a thread."""
    if what == "sleep":
        job.sleep("nap", hours=1).result()
    elif what == "signal":
        job.signal("go").result()
    elif what == "child":
        job.submit("leaf", name="running").result().wait().result()
    elif what == "kept":
        job.step("charge", charge).result()
    else:
        raise asyncio.CancelledError("of its own accord")
    return "done"


app.handler("async")(wait)
app.handler("sync")(wait_blocking)
app.handler("process-async", isolation="process")(wait)
app.handler("process-sync", isolation="process")(wait_blocking)


@app.handler("leaf")
async def leaf(job: JobContext) -> None:
    """Be waited for."""
    await asyncio.sleep(60)
