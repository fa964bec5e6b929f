"""`sleep`: wait, visibly. For trying out priorities, cancels, drains and recovery."""

import asyncio
from collections.abc import Awaitable, Callable

from pydantic import Field

from asyncjob import JobContext
from asyncjob_worker.builtin.model import BuiltInModel

STEPS = 100
MIN_STEP_SECONDS = 1.0
"""Reports are stored once a second at most."""

MAX_SLEEP_SECONDS = 7 * 24 * 3600


class Sleep(BuiltInModel):
    """Payload."""

    seconds: float = Field(ge=0, le=MAX_SLEEP_SECONDS, allow_inf_nan=False)


class Slept(BuiltInModel):
    """Result, and checkpoint: seconds slept in all attempts so far."""

    slept: float = Field(default=0.0, ge=0)


async def sleep(job: JobContext, payload: Sleep) -> Slept:
    """Sleep what earlier attempts have left to sleep, by the loop's clock: a test may skip it."""
    return await sleep_in_steps(
        job, payload.seconds, asyncio.get_running_loop().time, asyncio.sleep
    )


async def sleep_in_steps(
    job: JobContext,
    seconds: float,
    clock: Callable[[], float],
    pause: Callable[[float], Awaitable[object]],
) -> Slept:
    """Sleep in steps, each of them reported and saved; `clock` and `pause` in seconds."""
    begin = clock() - Slept.model_validate(job.last_checkpoint or {}).slept
    step = max(MIN_STEP_SECONDS, seconds / STEPS)
    while (left := begin + seconds - clock()) > 0:
        await pause(min(step, left))
        slept = min(clock() - begin, seconds)
        await job.checkpoint(Slept(slept=slept))
        await job.progress(100 * slept / seconds, f"slept {slept:.0f} of {seconds:g} s")
    return Slept(slept=seconds)
