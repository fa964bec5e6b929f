"""When an attempt may park: not before the handler has had its moment, and not never."""

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from asyncjob.app import park_gate
from asyncjob.app.park_gate import GatedWait, Parked, ParkGate


@dataclass(frozen=True)
class Answer:
    is_over: bool = False
    left: float | None = None


class Asked:
    """Answers that a wait is not over, until it has been asked `over_at` times."""

    def __init__(self, over_at: int = 1_000_000) -> None:
        self.times = 0
        self._over_at = over_at

    def __call__(self) -> "concurrent.futures.Future[Any]":
        self.times += 1
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_result(Answer(self.times >= self._over_at))
        return future


def wait_for(gate: ParkGate, key: str = "approval", asked: Asked | None = None) -> GatedWait[Any]:
    given_up: Callable[[str], object] = lambda _: None  # noqa: E731
    return GatedWait(gate, key, f"{key} is not over", asked or Asked(), lambda it: it, given_up)


async def test_what_follows_the_end_of_a_step_in_the_same_task_parks_at_once() -> None:
    gate = ParkGate()
    with gate.body("charge"):
        await asyncio.sleep(0)
    began = time.monotonic()
    with pytest.raises(Parked):
        await wait_for(gate).answer()
    assert time.monotonic() - began < park_gate.REACT_SECONDS


async def test_a_wait_that_begins_as_another_is_over_leaves_the_handler_its_moment() -> None:
    """The day is over before this attempt; the reminder needs a request before its step."""
    gate = ParkGate()

    async def day() -> None:
        gate.note_end()

    first = asyncio.ensure_future(day())
    approval = asyncio.ensure_future(wait_for(gate).answer())
    await first
    await asyncio.sleep(0.1)
    with gate.body("remind"):
        await asyncio.sleep(0.1)
    assert not approval.done()
    with pytest.raises(Parked):
        await approval


async def test_a_wait_is_looked_at_again_however_often_others_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(park_gate, "LOOK_SECONDS", 0.2)
    gate, asked = ParkGate(), Asked(over_at=3)
    approval = asyncio.ensure_future(wait_for(gate, asked=asked).answer())
    for _ in range(200):
        with gate.body("short"):
            await asyncio.sleep(0.05)
        if approval.done():
            break
    assert (await approval).is_over
    assert not gate.parked


async def test_while_a_body_runs_for_hours_nothing_piles_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(park_gate, "LOOK_SECONDS", 0.001)
    gate, asked = ParkGate(), Asked()
    approval = asyncio.ensure_future(wait_for(gate, asked=asked).answer())
    with gate.body("long"):
        while asked.times < 50:  # noqa: ASYNC110  # it asks by itself
            await asyncio.sleep(0.001)
        assert len(gate._idle) <= 2
    with pytest.raises(Parked):
        await approval


async def test_an_end_between_the_look_and_the_park_is_seen() -> None:
    gate = ParkGate()
    seen = gate.ends_of_others()
    await asyncio.ensure_future(_end_of(gate))
    assert gate.park(seen) is not None
    assert not gate.parked
    assert gate.park(gate.ends_of_others()) is None
    assert gate.parked


async def _end_of(gate: ParkGate) -> None:
    gate.note_end()


def test_in_threads_the_end_of_one_gives_the_handler_its_moment_before_another_parks() -> None:
    gate, ends = ParkGate(), list[str]()

    def waits() -> None:
        try:
            wait_for(gate).answer_blocking()
        except Parked:
            ends.append("parked")

    ended = threading.Thread(target=gate.note_end)
    ended.start()
    ended.join()
    waiting = threading.Thread(target=waits)
    waiting.start()
    time.sleep(0.1)
    with gate.body("remind"):
        time.sleep(0.1)
        ends.append("reminded")
    waiting.join(10)
    assert ends == ["reminded", "parked"]
