"""`release.deploy`: a deployment that waits for a person's yes, without a slot meanwhile."""

import asyncio
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from asyncjob import Fail, JobContext, SignalTimeout, WorkerApp

app = WorkerApp()

PATIENCE = timedelta(days=3)


class Release(BaseModel):
    """What is to be deployed; `pause` is seconds for each step."""

    model_config = ConfigDict(extra="forbid")

    service: str = Field(min_length=1, max_length=40)
    version: str = Field(min_length=1, max_length=40)
    pause: float = Field(default=0.2, ge=0, le=60)


class Approval(BaseModel):
    """What the signal `approval` says."""

    ok: bool
    note: str = ""


async def plan(release: Release) -> str:
    """Say what would be changed."""
    await asyncio.sleep(release.pause)
    return f"{release.service} -> {release.version}"


async def install(release: Release) -> str:
    """Change it."""
    await asyncio.sleep(release.pause)
    return f"{release.service} has {release.version}"


@app.handler("release.deploy", timeout=600)
async def deploy(job: JobContext, release: Release) -> str:
    """Plan, wait for an approval, deploy; say who has approved."""
    change = await job.step("plan", plan, release)
    try:
        approval = await job.signal("approval", Approval, timeout=PATIENCE)
    except SignalTimeout as error:
        raise Fail(f"nobody has approved {change}: redrive the job, it asks again") from error
    approver = job.signal_sender("approval")
    if not approval.ok:
        raise Fail(f"{approver} has refused {change}: {approval.note}")
    done = await job.step("install", install, release)
    return f"{done}, approved by {approver}"
