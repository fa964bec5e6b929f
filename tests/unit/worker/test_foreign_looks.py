"""When a look at jobs that others watch ends, and when it is a watch instead of a list."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.errors import UnknownOutcomeError
from asyncjob.kube.paging import PageTooLargeError
from asyncjob_worker.claiming import foreign_looks
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.foreign_looks import (
    LOOKING_SECONDS,
    MANY_JOBS,
    WATCHES,
    ForeignLooks,
)
from asyncjob_worker.claiming.job_look import JobLook
from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.selection import JobSelection, Source
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from support.parts.worker_parts import candidate

PART = JobSelection("q", Source.FOREIGN, frozenset({3}))
EVERY = 10.0


class Played:
    """A list or a watch whose API server the test plays: each step finds these jobs or fails."""

    def __init__(self, backlog: Backlog, steps: Sequence[Any], told: int, others: bool) -> None:
        self.backlog = backlog
        self.steps = list(steps)
        self.feed = SimpleNamespace(told=told, passed_over=told if others else 0)
        self.synced = asyncio.Event()
        self.error: Exception | None = None
        self.is_watching = False
        self.done = 0
        self.relisted = False
        self.cancelled = False

    def step(self) -> None:
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        for name in [*self.backlog._candidates]:
            self.backlog.drop_from(PART, name)
        for name in step:
            self.backlog.put(candidate(name), 0.0, PART)
        self.done += 1

    async def refresh(self) -> None:
        self.step()

    async def run(self) -> None:
        try:
            while True:
                try:
                    self.step()
                    self.is_watching = True
                    self.synced.set()
                except UnknownOutcomeError as error:
                    self.error, self.is_watching = error, False
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def relist(self) -> None:
        self.relisted = True


class LooksHarness:
    """Looks, what each finds, and a clock that only pauses move on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.backlog = Backlog(takeover_delay=1.0, limit=1000)
        self.backlog.reassign_sources({Source.FOREIGN: (2,) * PARTITIONS}, 0.0)
        self.lists: list[Played] = []
        self.watches: list[Played] = []
        self.steps: list[Any] = [[]]
        self.watched: list[Any] = [[]]
        self.told = 0
        self.others = False
        self.now = 0.0
        self.meanwhile: Callable[[], None] = lambda: None
        monkeypatch.setattr(foreign_looks, "boottime", lambda: self.now)
        monkeypatch.setattr(foreign_looks, "asyncio", self)
        self.looks = ForeignLooks(self.backlog, look=self._look, watch=self._watch)
        self._sleep = asyncio.sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        assert seconds == EVERY
        self.now += seconds
        self.meanwhile()
        await self._sleep(0)

    def _look(self, selection: JobSelection) -> JobLook:
        assert selection is PART
        self.lists.append(Played(self.backlog, self.steps, self.told, self.others))
        return cast("JobLook", self.lists[-1])

    def _watch(self, selection: JobSelection) -> QueuedJobWatcher:
        assert selection is PART
        self.watches.append(Played(self.backlog, self.watched, self.told, self.others))
        return cast("QueuedJobWatcher", self.watches[-1])

    async def look(self) -> bool:
        in_vain = await self.looks.look_at(PART, EVERY)
        assert not self.backlog.holds(PART), "forgotten with the look"
        return in_vain


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> LooksHarness:
    return LooksHarness(monkeypatch)


async def test_where_there_is_nothing_one_list_is_a_look(looks: LooksHarness) -> None:
    assert not await looks.look()
    assert [one.done for one in looks.lists] == [1]
    assert not looks.watches


async def test_a_look_goes_on_while_jobs_are_known(looks: LooksHarness) -> None:
    looks.steps = [["a", "b"], ["b"], []]
    assert not await looks.look()
    assert [one.done for one in looks.lists] == [3]


async def test_a_look_ends_after_a_while_although_jobs_are_known(looks: LooksHarness) -> None:
    looks.steps = [["a"]]
    assert not await looks.look()
    assert looks.now == LOOKING_SECONDS
    assert [one.done for one in looks.lists] == [1 + LOOKING_SECONDS / EVERY]


@pytest.mark.parametrize(("told", "others"), [(1000, True), (1000, False), (3, True)])
async def test_many_jobs_of_other_types_are_looked_at_in_vain(
    looks: LooksHarness, told: int, others: bool
) -> None:
    looks.told, looks.others = told, others
    in_vain = told > MANY_JOBS and others
    assert await looks.look() is in_vain
    looks.steps = [PageTooLargeError("too large")]
    assert await looks.look() is in_vain
    assert len(looks.watches) == 1


async def test_after_a_list_that_was_too_large_some_looks_are_watches(looks: LooksHarness) -> None:
    looks.steps, looks.watched = [PageTooLargeError("too large")], [["a"], []]
    for _ in range(WATCHES):
        assert not await looks.look()
    assert (len(looks.lists), len(looks.watches)) == (1, WATCHES)
    assert all(one.cancelled for one in looks.watches)
    looks.steps = [[]]
    assert not await looks.look()
    assert (len(looks.lists), len(looks.watches)) == (2, WATCHES)


async def test_a_look_that_becomes_too_large_goes_on_as_a_watch(looks: LooksHarness) -> None:
    looks.steps, looks.watched = [["a"], PageTooLargeError("too large")], [["a"], []]
    assert not await looks.look()
    assert (len(looks.lists), len(looks.watches)) == (1, 1)


async def test_a_watch_goes_on_while_jobs_are_known_but_not_for_ever(looks: LooksHarness) -> None:
    looks.steps, looks.watched = [PageTooLargeError("too large")], [["a"]]
    assert not await looks.look()
    assert looks.now == LOOKING_SECONDS


async def test_what_the_first_list_fails_with_is_raised(looks: LooksHarness) -> None:
    looks.steps = [UnknownOutcomeError("gone")]
    with pytest.raises(UnknownOutcomeError):
        await looks.looks.look_at(PART, EVERY)


async def test_known_jobs_are_kept_while_the_api_server_does_not_answer(
    looks: LooksHarness,
) -> None:
    looks.steps = [["a"], UnknownOutcomeError("gone"), ["a"], []]
    known = []
    looks.meanwhile = lambda: known.append(looks.backlog.holds(PART))
    assert not await looks.look()
    assert known == [True] * 3
    assert looks.lists[0].done == 3


@pytest.mark.parametrize("recovers", [False, True])
async def test_a_watch_has_failed_that_is_broken_off_in_the_end(
    looks: LooksHarness, recovers: bool
) -> None:
    broken = UnknownOutcomeError("broken off")
    looks.steps = [PageTooLargeError("too large")]
    looks.watched = [broken, ["a"], []] if recovers else [["a"], broken]
    if recovers:
        assert not await looks.look()
    else:
        with pytest.raises(UnknownOutcomeError):
            await looks.looks.look_at(PART, EVERY)
    assert not looks.backlog.holds(PART)


async def test_what_a_watch_ends_with_unexpectedly_is_raised(looks: LooksHarness) -> None:
    looks.steps, looks.watched = [PageTooLargeError("too large")], [["a"], RuntimeError("a bug")]
    with pytest.raises(RuntimeError):
        await looks.looks.look_at(PART, EVERY)


@pytest.mark.parametrize("many", [False, True])
async def test_the_present_look_is_told_that_the_backlog_was_cleared(
    looks: LooksHarness, many: bool
) -> None:
    looks.steps = [["a"], []]
    if many:
        looks.steps, looks.watched = [PageTooLargeError("too large")], looks.steps
    looks.meanwhile = looks.looks.relist
    await looks.look()
    [present] = looks.watches if many else looks.lists
    assert present.relisted
    present.relisted = False
    looks.looks.relist()
    assert not present.relisted, "it has ended"
