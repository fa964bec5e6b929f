"""Handlers that make every kind of number: one that gives up until it is told better."""

import os
from pathlib import Path
from typing import Any

from asyncjob import Fail, JobContext, Retry, WorkerApp
from support.apps.worker import pass_gate

app = WorkerApp()
FOLDER = Path(os.environ.get("WORKER_APP_FOLDER", "."))


@app.handler("fine")
async def fine(job: JobContext, payload: Any) -> Any:
    """Return the payload."""
    return payload


@app.handler("doomed")
async def doomed(job: JobContext, payload: Any) -> Any:
    """Give up, unless the test has opened the gate."""
    if not (FOLDER / "mended").exists():
        raise Fail("broken")
    return payload


@app.handler("later")
async def later(job: JobContext, payload: Any) -> Any:
    """Ask for another attempt in a long while."""
    raise Retry("not now", after=600)


@app.handler("held")
async def held(job: JobContext, payload: Any) -> Any:
    """Run until the test opens the gate."""
    await pass_gate("done")
    return payload
