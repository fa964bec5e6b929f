"""Handlers that fail by the number of their attempt, and the one that counts on."""

import pytest
from examples.handlers.count import CountRequest, slow_count
from examples.handlers.outages import FlakyCall, always_fails, flaky_call

from unit.examples.notes import Notes, StartJob


@pytest.mark.parametrize("attempt", [1, 2])
async def test_the_first_calls_are_refused(start: StartJob, attempt: int) -> None:
    with pytest.raises(ConnectionError, match=f"attempt {attempt}"):
        await flaky_call(start(attempt=attempt), FlakyCall(failures=2))


async def test_the_next_call_is_answered(start: StartJob) -> None:
    answer = await flaky_call(start(attempt=3), FlakyCall(failures=2))
    assert (answer.answer, answer.attempt) == ("pong", 3)


async def test_what_always_fails_says_in_which_attempt(start: StartJob) -> None:
    with pytest.raises(RuntimeError, match="attempt 7"):
        await always_fails(start(attempt=7))


async def test_counting_saves_every_step(start: StartJob, notes: Notes) -> None:
    counted = await slow_count(start(), CountRequest(to=4, pause=0))
    assert (counted.counted, counted.resumed_from) == (4, 0)
    assert notes.checkpoints == [{"step": 1}, {"step": 2}, {"step": 3}, {"step": 4}]
    assert notes.percents == [25, 50, 75, 100]


async def test_counting_goes_on_after_the_last_saved_step(start: StartJob, notes: Notes) -> None:
    job = start(attempt=2, checkpoint={"step": 3})
    counted = await slow_count(job, CountRequest(to=4, pause=0))
    assert (counted.counted, counted.resumed_from) == (4, 3)
    assert notes.checkpoints == [{"step": 4}]
