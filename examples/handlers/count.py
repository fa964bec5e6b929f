"""`slow.count`: long work in small steps, each of them saved."""

import asyncio
import logging
from typing import Final

from pydantic import BaseModel, Field

from asyncjob import JobContext, WorkerApp

app = WorkerApp()
log: Final = logging.getLogger(__name__)


class CountRequest(BaseModel):
    """How far, and how many seconds a step takes."""

    to: int = Field(ge=1, le=100_000)
    pause: float = Field(default=0.2, ge=0, le=60)


class Checkpoint(BaseModel):
    """The last step that is done."""

    step: int = 0


class Counted(BaseModel):
    """The result: where this attempt took over, and how far it came."""

    counted: int
    resumed_from: int


@app.handler("slow.count", timeout=600)
async def slow_count(job: JobContext, request: CountRequest) -> Counted:
    """Count on from the last checkpoint."""
    resumed = Checkpoint.model_validate(job.last_checkpoint or {}).step
    for step in range(resumed + 1, request.to + 1):
        await asyncio.sleep(request.pause)
        log.info("counted %d of %d in attempt %d", step, request.to, job.attempt)
        await job.checkpoint(Checkpoint(step=step))
        await job.progress(100 * step / request.to, f"step {step} of {request.to}")
    return Counted(counted=request.to, resumed_from=resumed)
