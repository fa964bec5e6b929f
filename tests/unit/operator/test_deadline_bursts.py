"""Deadlines that come all at once do not hold the event loop."""

import asyncio
import time

import pytest

from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.loops import REQUEUE_BATCH, run_requeue_timer
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.parts.vitals import loop_health

LOOK_SECONDS = 0.002


class Slow:
    """Looks at each job for as long as a hard one takes."""

    def __init__(self) -> None:
        self.delaying_queue, self.looked = DelayingQueue(), 0
        self.done = asyncio.Event()

    def evaluate(self, _uid: str) -> None:
        until = time.thread_time() + LOOK_SECONDS
        while time.thread_time() < until:
            pass
        self.looked += 1
        if self.looked == REQUEUE_BATCH:
            self.done.set()


@pytest.mark.timeout(60)
async def test_others_have_their_turn_between_the_jobs_of_one_batch() -> None:
    slow = Slow()
    for number in range(REQUEUE_BATCH):
        slow.delaying_queue.requeue_at(str(number), 0.0)
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(slow.looked)
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    keeping = asyncio.create_task(
        run_requeue_timer(slow.delaying_queue, slow.evaluate, OperatorMetrics(), loop_health())
    )
    await slow.done.wait()
    beside.cancel()
    keeping.cancel()
    assert len({looked for looked in turns if looked}) >= REQUEUE_BATCH * LOOK_SECONDS / 0.1
