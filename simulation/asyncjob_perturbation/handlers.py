"""The handlers of the worker under perturbation. What they know of earlier runs is in a folder."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any, Final

from asyncjob import Fail, JobContext, Retry, WorkerApp

FOLDER: Final = "PERTURBATION_FOLDER"
"""Names the environment variable with a folder of the case's own."""

app = WorkerApp()


@app.handler("echo")
async def echo(job: JobContext, payload: Any) -> Any:  # noqa: ARG001
    """Return the payload."""
    return payload


@app.handler("checkpointed")
async def checkpointed(job: JobContext, payload: Any) -> Any:  # noqa: ARG001
    """Save a checkpoint and wait for it to be stored, then return."""
    await job.checkpoint({"row": 1})
    return "done"


@app.handler("flaky")
async def flaky(job: JobContext, payload: dict[str, int]) -> str:
    """Fail so many times, whatever crashes there are in between."""
    failures = int(job.last_checkpoint or 0)
    if failures < payload["failures"]:
        await job.checkpoint(failures + 1)
        raise Retry(after=0)
    return "done"


@app.handler("fatal-once")
async def fatal_once(job: JobContext, payload: Any) -> str:  # noqa: ARG001
    """Take the worker along the first time."""
    marker = _folder() / f"crashed-{job.name}"
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


@app.handler("until-mended")
async def until_mended(job: JobContext, payload: Any) -> str:  # noqa: ARG001
    """Give up until somebody has mended what is wrong."""
    if not (_folder() / "mended").exists():
        raise Fail("not mended yet")
    return "done"


@app.handler("long")
async def long(job: JobContext, payload: Any) -> None:  # noqa: ARG001
    """Run until cancelled."""
    await asyncio.sleep(3600)


def _folder() -> Path:
    return Path(os.environ[FOLDER])
