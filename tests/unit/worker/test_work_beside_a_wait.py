"""What becomes of work that a handler runs beside a wait, once its job is parked."""

import asyncio
from typing import Any

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.execution.attempt import Attempt
from asyncjob_worker.settings import Settings
from support.parts.callbacks import ignore
from support.parts.worker_parts import attempt_services, held


async def may_park(_: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("grouped", "became"), [(True, ["cancelled"]), (False, ["beside the next attempt"])]
)
async def test_a_task_group_ends_other_work_at_a_park_and_gather_does_not(
    grouped: bool, became: list[str]
) -> None:
    app, parked, seen = WorkerApp(), asyncio.Event(), list[str]()

    async def other() -> None:
        try:
            await parked.wait()
            seen.append("beside the next attempt")
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    @app.handler("echo")
    async def echo(job: JobContext) -> None:
        nap: Any = job.sleep("nap", hours=1)
        if not grouped:
            await asyncio.gather(nap, other())
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(other())
            await nap

    tools = attempt_services(may_park=may_park)
    attempt = Attempt(held(), app.handlers["echo"], app, Settings(), tools, on_start=ignore)
    move = await attempt.run()
    tools.executor.close()
    assert move
    assert move.target is Phase.SCHEDULED
    parked.set()
    await asyncio.sleep(0.01)
    assert seen == became
