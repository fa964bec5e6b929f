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
from asyncjob_worker.levels import NONE, Barred, Level

PARTITIONS = 1024
"""Jobs are hashed into so many partitions; only partitions are dealt anew when workers change."""

SLACK = 1024
"""So many filed names without a job are put up with, and as many again as there are jobs."""
_UNLIMITED: Final = ""
"""The lane of all types without a limit of their own."""


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


class Backlog:
    """Candidates by name, with an order to claim them in.

    A job dealt to another is left alone for `steal_after` seconds, which may be changed, times this
    worker's rank for it. Types in `limited` may be barred when taking, at no cost per job.

    With ageing, priorities and times of arrival make up one order that stays as time goes by: a
    level is the priority less the number of periods that had passed when the job arrived.
    """

    def __init__(self, *, steal_after: float, limit: int, limited: Iterable[str] = ()) -> None:
        self.steal_after = steal_after
        self._limit = limit
        self._limited = frozenset(limited)
        self._arrivals = itertools.count()
        self._ranks: Sequence[int] = [0] * PARTITIONS
        self._candidates: dict[str, Candidate] = {}
        self._levels: dict[int, Level] = {}
        self._filed = 0
        self._ageing: int | None = None
        self._periods: dict[str, int] = {}
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
        self._note_arrival(candidate.name, now)
        if known is None or self._place(known) != self._place(candidate):
            self._file(candidate, now)

    def put_back(self, candidate: Candidate, now: float) -> None:
        """Return a job that could not be tried, unless a newer version has come meanwhile."""
        if candidate.name not in self._candidates:
            self.put(candidate, now)

    def drop(self, name: str) -> None:
        """Forget a job that is no longer queued."""
        self._candidates.pop(name, None)
        self._periods.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._candidates.clear()
        self._periods.clear()
        self._levels.clear()
        self._filed = 0
        self.overflowed = False

    def deal_anew(self, ranks: Sequence[int], now: float) -> None:
        """File all jobs again, because the live workers have changed."""
        self._ranks = ranks
        self._file_all(now)

    def age_by(self, seconds: int | None, now: float) -> None:
        """Let so many seconds of waiting count like one in priority, from now on; None: never."""
        if seconds == self._ageing:
            return
        self._ageing = seconds
        self._periods.clear()
        for name in self._candidates:
            self._note_arrival(name, now)
        self._file_all(now)

    def take(
        self, now: float, *, crashed_too: bool = True, barred: Barred = NONE
    ) -> Candidate | None:
        """Take out the job to claim next: highest priority first, my own before others'.

        Without `crashed_too` those that have crashed before keep their turn for later, as do those
        of limited types that are barred.
        """
        for number in sorted(self._levels, reverse=True):
            level = self._levels[number]
            turns = level.turns(now, self.steal_after, crashed_too=crashed_too, barred=barred)
            for key, name in turns:
                candidate = self._candidates.get(name)
                if candidate is None or self._place(candidate) != (number, key):
                    continue  # dropped, or filed elsewhere since
                if crashed_too or not candidate.crashes:
                    return self._candidates.pop(name)
                level.lanes[key].held_back.append(name)
            if level.empty:
                del self._levels[number]
        return None

    @property
    def holds_back(self) -> bool:
        """Whether the turn of a job that has crashed before has come while it could not run."""
        return any(
            lane.held_back for level in self._levels.values() for lane in level.lanes.values()
        )

    def lost(self, now: float) -> None:
        """Wait anew before taking over others' jobs: one of them was claimed under our hands."""
        for level in self._levels.values():
            if level.dry_since is not None:
                level.dry_since = now

    def ready_at(self, barred: Barred = NONE) -> float | None:
        """Return when the next job that is dealt to another may be taken, if there is one."""
        times = (level.ready_at(self.steal_after, barred) for level in self._levels.values())
        return min((time for time in times if time is not None), default=None)

    def _tidy(self) -> None:
        """Forget names whose job is gone: nobody takes them off while all slots are busy."""
        for priority, level in list(self._levels.items()):
            level.tidy(partial(self._is_at, priority))
            if level.empty:
                del self._levels[priority]
        self._filed = len(self._candidates)

    def _is_at(self, priority: int, key: str, name: str) -> bool:
        candidate = self._candidates.get(name)
        return candidate is not None and self._place(candidate) == (priority, key)

    def _place(self, candidate: Candidate) -> tuple[int, str]:
        type_ = candidate.type
        level = candidate.priority - self._periods.get(candidate.name, 0)
        return level, type_ if type_ in self._limited else _UNLIMITED

    def _note_arrival(self, name: str, now: float) -> None:
        if self._ageing is not None:
            self._periods.setdefault(name, int(now // self._ageing))

    def _file_all(self, now: float) -> None:
        self._levels.clear()
        self._filed = 0
        for candidate in self._candidates.values():
            self._file(candidate, now)

    def _file(self, candidate: Candidate, now: float) -> None:
        self._filed += 1
        if self._filed > SLACK + 2 * len(self._candidates):
            self._tidy()
        priority, key = self._place(candidate)
        level = self._levels.setdefault(priority, Level())
        rank = self._ranks[partition_of(candidate.name)]
        level.file(key, candidate.name, rank, now, next(self._arrivals))
