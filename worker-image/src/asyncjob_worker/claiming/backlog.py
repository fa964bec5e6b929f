"""The queued jobs that a worker knows of, and the order in which it claims them.

Jobs are assigned to the live workers by rendezvous hashing, so that idle workers do not all try to
claim the same job and, with a full backlog, each works on its own share. A job assigned to another
worker is taken over only after a delay that grows with this worker's rank for it, and that starts
again whenever a takeover turned out to be too early.

Each priority has a bucket, and each type with a limit of its own has a queue within it, so that
jobs that cannot be claimed now are not examined again and again. Pure: time is an argument.
"""

import hashlib
import itertools
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import add, gt
from typing import Final, TypeVar

from asyncjob.lifecycle.claim import Candidate

SortKey = TypeVar("SortKey", int, float)

ExcludedTypes = AbstractSet[str]
"""Limited types of which as many are at work as may be."""

NO_TYPES: Final[ExcludedTypes] = frozenset()


@dataclass(slots=True)
class TypeQueue:
    """Jobs of one priority that wait for the same: mine by number of arrival, others' by rank.

    `deferred` have crashed before, and their turn came while another such job was running.
    """

    # No dict: finding its first key walks over all that were taken out before.
    own: deque[tuple[int, str]] = field(default_factory=deque)
    foreign: dict[int, deque[tuple[float, str]]] = field(default_factory=dict)
    deferred: deque[str] = field(default_factory=deque)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here."""
        return not (self.own or self.foreign or self.deferred)

    def compact(self, is_wanted: Callable[[str], bool]) -> None:
        """Forget the names that are not wanted, and all but the first time of each."""
        self.own = deque(_deduplicated(self.own, is_wanted))
        self.deferred = deque(dict.fromkeys(filter(is_wanted, self.deferred)))
        tidied = {
            rank: deque(_deduplicated(waiting, is_wanted)) for rank, waiting in self.foreign.items()
        }
        self.foreign = {rank: waiting for rank, waiting in tidied.items() if waiting}

    def pop_foreign(self, rank: int) -> str:
        """Take off the first of another rank."""
        _, name = self.foreign[rank].popleft()
        if not self.foreign[rank]:
            del self.foreign[rank]
        return name


@dataclass(slots=True)
class PriorityBucket:
    """The jobs of one priority; `own_exhausted_at` is when mine ran out.

    Each limited type has a lane of its own, so that no job of it is looked at while it is barred.
    """

    queues: dict[str, TypeQueue] = field(default_factory=dict)
    own_exhausted_at: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here."""
        return all(lane.is_empty for lane in self.queues.values())

    def add(self, key: str, name: str, rank: int, now: float, number: int) -> None:
        """Take a job into a lane; `number` grows with each."""
        lane = self.queues.setdefault(key, TypeQueue())
        if rank == 0:
            lane.own.append((number, name))
        else:
            lane.foreign.setdefault(rank, deque()).append((now, name))

    def claimable(
        self,
        now: float,
        takeover_delay: float,
        *,
        include_crashed: bool,
        excluded_types: ExcludedTypes,
    ) -> Iterator[tuple[str, str]]:
        """Take names off with their lanes, in the order in which they may be claimed now."""
        lanes = {key: lane for key, lane in self.queues.items() if key not in excluded_types}
        for key, lane in lanes.items():
            while include_crashed and lane.deferred:
                yield key, lane.deferred.popleft()
        while (first := _oldest_own(lanes)) is not None:
            self.own_exhausted_at = None
            yield first, lanes[first].own.popleft()[1]
        if self.own_exhausted_at is None:
            self.own_exhausted_at = now
        for key, lane in lanes.items():
            for rank in sorted(lane.foreign):
                while rank in lane.foreign and self._ready_at(lane, rank, takeover_delay) <= now:
                    yield key, lane.pop_foreign(rank)

    def compact(self, is_wanted: Callable[[str, str], bool]) -> None:
        """Forget the names that are not wanted; asked by lane and name."""
        for key, lane in list(self.queues.items()):
            lane.compact(partial(is_wanted, key))
            if lane.is_empty:
                del self.queues[key]

    def ready_at(self, takeover_delay: float, excluded_types: ExcludedTypes) -> float | None:
        """Return when the next of the others' jobs may be taken."""
        lanes = (lane for key, lane in self.queues.items() if key not in excluded_types)
        times = (
            self._ready_at(lane, rank, takeover_delay) for lane in lanes for rank in lane.foreign
        )
        return min(times, default=None)

    def _ready_at(self, queue: TypeQueue, rank: int, takeover_delay: float) -> float:
        arrived = queue.foreign[rank][0][0]
        return max(arrived, self.own_exhausted_at or arrived) + rank * takeover_delay


def _oldest_own(queues: Mapping[str, TypeQueue]) -> str | None:
    """Return the lane whose first job of mine has waited longest."""
    waiting = [(lane.own[0], key) for key, lane in queues.items() if lane.own]
    return min(waiting)[1] if waiting else None


def _deduplicated(
    waiting: Iterable[tuple[SortKey, str]], is_wanted: Callable[[str], bool]
) -> list[tuple[SortKey, str]]:
    first: dict[str, SortKey] = {}
    for mark, name in waiting:
        if is_wanted(name):
            first.setdefault(name, mark)
    return [(mark, name) for name, mark in first.items()]


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
