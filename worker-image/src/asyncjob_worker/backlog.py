"""The queued jobs a worker knows of, and which of them it should claim next.

Jobs are dealt to live workers by rendezvous hashing, so that idle workers do not all run for the
same job and, with a full backlog, each works on its own share. What is dealt to another is taken
over only after a while that grows with this worker's rank for it, counted anew whenever that turns
out to have been too early. Pure: time is an argument.
"""

import hashlib
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import add, gt

from asyncjob.lifecycle.claim import Candidate

PARTITIONS = 1024
"""Jobs are hashed into so many partitions; only partitions are dealt anew when workers change."""

SLACK = 1024
"""So many filed names without a job are put up with, and as many again as there are jobs."""


def deal(worker: str, workers: Iterable[str]) -> Sequence[int]:
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


@dataclass(slots=True)
class _Level:
    """The jobs of one priority: mine in order of arrival, others' by rank and time of arrival.

    `dry_since` is when mine ran out. `held_back` have crashed before, and their turn came while
    another such job was running.
    """

    mine: dict[str, None] = field(default_factory=dict)
    others: dict[int, deque[tuple[float, str]]] = field(default_factory=dict)
    held_back: dict[str, None] = field(default_factory=dict)
    dry_since: float | None = None

    @property
    def empty(self) -> bool:
        return not (self.mine or self.others or self.held_back)

    def file(self, name: str, rank: int, now: float) -> None:
        """Take a job in."""
        if rank == 0:
            self.mine[name] = None
        else:
            self.others.setdefault(rank, deque()).append((now, name))

    def turns(self, now: float, steal_after: float, *, crashed_too: bool) -> Iterator[str]:
        """Take names off, in the order in which they may be claimed now."""
        while crashed_too and self.held_back:
            yield _pop_first(self.held_back)
        while self.mine:
            self.dry_since = None
            yield _pop_first(self.mine)
        if self.dry_since is None:
            self.dry_since = now
        for rank in sorted(self.others):
            while rank in self.others and self._ready_at(rank, steal_after) <= now:
                yield self._pop_other(rank)

    def ready_at(self, steal_after: float) -> float | None:
        """Return when the next of the others' jobs may be taken."""
        return min((self._ready_at(rank, steal_after) for rank in self.others), default=None)

    def tidy(self, is_wanted: Callable[[str], bool]) -> None:
        """Forget the names that are not wanted, and all but the first time of the others."""
        self.mine = dict.fromkeys(filter(is_wanted, self.mine))
        self.held_back = dict.fromkeys(filter(is_wanted, self.held_back))
        others, self.others = self.others, {}
        for rank, arrivals in others.items():
            first: dict[str, float] = {}
            for at, name in arrivals:
                if is_wanted(name):
                    first.setdefault(name, at)
            if first:
                self.others[rank] = deque((at, name) for name, at in first.items())

    def _pop_other(self, rank: int) -> str:
        _, name = self.others[rank].popleft()
        if not self.others[rank]:
            del self.others[rank]
        return name

    def _ready_at(self, rank: int, steal_after: float) -> float:
        arrived = self.others[rank][0][0]
        return max(arrived, self.dry_since or arrived) + rank * steal_after


class Backlog:
    """Candidates by name, with an order to claim them in.

    A job dealt to another is left alone for `steal_after` seconds, which may be changed, times this
    worker's rank for it.
    """

    def __init__(self, *, steal_after: float, limit: int) -> None:
        self.steal_after = steal_after
        self._limit = limit
        self._ranks: Sequence[int] = [0] * PARTITIONS
        self._candidates: dict[str, Candidate] = {}
        self._levels: dict[int, _Level] = {}
        self._filed = 0
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
        if known is None or known.priority != candidate.priority:
            self._file(candidate, now)

    def put_back(self, candidate: Candidate, now: float) -> None:
        """Return a job that could not be tried, unless a newer version has come meanwhile."""
        if candidate.name not in self._candidates:
            self.put(candidate, now)

    def drop(self, name: str) -> None:
        """Forget a job that is no longer queued."""
        self._candidates.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._candidates.clear()
        self._levels.clear()
        self._filed = 0
        self.overflowed = False

    def deal_anew(self, ranks: Sequence[int], now: float) -> None:
        """File all jobs again, because the live workers have changed."""
        self._ranks = ranks
        self._levels.clear()
        self._filed = 0
        for candidate in self._candidates.values():
            self._file(candidate, now)

    def take(self, now: float, *, crashed_too: bool = True) -> Candidate | None:
        """Take out the job to claim next: highest priority first, my own before others'.

        Without `crashed_too` those that have crashed before keep their turn for later.
        """
        for priority in sorted(self._levels, reverse=True):
            level = self._levels[priority]
            for name in level.turns(now, self.steal_after, crashed_too=crashed_too):
                candidate = self._candidates.get(name)
                if candidate is None or candidate.priority != priority:
                    continue  # dropped, or filed elsewhere since
                if crashed_too or not candidate.crashes:
                    return self._candidates.pop(name)
                level.held_back[name] = None
            if level.empty:
                del self._levels[priority]
        return None

    def lost(self, now: float) -> None:
        """Wait anew before taking over others' jobs: one of them was claimed under our hands."""
        for level in self._levels.values():
            if level.dry_since is not None:
                level.dry_since = now

    def ready_at(self) -> float | None:
        """Return when the next job that is dealt to another may be taken, if there is one."""
        times = (level.ready_at(self.steal_after) for level in self._levels.values())
        return min((time for time in times if time is not None), default=None)

    def _tidy(self) -> None:
        """Forget names whose job is gone: nobody takes them off while all slots are busy."""
        for priority, level in list(self._levels.items()):
            level.tidy(partial(self._is_at, priority))
            if level.empty:
                del self._levels[priority]
        self._filed = len(self._candidates)

    def _is_at(self, priority: int, name: str) -> bool:
        candidate = self._candidates.get(name)
        return candidate is not None and candidate.priority == priority

    def _file(self, candidate: Candidate, now: float) -> None:
        self._filed += 1
        if self._filed > SLACK + 2 * len(self._candidates):
            self._tidy()
        level = self._levels.setdefault(candidate.priority, _Level())
        level.file(candidate.name, self._ranks[partition_of(candidate.name)], now)


def _pop_first(names: dict[str, None]) -> str:
    name = next(iter(names))
    del names[name]
    return name
