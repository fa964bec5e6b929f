"""The queued jobs a worker knows of, and which of them it should claim next.

Jobs are dealt to live workers by rendezvous hashing, so that idle workers do not all run for the
same job and, with a full backlog, each works on its own share. What is dealt to another is taken
over only after a while that grows with this worker's rank for it. Pure: time is an argument.
"""

import hashlib
import heapq
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from asyncjob.lifecycle.claim import Candidate

PARTITIONS = 1024
"""Jobs are hashed into so many partitions; only partitions are dealt anew when workers change."""


def deal(worker: str, workers: Iterable[str]) -> Sequence[int]:
    """Return this worker's rank for each partition: 0 where it comes first."""
    everyone = sorted({worker, *workers})
    return [_rank(partition, worker, everyone) for partition in range(PARTITIONS)]


def _rank(partition: int, worker: str, everyone: Sequence[str]) -> int:
    mine = _score(partition, worker)
    return sum(_score(partition, other) > mine for other in everyone)


def _score(partition: int, worker: str) -> bytes:
    # A checksum will not do: being linear, it would rank some workers first nowhere.
    return hashlib.blake2b(f"{partition}/{worker}".encode(), digest_size=8).digest()


def partition_of(name: str) -> int:
    """Return the partition a job's name falls into."""
    return zlib.crc32(name.encode()) % PARTITIONS


@dataclass(slots=True)
class _Level:
    """The jobs of one priority: mine in order of arrival, others' by when I may take them."""

    mine: dict[str, None] = field(default_factory=dict)
    others: list[tuple[float, str]] = field(default_factory=list)


class Backlog:
    """Candidates by name, with an order to claim them in."""

    def __init__(self, *, steal_after: float, limit: int) -> None:
        self._steal_after = steal_after
        self._limit = limit
        self._ranks: Sequence[int] = [0] * PARTITIONS
        self._candidates: dict[str, Candidate] = {}
        self._levels: dict[int, _Level] = {}
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

    def drop(self, name: str) -> None:
        """Forget a job that is no longer queued."""
        self._candidates.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._candidates.clear()
        self._levels.clear()
        self.overflowed = False

    def deal_anew(self, ranks: Sequence[int], now: float) -> None:
        """File all jobs again, because the live workers have changed."""
        self._ranks = ranks
        self._levels.clear()
        for candidate in self._candidates.values():
            self._file(candidate, now)

    def take(self, now: float) -> Candidate | None:
        """Take out the job to claim next: highest priority first, my own before others'."""
        for priority in sorted(self._levels, reverse=True):
            name = self._next_of(self._levels[priority], priority, now)
            if name is not None:
                return self._candidates.pop(name)
            if not self._levels[priority].mine and not self._levels[priority].others:
                del self._levels[priority]
        return None

    def ready_at(self) -> float | None:
        """Return when the next job that is dealt to another may be taken, if there is one."""
        times = [level.others[0][0] for level in self._levels.values() if level.others]
        return min(times, default=None)

    def _file(self, candidate: Candidate, now: float) -> None:
        level = self._levels.setdefault(candidate.priority, _Level())
        rank = self._ranks[partition_of(candidate.name)]
        if rank == 0:
            level.mine[candidate.name] = None
        else:
            heapq.heappush(level.others, (now + rank * self._steal_after, candidate.name))

    def _next_of(self, level: _Level, priority: int, now: float) -> str | None:
        while level.mine:
            name = next(iter(level.mine))
            del level.mine[name]
            if self._is_filed(name, priority):
                return name
        while level.others and level.others[0][0] <= now:
            _, name = heapq.heappop(level.others)
            if self._is_filed(name, priority):
                return name
        return None

    def _is_filed(self, name: str, priority: int) -> bool:
        candidate = self._candidates.get(name)
        return candidate is not None and candidate.priority == priority
