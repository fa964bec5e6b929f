"""Answers remembered briefly, asked for once, and not without bounds; and how often to ask."""

import asyncio

import pytest

from asyncjob_gateway.auth.review_cache import ReviewCache
from asyncjob_gateway.limits.rates import TokenBucket
from unit.gateway.conftest import Clock


class SlowReviewer:
    """Counts how often it is asked; waits until it may answer."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.asked += 1
        await self.may_answer.wait()
        if self.error:
            raise self.error
        return self.asked


async def test_an_answer_is_remembered_for_so_long_and_no_longer(clock: Clock) -> None:
    memory, reviewer = ReviewCache[str, int](30, clock), SlowReviewer()
    assert [await memory.get("a", reviewer), await memory.get("a", reviewer)] == [1, 1]
    clock.now += 31
    assert not memory.is_cached("a")
    assert await memory.get("a", reviewer) == 2


async def test_many_who_ask_at_once_are_one_question(clock: Clock) -> None:
    memory, reviewer = ReviewCache[str, int](30, clock), SlowReviewer()
    reviewer.may_answer.clear()
    asking = [asyncio.create_task(memory.get("a", reviewer)) for _ in range(10)]
    await asyncio.sleep(0)
    assert memory.is_cached("a")
    asking[0].cancel()
    reviewer.may_answer.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert answers[1:] == [1] * 9
    assert reviewer.asked == 1


async def test_an_error_is_told_and_not_remembered(clock: Clock) -> None:
    memory, reviewer = ReviewCache[str, int](30, clock), SlowReviewer()
    reviewer.error = OSError("away")
    with pytest.raises(OSError, match="away"):
        await memory.get("a", reviewer)
    reviewer.error = None
    assert await memory.get("a", reviewer) == 2


async def test_the_oldest_answers_make_room(clock: Clock) -> None:
    memory, reviewer = ReviewCache[int, int](30, clock, max_entries=3), SlowReviewer()
    for key in range(5):
        await memory.get(key, reviewer)
    assert len(memory) == 3
    assert not memory.is_cached(0)
    assert memory.is_cached(4)


def test_a_rate_lets_two_seconds_worth_through_at_once_and_then_says_how_long(
    clock: Clock,
) -> None:
    rate = TokenBucket(5, clock)
    assert [rate.take() for _ in range(10)] == [0.0] * 10
    assert rate.take() == pytest.approx(0.2)
    clock.now += 0.2
    assert rate.take() == 0.0
    assert rate.take() > 0
