"""Handlers with steps, for a worker process: what their bodies do is written to a file."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from asyncjob import JobContext, WorkerApp
from support.apps.worker import trace

app = WorkerApp()


async def body(job: JobContext, key: str, size: int) -> str:
    """Note that the step is taken, and return a text of this size."""
    trace(key, job)
    return "x" * size


def killing_body(job: JobContext, key: str, folder: str) -> str:
    """End the process, or that of the worker, by SIGKILL, once."""
    trace(key, job)
    mark = Path(folder) / f"killed-{job.name}"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@app.handler("many")
async def many(job: JobContext, payload: dict[str, int]) -> int:
    """Take as many steps as the payload says."""
    texts = [
        await job.step(f"step-{number}", body, job, str(number), payload["size"])
        for number in range(payload["steps"])
    ]
    await asyncio.sleep(payload.get("pause", 0))
    return sum(map(len, texts))


async def order(job: JobContext, folder: Any) -> list[str]:
    """Take three steps; in the second the process is killed, once."""
    first = await job.step("first", body, job, "first", 1)
    second = await job.step("second", killing_body, job, "second", folder)
    return [first, second, await job.step("third", body, job, "third", 1)]


app.handler("killed")(order)
app.handler("killed-isolated", isolation="process")(order)
