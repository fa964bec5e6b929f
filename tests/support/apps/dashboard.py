"""Handlers that dashboard tests watch: held at gates, failing until mended, with children."""

import asyncio
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from asyncjob import Fail, ItemContext, JobContext, WorkerApp

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


@app.item_handler("sift", concurrency=4)
async def sift(job: ItemContext, number: int) -> None:
    """Fail every tenth item until it has been mended; wait for the gate that the payload names."""
    if isinstance(job.payload, str):
        await pass_gate(job.payload)
    if number % 10 == 7 and not (FOLDER / "sifted").exists():
        raise Fail(f"<b>no</b> such grain: {number}", category="NotFound")


@app.handler("parent")
async def parent(job: JobContext, count: int) -> list[Any]:
    """Submit children and wait for them."""
    children = [await job.submit("echo", number) for number in range(count)]
    return [await child.wait() for child in children]


class Approval(BaseModel):
    """Whether it may go out."""

    ok: bool = Field(title="May it go out?")
    shares: int = Field(1, ge=1, le=9)
    note: str = ""


@app.handler("release")
async def release(job: JobContext) -> str:
    """Wait for an approval, and say who has given it."""
    approval = await job.signal("approval", Approval)
    who = job.signal_sender("approval")
    return f"approved by {who}: {approval.shares}" if approval.ok else "refused"


@app.handler("release-parts")
async def release_parts(job: JobContext) -> str:
    """Wait for approvals that no form has inputs for."""
    approval = await job.signal("approval", dict[str, bool])
    return f"approved by {job.signal_sender('approval')}" if approval["ok"] else "refused"
