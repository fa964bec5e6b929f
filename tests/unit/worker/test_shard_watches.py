"""How a worker goes over from the watch of all jobs to watches of its shards, and back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from asyncjob.errors import InvalidError, UnknownOutcomeError
from asyncjob.shards import shard_of
from asyncjob_worker.claiming import shard_watches
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.foreign_looks import ForeignLooks
from asyncjob_worker.claiming.partitions import assign_partitions, partition_of
from asyncjob_worker.claiming.selection import JobSelection, Source
from asyncjob_worker.claiming.shard_watches import (
    LOOK_PAUSE_SECONDS,
    LOOK_SECONDS,
    ShardWatches,
)
from asyncjob_worker.claiming.sharding import MIN_PEERS, deal_shards
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from support.parts.worker_parts import ME, candidate

NAMES = [ME.worker, *(f"worker-{number}/1" for number in range(1, 9))]
FEW, MANY, MORE = (frozenset(NAMES[:count]) for count in (MIN_PEERS - 1, MIN_PEERS, 9))
ROUNDS = 200
"""How often others have their turn before a test looks."""


class FakeWatch:
    """A watch whose API server the test plays."""

    def __init__(self, selection: JobSelection) -> None:
        self.selection = selection
        self.synced = asyncio.Event()
        self.error: Exception | None = None
        self.is_watching = False
        self.is_suspended = False
        self.ended = False

    async def run(self) -> None:
        self.is_watching = True
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True

    def suspend(self) -> None:
        self.is_suspended = True
        self.is_watching = False
        self.synced.clear()

    def resume(self) -> None:
        self.is_suspended = False

    def relist(self) -> None:
        self.synced.clear()


class FakeLooks:
    """Looks whose API server the test plays."""

    def __init__(self) -> None:
        self.seen: list[JobSelection] = []
        self.relisted = 0
        self.in_vain = False
        self.error: Exception | None = None

    async def look_at(self, selection: JobSelection, every: float) -> bool:
        assert every == LOOK_SECONDS
        self.seen.append(selection)
        if self.error:
            raise self.error
        return self.in_vain

    def relist(self) -> None:
        self.relisted += 1


class Harness:
    """The watches of one worker."""

    def __init__(self) -> None:
        self.backlog = Backlog(takeover_delay=0.15, limit=100)
        self.whole = FakeWatch(JobSelection("q"))
        self.made: list[FakeWatch] = []
        self.looks = FakeLooks()
        self.idle = False
        self.pauses: list[float] = []
        self.watches = ShardWatches(
            ME.worker,
            cast("QueuedJobWatcher", self.whole),
            self.backlog,
            watch=self._make,
            looks=cast("ForeignLooks", self.looks),
            is_idle=lambda: self.idle,
        )

    def _make(self, selection: JobSelection) -> QueuedJobWatcher:
        made = FakeWatch(selection)
        self.made.append(made)
        return cast("QueuedJobWatcher", made)

    @property
    def running(self) -> list[FakeWatch]:
        return [one for one in self.made if not one.ended]

    def has_ended(self, watch: FakeWatch) -> bool:
        return watch not in self.running

    def part(self, source: Source) -> FakeWatch:
        """Return the newest watch of a source."""
        return [one for one in self.running if one.selection.source is source][-1]

    async def deal(self, peers: frozenset[str], *, sync: bool = True) -> None:
        """Let the peers be these, and tell all jobs there are."""
        self.watches.set_workers(peers, peers)
        await settle()
        if sync:
            await self.sync()

    async def sync(self) -> None:
        for one in (self.whole, *self.running):
            one.synced.set()
        await settle()


async def settle() -> None:
    for _ in range(ROUNDS):
        await asyncio.sleep(0)


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    sleep = asyncio.sleep

    made = Harness()

    async def at_once(seconds: float) -> None:
        made.pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(shard_watches, "asyncio", FakeAsyncio(at_once))
    running = asyncio.ensure_future(made.watches.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not made.running


class FakeAsyncio:
    """asyncio without pauses."""

    def __init__(self, pause: Any) -> None:
        self.sleep = pause

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


async def test_few_workers_watch_all_jobs(harness: Harness) -> None:
    await harness.deal(FEW)
    assert not harness.made
    assert not harness.whole.is_suspended


async def test_before_its_shards_are_watched_a_worker_claims_at_once_what_is_in_them(
    harness: Harness,
) -> None:
    harness.watches.set_workers(MANY, MANY)
    deal = deal_shards(ME.worker, MANY)
    assert deal is not None
    names = [f"j{number}" for number in range(40)]
    for name in names:
        harness.backlog.put(candidate(name), 0)
    assert popped(harness.backlog) == {name for name in names if shard_of(name) in deal.own}
    important = [f"i{number}" for number in range(40)]
    for name in important:
        harness.backlog.put(candidate(name, priority=7), 0)
    ranks = assign_partitions(ME.worker, MANY)
    mine = {name for name in important if ranks[partition_of(name)] == 0}
    assert popped(harness.backlog) == mine


def popped(backlog: Backlog) -> set[str]:
    found = set()
    while (job := backlog.pop(0)) is not None:
        found.add(job.name)
    return found


async def test_many_share_them_out_and_no_jobs_are_watched_twice(harness: Harness) -> None:
    await harness.deal(MANY)
    own, deputy = (harness.part(source).selection for source in (Source.OWN, Source.DEPUTY))
    assert own.shards
    assert not own.shards & deputy.shards
    assert own.params()["fieldSelector"].endswith(",spec.priority=0")
    assert harness.part(Source.PRIORITY).selection.params()["fieldSelector"].endswith("!=0")
    assert harness.whole.is_suspended
    assert harness.watches.is_watching


async def test_the_watch_of_all_ends_only_when_each_other_has_shown_all_jobs(
    harness: Harness,
) -> None:
    harness.backlog.put(candidate("old"), 0.0)
    await harness.deal(MANY, sync=False)
    for one in harness.running[1:]:
        one.synced.set()
    await settle()
    suspended = [harness.whole.is_suspended]
    assert len(harness.backlog) == 1
    harness.running[0].synced.set()
    await settle()
    suspended.append(harness.whole.is_suspended)
    assert suspended == [False, True]
    assert len(harness.backlog) == 0, "who is shown the job has it from the new watch"


async def test_a_watch_of_shards_ends_only_when_the_next_has_shown_all_jobs(
    harness: Harness,
) -> None:
    await harness.deal(MANY)
    old = harness.part(Source.OWN)
    harness.backlog.put(candidate("job"), 0.0, old.selection)
    await harness.deal(MORE, sync=False)
    new = harness.part(Source.OWN)
    assert new is not old
    assert not harness.has_ended(old)
    harness.backlog.put(candidate("job"), 0.0, new.selection)
    await harness.sync()
    assert harness.has_ended(old)
    assert not harness.has_ended(new)
    assert len(harness.backlog) == 1


async def test_what_stays_the_same_is_watched_on(harness: Harness) -> None:
    await harness.deal(MANY)
    before = harness.part(Source.PRIORITY)
    await harness.deal(MORE)
    assert harness.part(Source.PRIORITY) is before


async def test_workers_that_come_and_go_all_the_time_keep_no_deal_from_being_made(
    harness: Harness,
) -> None:
    harness.watches.set_workers(MANY, MANY)
    for turn in range(20):
        await harness.deal((MORE, MANY)[turn % 2])
    assert harness.watches.deal is not None
    assert harness.whole.is_suspended


async def test_few_that_are_left_watch_all_jobs_again(harness: Harness) -> None:
    await harness.deal(MANY)
    await harness.deal(FEW, sync=False)
    assert not harness.whole.is_suspended
    assert harness.running, "until all jobs have been shown"
    await harness.sync()
    assert not harness.running
    assert harness.watches.deal is None


async def test_older_crds_have_all_jobs_watched(harness: Harness) -> None:
    harness.watches.set_workers(MANY, MANY)
    await settle()
    harness.made[0].error = InvalidError("field label not supported: spec.priority")
    await settle()
    await harness.sync()
    assert not harness.running
    assert not harness.whole.is_suspended
    await harness.deal(MORE)
    assert not harness.running


async def test_only_an_idle_worker_looks_at_what_others_watch(harness: Harness) -> None:
    await harness.deal(MANY)
    assert not harness.looks.seen
    harness.idle = True
    await settle()
    mine = harness.part(Source.OWN).selection.shards
    assert harness.looks.seen
    assert not any(one.shards & mine for one in harness.looks.seen)
    assert {one.source for one in harness.looks.seen} == {Source.FOREIGN}


async def test_all_watches_begin_again_when_jobs_were_left_out(harness: Harness) -> None:
    await harness.deal(MANY)
    harness.watches.relist()
    assert not any(one.synced.is_set() for one in harness.running)
    assert harness.looks.relisted == 1


def tell(harness: Harness, watch: FakeWatch, version: str = "7") -> None:
    """Let the API server tell a watch of the job."""
    selection = None if watch is harness.whole else watch.selection
    harness.backlog.put(candidate("job", resource_version=version), 0.0, selection)


async def test_a_job_that_the_old_watch_tells_of_last_stays_known(harness: Harness) -> None:
    await harness.deal(MANY)
    old = harness.part(Source.OWN)
    await harness.deal(MORE, sync=False)
    tell(harness, harness.part(Source.OWN))
    tell(harness, old)
    await harness.sync()
    assert harness.has_ended(old)
    assert len(harness.backlog) == 1


async def test_a_job_that_the_watch_of_all_tells_of_last_stays_known(harness: Harness) -> None:
    await harness.deal(MANY, sync=False)
    tell(harness, harness.part(Source.OWN))
    tell(harness, harness.whole)
    await harness.sync()
    assert harness.whole.is_suspended
    assert len(harness.backlog) == 1
    await harness.deal(FEW, sync=False)
    tell(harness, harness.whole)
    tell(harness, harness.part(Source.OWN))
    await harness.sync()
    assert not harness.running
    assert len(harness.backlog) == 1


async def test_a_job_known_before_the_first_deal_outlives_one_that_is_given_up(
    harness: Harness,
) -> None:
    tell(harness, harness.whole)
    await harness.deal(MANY, sync=False)
    tell(harness, harness.part(Source.OWN))
    await harness.deal(FEW, sync=False)
    harness.made[0].error = InvalidError("field label not supported: spec.priority")
    await settle()
    await harness.sync()
    assert not harness.running
    assert len(harness.backlog) == 1


async def test_a_job_that_is_gone_is_gone_whoever_told_of_it(harness: Harness) -> None:
    await harness.deal(MANY, sync=False)
    for one in (harness.part(Source.OWN), harness.whole):
        tell(harness, one)
    harness.backlog.drop("job")
    assert len(harness.backlog) == 0
    await harness.sync()
    assert not harness.backlog.holds(harness.part(Source.OWN).selection)


async def test_who_joins_a_fleet_does_not_take_all_jobs_for_its_own(harness: Harness) -> None:
    for number in range(100):
        harness.backlog.put(candidate(f"job-{number}"), 0.0)
    harness.watches.set_workers(MORE, MORE)
    own = 0
    while harness.backlog.pop(0.0) is not None:
        own += 1
    assert 0 < own < 40


async def test_a_worker_is_watching_while_new_watches_begin(harness: Harness) -> None:
    await harness.deal(MANY)
    await harness.deal(MORE, sync=False)
    harness.part(Source.OWN).is_watching = False
    assert harness.watches.is_watching
    harness.part(Source.PRIORITY).is_watching = False
    assert not harness.watches.is_watching


@pytest.mark.parametrize("source", [Source.OWN, Source.FOREIGN])
async def test_crds_that_are_older_later_have_all_jobs_watched_again(
    harness: Harness, source: Source
) -> None:
    await harness.deal(MANY)
    error = InvalidError("field label not supported: spec.priority")
    if source is Source.FOREIGN:
        harness.looks.error = error
    else:
        harness.part(source).error = error
    harness.idle = True
    await settle()
    await harness.sync()
    assert not harness.running
    assert not harness.whole.is_suspended


@pytest.mark.parametrize(("in_vain", "fails"), [(True, False), (False, False), (False, True)])
async def test_looks_that_fail_or_cost_much_in_vain_become_rare(
    harness: Harness, in_vain: bool, fails: bool
) -> None:
    harness.looks.in_vain = in_vain
    harness.looks.error = UnknownOutcomeError("gone") if fails else None
    await harness.deal(MANY)
    harness.idle = True
    await settle()
    longest = LOOK_PAUSE_SECONDS if in_vain or fails else LOOK_SECONDS
    assert max(harness.pauses) == longest
    assert harness.whole.is_suspended
