"""How slow the API server was in a case is known, also while it does not answer."""

import asyncio
from collections.abc import Iterator

from asyncjob.errors import ApiError
from asyncjob_perturbation.answer_times import AnswerTimes


class SlowServer:
    """Takes so many seconds of a clock for each answer; None: for ever."""

    def __init__(self, *seconds: float | None) -> None:
        self.now = 0.0
        self.silent = asyncio.Event()
        self._seconds: Iterator[float | None] = iter(seconds)

    async def answer(self) -> None:
        seconds = next(self._seconds)
        if seconds is None:
            self.silent.set()
            await asyncio.Event().wait()
            return
        self.now += seconds
        if seconds > 5.0:
            raise ApiError("no answer")

    async def pause(self, seconds: float) -> None:
        self.now += seconds


async def measured(server: SlowServer) -> AnswerTimes:
    times = AnswerTimes(server.answer, clock=lambda: server.now, pause=server.pause)
    measuring = asyncio.create_task(times.measure())
    await server.silent.wait()
    measuring.cancel()
    return times


async def test_the_slowest_answer_since_a_moment_counts_and_an_error_is_one() -> None:
    times = await measured(SlowServer(2.0, 7.0, 1.0, None))
    assert times.slowest(0.0) == 7.0
    assert times.slowest(9.6) == 1.0


async def test_an_answer_that_is_still_to_come_counts() -> None:
    server = SlowServer(1.0, None)
    times = await measured(server)
    assert times.slowest(0.0) == 1.0
    server.now += 30.0
    assert times.slowest(0.0) == 30.0
