"""The jobs that wait for a reservation in one queue, in the order in which they get one.

The highest priority comes first. Among equals the concurrency keys take turns, so that a thousand
jobs of one key do not delay another key's first; and so do arrays, each as if it were a key without
a limit. Within a key the job that has waited longest comes first. With ageing, waiting raises a
job's priority step by step, and the job then comes before jobs that have waited less, whatever
their key. Passing time does not change the order, so the keys stay sorted between rounds: the cost
of a round grows with what it grants, not with all keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from asyncjob_operator.core.heap import KeyedHeap

MAX_IDLE_KEYS: Final = 1000
"""Keys without waiting jobs whose last turn is remembered."""


@dataclass(frozen=True, slots=True)
class PendingJob:
    """A job that waits for a reservation."""

    uid: str
    name: str
    queued_time: str
    """Identifies its stay in Queued, as in `Reservation`."""

    key: str
    """The job's concurrencyKey, empty if it has none."""

    priority: int
    created: float
    """When the job was created, in epoch seconds."""

    array: str = ""
    """What the names of its array's chunks begin with, empty if it is no chunk."""

    @property
    def turn(self) -> str:
        """Return what takes turns: its key, or else its array, which no key is called like."""
        return self.key or (self.array and f"\n{self.array}")

    def rank(self, ageing_seconds: int | None) -> tuple[float, float, str]:
        """Return the sort key among jobs of one concurrency key."""
        first = self.created - self.priority * ageing_seconds if ageing_seconds else -self.priority
        return (first, self.created, self.uid)

    def priority_tier(self, ageing_seconds: int | None) -> int:
        """Return the sort key that precedes the turns of concurrency keys, the least first.

        With ageing all jobs age at the same moments, the multiples of `ageing_seconds`, so that the
        difference between two of them never changes.
        """
        first, _, _ = self.rank(ageing_seconds)
        return int(first // ageing_seconds) if ageing_seconds else int(first)


@dataclass(slots=True)
class _KeyQueue:
    """The waiting jobs of one key or array, and the number of its last turn."""

    last_served: int = 0
    jobs: KeyedHeap[tuple[float, float, str]] = field(default_factory=KeyedHeap)


class PendingQueue:
    """The pending jobs of one queue."""

    def __init__(self, ageing_seconds: int | None = None) -> None:
        self._ageing_seconds = ageing_seconds
        self._pending: dict[str, PendingJob] = {}
        self._keys: dict[str, _KeyQueue] = {}
        self._order: KeyedHeap[tuple[int, int, float, str]] = KeyedHeap()
        self._idle_keys: dict[str, int] = {}
        self._served = 0

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pending

    def add(self, job: PendingJob) -> bool:
        """Add a job, or update it; returns whether anything has changed."""
        previous = self._pending.get(job.uid)
        if previous == job:
            return False
        if previous and previous.turn != job.turn:
            self.discard(previous.uid)
        self._pending[job.uid] = job
        if job.turn not in self._keys:
            # A new key comes before those that have had a turn. A key that merely ran out of jobs
            # is not new: otherwise one that adds a single job at a time would always come first.
            self._keys[job.turn] = _KeyQueue(last_served=self._idle_keys.pop(job.turn, 0))
        self._keys[job.turn].jobs.set(job.uid, job.rank(self._ageing_seconds))
        self._reorder(job.turn)
        return True

    def discard(self, uid: str) -> bool:
        """Remove a job; returns whether it was pending."""
        job = self._pending.pop(uid, None)
        if job is None:
            return False
        self._keys[job.turn].jobs.set(uid, None)
        self._reorder(job.turn)
        return True

    def pop(self, count: int, may_admit: Callable[[str], bool]) -> list[PendingJob]:
        """Remove and return at most `count` jobs, in the order of their turns.

        `may_admit` is asked about a key before each reservation that the key would get. Once it
        refuses, the key gets no more in this round.
        """
        admitted: list[PendingJob] = []
        refused_keys: list[str] = []
        while len(admitted) < count and (first := self._order.first()) is not None:
            job = self._pending[first[0][-1]]
            if may_admit(job.key):
                admitted.append(self._serve(job))
            else:
                refused_keys.append(job.turn)
                self._order.set(job.turn, None)
        for key in refused_keys:
            self._reorder(key)
        return admitted

    def _serve(self, job: PendingJob) -> PendingJob:
        self._served += 1
        self._keys[job.turn].last_served = self._served
        self.discard(job.uid)
        return job

    def _reorder(self, name: str) -> None:
        """Sort a key by its first job; of a key without jobs only the last turn is remembered."""
        key = self._keys[name]
        first = key.jobs.first()
        if first is None:
            self._order.set(name, None)
            del self._keys[name]
            if key.last_served:
                self._remember_idle(name, key.last_served)
            return
        head = self._pending[first[1]]
        self._order.set(
            name,
            (head.priority_tier(self._ageing_seconds), key.last_served, head.created, head.uid),
        )

    def _remember_idle(self, name: str, last_served: int) -> None:
        """Remember the last turn of a key without jobs; the oldest are forgotten first."""
        self._idle_keys[name] = last_served
        if len(self._idle_keys) > MAX_IDLE_KEYS:
            del self._idle_keys[next(iter(self._idle_keys))]
