"""The handlers of the worker under perturbation. What they know of earlier runs is in a folder."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from asyncjob import Fail, JobContext, Retry, WorkerApp
from asyncjob.app import SignalTimeout
from asyncjob.app.items import ItemContext

FOLDER: Final = "PERTURBATION_FOLDER"
"""Names the environment variable with a folder of the case's own."""

TAKES_ALONG: Final = 1
UNTIL_MENDED: Final = 5
"""Items of arrays that do harm."""

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
    _end_worker_once(f"crashed-{job.name}")
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


@app.handler("waits")
async def waits(job: JobContext, payload: Any) -> list[str]:  # noqa: ARG001
    """Take a step, sleep without a slot, wait for a signal, and take another step."""
    first = await job.step("before", _body, "before")
    await job.sleep("pause", seconds=3)
    told = await job.signal("go")
    return [first, str(told), await job.step("after", _body, "after")]


@app.handler("waits-in-vain")
async def waits_in_vain(job: JobContext, payload: Any) -> str:  # noqa: ARG001
    """Wait for a signal that does not come in time."""
    try:
        return str(await job.signal("never", timeout=timedelta(seconds=4)))
    except SignalTimeout:
        return await job.step("late", _body, "late")


async def _body(value: str) -> str:
    return value


@app.item_handler("sum", concurrency=2)
async def sum_item(item: ItemContext, value: int) -> None:
    """Take the worker along the first time, fail until it is mended, or be done."""
    if value == TAKES_ALONG:
        _end_worker_once(f"crashed-{item.array}")
    if value == UNTIL_MENDED and not (_folder() / "mended").exists():
        raise Fail("not mended yet")


def _end_worker_once(name: str) -> None:
    marker = _folder() / name
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _folder() -> Path:
    return Path(os.environ[FOLDER])
