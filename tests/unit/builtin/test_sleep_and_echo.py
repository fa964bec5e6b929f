"""The handlers `sleep` and `echo`, and the app that holds all four."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from asyncjob import testing as kit
from asyncjob_worker.builtin import app, build_app
from asyncjob_worker.builtin.assembly import sleep_in_steps
from support.parts.handler_runs import Reports, context, run_handler


class Clock:
    """Time passes only in pauses."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []
        self.after_pause: Callable[[int], None] = lambda _count: None

    def __call__(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)
        self.after_pause(len(self.pauses))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_app_of_the_image_has_them() -> None:
    assert {"echo", "sleep", "http"} <= set(app.handlers)


@pytest.mark.parametrize("payload", [{"a": [1, None]}, {}])
async def test_an_echo_is_the_payload(payload: dict[str, Any]) -> None:
    assert await run_handler(build_app({}), "echo", payload) == payload


async def test_sleep_reports_and_saves_every_step(clock: Clock) -> None:
    reports = Reports()
    result = await sleep_in_steps(context(reports), 4.0, clock, clock.pause)
    assert result.slept == 4.0
    assert clock.pauses == [1.0] * 4
    assert reports.percents == [25, 50, 75, 100]
    assert reports.checkpoints[-1] == {"slept": 4.0}


async def test_a_long_sleep_reports_a_hundred_times(clock: Clock) -> None:
    reports = Reports()
    await sleep_in_steps(context(reports), 1000.0, clock, clock.pause)
    assert len(reports.percents) == 100


async def test_sleep_goes_on_with_what_is_left(clock: Clock) -> None:
    await sleep_in_steps(context(last_checkpoint={"slept": 7.5}), 10.0, clock, clock.pause)
    assert sum(clock.pauses) == 2.5


async def test_what_was_overslept_is_not_slept_again(clock: Clock) -> None:
    result = await sleep_in_steps(context(last_checkpoint={"slept": 20}), 10.0, clock, clock.pause)
    assert (clock.pauses, result.slept) == ([], 10.0)


async def test_no_seconds_are_no_division_by_zero(clock: Clock) -> None:
    assert (await sleep_in_steps(context(), 0.0, clock, clock.pause)).slept == 0


@pytest.mark.parametrize("seconds", [-1, 1e9, "soon"])
async def test_seconds_are_checked(seconds: object) -> None:
    with pytest.raises(ValidationError, match="seconds"):
        await run_handler(build_app({}), "sleep", {"seconds": seconds})


async def test_a_test_skips_the_sleep_and_counts_its_reports() -> None:
    run = await kit.run_handler(build_app({}), "sleep", {"seconds": 86_400}, timeout=90_000)
    assert run.result == {"slept": 86_400}
    assert len(run.progress) == 100
