"""When a look at jobs that others watch ends, and when it is a watch instead of a list."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.errors import ForbiddenError, UnknownOutcomeError
from asyncjob.kube.paging import PageTooLargeError
from asyncjob_worker.claiming import foreign_looks
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.foreign_looks import LOOKING_SECONDS, MANY_JOBS, ForeignLooks
from asyncjob_worker.claiming.job_look import JobLook
from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.selection import JobSelection, Source
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from support.parts.worker_parts import candidate

PART = JobSelection("q", Source.FOREIGN, frozenset({3}))


class Played:
    """A list or a watch whose API server the test plays: each step finds these jobs or fails."""

    def __init__(self, backlog: Backlog, steps: Sequence[Any], told: int, others: bool) -> None:
        self.backlog = backlog
        self.steps = list(steps)
        self.feed = SimpleNamespace(told=told, passed_over=told if others else 0)
        self.synced = asyncio.Event()
        self.error: Exception | None = None
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
                except UnknownOutcomeError as error:
                    self.error = error
                self.synced.set()
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def relist(self) -> None:
        self.relisted = True


class LooksHarness:
    """Looks, what each finds, and a clock that goes on by ten seconds with each pause."""

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

    async def sleep(self, _: float) -> None:
        self.now += 10.0
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
        in_vain = await self.looks.look_at(PART)
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
    assert [one.done for one in looks.lists] == [1 + LOOKING_SECONDS / 10]


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


async def test_where_jobs_are_many_looks_are_watches_until_they_are_few(
    looks: LooksHarness,
) -> None:
    looks.steps, looks.watched, looks.told = [PageTooLargeError("too large")], [["a"], []], 1000
    for _ in range(3):
        assert not await looks.look()
    assert (len(looks.lists), len(looks.watches)) == (1, 3)
    assert all(one.cancelled for one in looks.watches)
    looks.steps, looks.told = [[]], MANY_JOBS
    for _ in range(3):
        assert not await looks.look()
    assert (len(looks.lists), len(looks.watches)) == (3, 4)


async def test_a_watch_goes_on_while_jobs_are_known_but_not_for_ever(looks: LooksHarness) -> None:
    looks.steps, looks.watched = [PageTooLargeError("too large")], [["a"]]
    assert not await looks.look()
    assert looks.now == LOOKING_SECONDS


@pytest.mark.parametrize("many", [False, True])
async def test_what_a_look_fails_with_is_raised(looks: LooksHarness, many: bool) -> None:
    looks.steps = [["a"], UnknownOutcomeError("gone")]
    if many:
        looks.steps, looks.watched = [PageTooLargeError("too large")], looks.steps
    with pytest.raises(UnknownOutcomeError):
        await looks.looks.look_at(PART)
    assert not looks.backlog.holds(PART)


async def test_a_watch_that_ends_unexpectedly_ends_the_worker(looks: LooksHarness) -> None:
    looks.steps, looks.watched = [PageTooLargeError("too large")], [["a"], ForbiddenError("no")]
    with pytest.raises(ForbiddenError):
        await looks.looks.look_at(PART)


@pytest.mark.parametrize("many", [False, True])
async def test_a_backlog_that_was_cleared_is_filled_again_by_the_present_look(
    looks: LooksHarness, many: bool
) -> None:
    looks.steps = [["a"], []]
    if many:
        looks.steps, looks.watched = [PageTooLargeError("too large")], looks.steps
    looks.meanwhile = looks.looks.relist
    await looks.look()
    looks.looks.relist()
    [present] = looks.watches if many else looks.lists
    assert present.relisted
