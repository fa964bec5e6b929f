"""Moves a worker from the watch of all jobs to watches of its shards, and from shards to shards.

A watch ends only when those that take its place have told of all jobs, so that there is no gap. For
that moment jobs may be told twice. What only the old watch has told of is forgotten with it.

A shard whose owner and deputy are full, frozen or gone is found by looks: a worker with an idle
slot lists the jobs of others' shards, or watches them for a moment where they are many, and goes on
for as long as it knows of jobs there.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, Final

import structlog

from asyncjob.errors import ApiError, InvalidError
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.foreign_looks import ForeignLooks
from asyncjob_worker.claiming.partitions import assign_partitions
from asyncjob_worker.claiming.selection import JobSelection, Source
from asyncjob_worker.claiming.sharding import MIN_PEERS, ShardDeal, deal_shards
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from asyncjob_worker.clock import boottime, wall_nanoseconds

log = structlog.get_logger()

SETTLE_SECONDS: Final = 1.0
"""Workers come and go many at a time. Meanwhile the deputies have the shards of those that went."""

SYNC_SECONDS: Final = 10.0
"""An API server without WatchList does not say when it has told of all jobs that there are. It has
after this long."""

SYNC_POLL_SECONDS: Final = 0.1

LOOK_SECONDS: Final = 1.0
"""Between two looks of a worker with an idle slot, and between two lists of one look, at least."""

LOOKS_PER_SECOND: Final = 32
"""Of all workers of a kind together: a look has the API server go through all jobs once."""

LOOK_PAUSE_SECONDS: Final = 30
"""At most, between looks that fail or find only jobs of other types. It doubles each time."""


class ShardWatches:
    """The watches of one worker's part of the queued jobs; none as long as its peers are few.

    `whole` is the watch of all jobs, which somebody else runs. `watch` makes one of a part, and
    `is_idle` tells whether a slot waits for a job.
    """

    def __init__(
        self,
        worker: str,
        whole: QueuedJobWatcher,
        backlog: Backlog,
        *,
        watch: Callable[[JobSelection], QueuedJobWatcher],
        looks: ForeignLooks,
        is_idle: Callable[[], bool],
    ) -> None:
        self._worker = worker
        self._whole = whole
        self._backlog = backlog
        self._new_watch = watch
        self._looks = looks
        self._is_idle = is_idle
        self._queue = whole.selection.queue
        self._live: frozenset[str] = frozenset()
        self._peers: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self._parts: dict[JobSelection, tuple[QueuedJobWatcher, asyncio.Task[None]]] = {}
        self._unsupported = False
        self.deal: ShardDeal | None = None
        """What is watched; None while all jobs are."""

    @property
    def is_watching(self) -> bool:
        """Whether the API server tells of jobs."""
        # Not those that are yet to tell of all jobs: others are watching until they have.
        synced = [watch for watch, _ in self._parts.values() if watch.synced.is_set()]
        return self._whole.is_watching or (bool(synced) and all(it.is_watching for it in synced))

    def relist(self) -> None:
        """Start all watches again with all jobs that are queued now."""
        self._whole.relist()
        for watch, _ in self._parts.values():
            watch.relist()
        self._looks.relist()

    def set_workers(self, live: frozenset[str], peers: frozenset[str]) -> None:
        """Share the jobs out among the live workers from now on, shards among the peers.

        Both include this one. With many peers that waits until no more come and go.
        """
        were_many = len(self._peers) >= MIN_PEERS
        if peers != self._peers and (were_many or len(peers) >= MIN_PEERS):
            self._changed.set()
        self._live, self._peers = live, peers
        if len(peers) < MIN_PEERS or self.deal is None:
            self._reassign(self._next_deal())

    def _next_deal(self) -> ShardDeal | None:
        return None if self._unsupported else deal_shards(self._worker, self._peers)

    def _reassign(self, deal: ShardDeal | None) -> None:
        """Rank the jobs that the watch of all jobs tells of, as if the deal held already."""
        by_shard = None if deal is None else deal.ranks_by_shard
        ranks = assign_partitions(self._worker, self._live)
        self._backlog.reassign(ranks, boottime(), by_shard)

    async def run(self) -> None:
        """Watch until cancelled; raise what a watch has failed with unexpectedly."""
        try:
            while True:
                await self._changed.wait()
                await asyncio.sleep(SETTLE_SECONDS)
                self._changed.clear()
                if await self._change():
                    await self._until_changed(self._look_repeatedly())
        finally:
            await self._stop(list(self._parts))

    async def _change(self) -> bool:
        """Watch what is to be watched now; return False if that has changed meanwhile."""
        deal = self._next_deal()
        wanted = list(_selections(self._queue, deal))
        if deal is not None:
            self._backlog.reassign_sources(deal.ranks, boottime())
        unfinished = [one for one, (watch, _) in self._parts.items() if not watch.synced.is_set()]
        await self._stop(one for one in unfinished if one not in wanted)
        for selection in wanted:
            if selection not in self._parts:
                self._start(selection)
        if deal is None:
            self._reassign(None)
            self._whole.resume()
        if not await self._are_synced([self._parts[one][0] for one in wanted] or [self._whole]):
            return False
        await self._stop([one for one in self._parts if one not in wanted])
        if deal is not None:
            self._whole.suspend()
            self._backlog.drop_selection(None)
        self._backlog.reassign_sources(deal.ranks if deal else {}, boottime())
        self.deal = deal
        log.info(
            "watching shards" if deal else "watching all jobs",
            workers=len(self._peers),
            own=len(deal.own) if deal else None,
        )
        return True

    async def _are_synced(self, watches: Iterable[QueuedJobWatcher]) -> bool:
        """Wait until all jobs have been told; return False if that is given up.

        Not because workers come and go: where they do all the time, it would never be done.
        """
        began = boottime()
        waiting = list(watches)
        while waiting := [watch for watch in waiting if not watch.synced.is_set()]:
            if self._are_refused(watch.error for watch in waiting):
                return False
            if boottime() - began > SYNC_SECONDS:
                if all(one.is_watching for one in waiting):
                    return True
                if self._changed.is_set():
                    return False
            await asyncio.sleep(SYNC_POLL_SECONDS)
        return True

    def _are_refused(self, errors: Iterable[ApiError | None]) -> bool:
        """Go back to the watch of all jobs if the API server does not know the selector."""
        if not any(isinstance(error, InvalidError) for error in errors):
            return False
        log.warning("jobs cannot be watched by shard: the CRDs are older than this worker")
        self._unsupported = True
        self._changed.set()
        return True

    async def _until_changed(self, meanwhile: Coroutine[None, None, None]) -> None:
        changed = asyncio.ensure_future(self._changed.wait())
        looks = asyncio.ensure_future(meanwhile)
        watches = [task for _, task in self._parts.values()]
        waited_for: set[asyncio.Future[Any]] = {changed, looks, *watches}
        try:
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            for task in (looks, *watches):
                if task.done():
                    task.result()
        finally:
            await _cancel([changed, looks])

    async def _look_repeatedly(self) -> None:
        longer = 1
        while (deal := self.deal) is not None:
            pause = max(LOOK_SECONDS, deal.peers / LOOKS_PER_SECOND)
            await asyncio.sleep(min(pause * longer, max(pause, LOOK_PAUSE_SECONDS)))
            if self._are_refused(watch.error for watch, _ in self._parts.values()):
                break
            shards = deal.foreign_shards(int(wall_nanoseconds() / 1e9 / pause))
            if shards is not None and self._is_idle():
                selection = JobSelection(self._queue, Source.FOREIGN, shards)
                in_vain = await self._look_at(selection, pause)
                longer = min(2 * longer, LOOK_PAUSE_SECONDS) if in_vain else 1
        await asyncio.Event().wait()

    async def _look_at(self, selection: JobSelection, every: float) -> bool:
        """Return whether that is better not done again soon: it failed, or cost much in vain."""
        try:
            return await self._looks.look_at(selection, every)
        except ApiError as error:
            if not self._are_refused([error]):
                log.warning("cannot look at jobs that others watch", error=str(error))
            return True

    def _start(self, selection: JobSelection) -> QueuedJobWatcher:
        watch = self._new_watch(selection)
        self._parts[selection] = watch, asyncio.ensure_future(watch.run())
        return watch

    async def _stop(self, selections: Iterable[JobSelection]) -> None:
        """End these watches, and forget the jobs that they have told of."""
        ended = [self._parts.pop(one) for one in list(selections)]
        for watch, _ in ended:
            self._backlog.drop_selection(watch.selection)
        await _cancel([task for _, task in ended])
        for watch, _ in ended:  # an event may have come before the end
            self._backlog.drop_selection(watch.selection)


def _selections(queue: str, deal: ShardDeal | None) -> Iterator[JobSelection]:
    if deal is None:
        return
    yield JobSelection(queue, Source.PRIORITY)
    if deal.own:
        yield JobSelection(queue, Source.OWN, deal.own)
    if deal.deputy:
        yield JobSelection(queue, Source.DEPUTY, deal.deputy)
    if deal.watches_no_shard:
        yield JobSelection(queue, Source.NO_SHARD)


async def _cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    if ending:  # of nothing, gather would make an event loop where none runs any more
        await asyncio.gather(*ending, return_exceptions=True)
