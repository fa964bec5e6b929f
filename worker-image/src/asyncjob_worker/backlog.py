"""The queued jobs a worker knows of, and which of them it should claim next.

Jobs are dealt to live workers by rendezvous hashing, so that idle workers do not all run for the
same job and, with a full backlog, each works on its own share. What is dealt to another is taken
over only after a while that grows with this worker's rank for it, counted anew whenever that turns
out to have been too early. Pure: time is an argument.
"""

import hashlib
import itertools
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from operator import add, gt
from typing import Final

from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.levels import NO_TYPES, ExcludedTypes, PriorityBucket

PARTITIONS = 1024
"""Jobs are hashed into so many partitions; only partitions are dealt anew when workers change."""

MAX_STALE_ENTRIES = 1024
"""So many filed names without a job are put up with, and as many again as there are jobs."""
_SHARED_QUEUE: Final = ""
"""The lane of all types without a limit of their own."""


def assign_partitions(worker: str, workers: Iterable[str]) -> Sequence[int]:
    """Return this worker's rank for each partition: 0 where it comes first."""
    mine, ranks = _scores(worker), [0] * PARTITIONS
    for other in {*workers} - {worker}:
        better = map(gt, _scores(other), mine)
        ranks = list(map(add, ranks, better))
    return ranks


@lru_cache(maxsize=128)  # of 45 KB each; workers come and go for as long as this one lives
def _scores(worker: str) -> Sequence[int]:
    """Return a worker's score for each partition; the highest has the first rank."""
    # A checksum will not do: being linear, it would rank some workers first nowhere.
    digest = hashlib.shake_128(worker.encode()).digest(PARTITIONS * 8)
    return struct.unpack(f"{PARTITIONS}Q", digest)


def partition_of(name: str) -> int:
    """Return the partition a job's name falls into."""
    return zlib.crc32(name.encode()) % PARTITIONS


class Backlog:
    """Candidates by name, with an order to claim them in.

    A job dealt to another is left alone for `takeover_delay` seconds, which may be changed, times
    this worker's rank for it. Types in `limited_types` may be barred when taking, at no cost per
    job.

    With ageing, priorities and times of arrival make up one order that stays as time goes by: a
    level is the priority less the number of periods that had passed when the job arrived.
    """

    def __init__(
        self, *, takeover_delay: float, limit: int, limited_types: Iterable[str] = ()
    ) -> None:
        self.takeover_delay = takeover_delay
        self._limit = limit
        self._limited_types = frozenset(limited_types)
        self._arrivals = itertools.count()
        self._ranks: Sequence[int] = [0] * PARTITIONS
        self._candidates: dict[str, Candidate] = {}
        self._buckets: dict[int, PriorityBucket] = {}
        self._entries = 0
        self._ageing_seconds: int | None = None
        self._ageing_periods: dict[str, int] = {}
        self.overflowed = False

    def __len__(self) -> int:
        return len(self._candidates)

    def put(self, candidate: Candidate, now: float) -> None:
        """Add a job, or a newer version of it; beyond the limit it is left for a later look."""
        known = self._candidates.get(candidate.name)
        if known is None and len(self._candidates) >= self._limit:
            self.overflowed = True
            return
        self._candidates[candidate.name] = candidate
        self._record_arrival(candidate.name, now)
        if known is None or self._position(known) != self._position(candidate):
            self._enqueue(candidate, now)

    def put_back(self, candidate: Candidate, now: float) -> None:
        """Return a job that could not be tried, unless a newer version has come meanwhile."""
        if candidate.name not in self._candidates:
            self.put(candidate, now)

    def drop(self, name: str) -> None:
        """Forget a job that is no longer queued."""
        self._candidates.pop(name, None)
        self._ageing_periods.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._candidates.clear()
        self._ageing_periods.clear()
        self._buckets.clear()
        self._entries = 0
        self.overflowed = False

    def reassign(self, ranks: Sequence[int], now: float) -> None:
        """File all jobs again, because the live workers have changed."""
        self._ranks = ranks
        self._enqueue_all(now)

    def set_priority_ageing(self, seconds: int | None, now: float) -> None:
        """Let so many seconds of waiting count like one in priority, from now on; None: never."""
        if seconds == self._ageing_seconds:
            return
        self._ageing_seconds = seconds
        self._ageing_periods.clear()
        for name in self._candidates:
            self._record_arrival(name, now)
        self._enqueue_all(now)

    def pop(
        self, now: float, *, include_crashed: bool = True, excluded_types: ExcludedTypes = NO_TYPES
    ) -> Candidate | None:
        """Take out the job to claim next: highest priority first, my own before others'.

        Without `include_crashed` those that have crashed before keep their turn for later, as do
        those of limited types that are barred.
        """
        for number in sorted(self._buckets, reverse=True):
            level = self._buckets[number]
            turns = level.claimable(
                now,
                self.takeover_delay,
                include_crashed=include_crashed,
                excluded_types=excluded_types,
            )
            for key, name in turns:
                candidate = self._candidates.get(name)
                if candidate is None or self._position(candidate) != (number, key):
                    continue  # dropped, or filed elsewhere since
                if include_crashed or not candidate.crashes:
                    return self._candidates.pop(name)
                level.queues[key].deferred.append(name)
            if level.is_empty:
                del self._buckets[number]
        return None

    @property
    def has_deferred(self) -> bool:
        """Whether the turn of a job that has crashed before has come while it could not run."""
        return any(
            lane.deferred for level in self._buckets.values() for lane in level.queues.values()
        )

    def restart_takeover_delay(self, now: float) -> None:
        """Wait anew before taking over others' jobs: one of them was claimed under our hands."""
        for level in self._buckets.values():
            if level.own_exhausted_at is not None:
                level.own_exhausted_at = now

    def ready_at(self, excluded_types: ExcludedTypes = NO_TYPES) -> float | None:
        """Return when the next job that is dealt to another may be taken, if there is one."""
        times = (
            level.ready_at(self.takeover_delay, excluded_types) for level in self._buckets.values()
        )
        return min((time for time in times if time is not None), default=None)

    def _compact(self) -> None:
        """Forget names whose job is gone: nobody takes them off while all slots are busy."""
        for priority, level in list(self._buckets.items()):
            level.compact(partial(self._is_in, priority))
            if level.is_empty:
                del self._buckets[priority]
        self._entries = len(self._candidates)

    def _is_in(self, priority: int, key: str, name: str) -> bool:
        candidate = self._candidates.get(name)
        return candidate is not None and self._position(candidate) == (priority, key)

    def _position(self, candidate: Candidate) -> tuple[int, str]:
        type_ = candidate.type
        level = candidate.priority - self._ageing_periods.get(candidate.name, 0)
        return level, type_ if type_ in self._limited_types else _SHARED_QUEUE

    def _record_arrival(self, name: str, now: float) -> None:
        if self._ageing_seconds is not None:
            self._ageing_periods.setdefault(name, int(now // self._ageing_seconds))

    def _enqueue_all(self, now: float) -> None:
        self._buckets.clear()
        self._entries = 0
        for candidate in self._candidates.values():
            self._enqueue(candidate, now)

    def _enqueue(self, candidate: Candidate, now: float) -> None:
        self._entries += 1
        if self._entries > MAX_STALE_ENTRIES + 2 * len(self._candidates):
            self._compact()
        priority, key = self._position(candidate)
        level = self._buckets.setdefault(priority, PriorityBucket())
        rank = self._ranks[partition_of(candidate.name)]
        level.add(key, candidate.name, rank, now, next(self._arrivals))
