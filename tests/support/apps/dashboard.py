"""Handlers that dashboard tests watch: held at gates, failing until mended, with children."""

import asyncio
import os
from pathlib import Path
from typing import Any

from asyncjob import Fail, JobContext, WorkerApp

app = WorkerApp()
FOLDER = Path(os.environ.get("WORKER_APP_FOLDER", "."))
LOOK_SECONDS = 0.05
PATIENCE = 60.0


async def pass_gate(gate: str) -> None:
    """Wait until the test opens the gate."""
    async with asyncio.timeout(PATIENCE):
        while not (FOLDER / gate).exists():  # noqa: ASYNC110  # a file
            await asyncio.sleep(LOOK_SECONDS)


@app.handler("echo")
async def echo(job: JobContext, payload: Any) -> Any:
    """Return the payload."""
    return payload


@app.handler("steps")
async def steps(job: JobContext, gate: str) -> str:
    """Report, and wait for a gate after each report."""
    for percent, words in ((10, "reading orders"), (60, "rendering <b>pages</b>")):
        await job.progress(percent, words)
        await pass_gate(f"{gate}-{percent}")
    return "rendered"


@app.handler("brittle")
async def brittle(job: JobContext, number: int) -> int:
    """Fail for good until it has been mended."""
    if not (FOLDER / "mended").exists():
        raise Fail(f"no such user: {number}", category="NotFound")
    return number


@app.handler("parent")
async def parent(job: JobContext, count: int) -> list[Any]:
    """Submit children and wait for them."""
    children = [await job.submit("echo", number) for number in range(count)]
    return [await child.wait() for child in children]
