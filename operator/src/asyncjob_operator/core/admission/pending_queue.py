"""The jobs that wait for a reservation in one queue, in the order in which they get one.

The highest priority comes first; among equals the concurrency keys take turns, so that a thousand
jobs of one key do not hold up another key's first; within a key comes the job that has waited
longest. With ageing a job counts one higher in priority for every so many seconds of waiting, and
then comes before jobs that have waited less, whatever their key. The order does not change as time
goes by, so the keys stay sorted between rounds: a round costs what it grants, not a walk over all
keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from asyncjob_operator.core.heap import KeyedHeap

MAX_IDLE_KEYS: Final = 1000
"""Of so many keys that nobody waits with any more the last turn is known."""


@dataclass(frozen=True, slots=True)
class PendingJob:
    """One job in the line, in this `queued_time`. `created` is its creation, in epoch seconds."""

    uid: str
    name: str
    queued_time: str
    key: str
    priority: int
    created: float

    def rank(self, ageing_seconds: int | None) -> tuple[float, float, str]:
        """Return what jobs of one key are sorted by."""
        first = self.created - self.priority * ageing_seconds if ageing_seconds else -self.priority
        return (first, self.created, self.uid)

    def priority_tier(self, ageing_seconds: int | None) -> int:
        """Return what counts before the turns of keys, the least first.

        With ageing all jobs age at the same moments, the multiples of `ageing_seconds`: so the
        difference between two of them stays what it is.
        """
        first, _, _ = self.rank(ageing_seconds)
        return int(first // ageing_seconds) if ageing_seconds else int(first)


@dataclass(slots=True)
class _KeyQueue:
    """The jobs of one key, and the number of its last turn."""

    last_served: int = 0
    jobs: KeyedHeap[tuple[float, float, str]] = field(default_factory=KeyedHeap)


class PendingQueue:
    """The line of one queue."""

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
        """Line a job up, or note that it has changed; returns whether that is news."""
        before = self._pending.get(job.uid)
        if before == job:
            return False
        if before and before.key != job.key:
            self.discard(before.uid)
        self._pending[job.uid] = job
        if job.key not in self._keys:
            # A key that comes anew has its turn before those that have had theirs; one that only
            # ran out of jobs has not come anew, or one job at a time would hold all others up.
            self._keys[job.key] = _KeyQueue(last_served=self._idle_keys.pop(job.key, 0))
        self._keys[job.key].jobs.set(job.uid, job.rank(self._ageing_seconds))
        self._reorder(job.key)
        return True

    def discard(self, uid: str) -> bool:
        """Take a job out of the line; returns whether it was there."""
        waiting = self._pending.pop(uid, None)
        if waiting is None:
            return False
        self._keys[waiting.key].jobs.set(uid, None)
        self._reorder(waiting.key)
        return True

    def pop(self, count: int, may_admit: Callable[[str], bool]) -> list[PendingJob]:
        """Take out at most so many jobs, in the order of their turns.

        `may_admit` is asked of a key before each place that it would get. One that may not have
        another now gets none in this round.
        """
        taken: list[PendingJob] = []
        passed: list[str] = []
        while len(taken) < count and (first := self._order.first()) is not None:
            chosen = self._pending[first[0][-1]]
            if may_admit(chosen.key):
                taken.append(self._serve(chosen))
            else:
                passed.append(chosen.key)
                self._order.set(chosen.key, None)
        for key in passed:
            self._reorder(key)
        return taken

    def _serve(self, chosen: PendingJob) -> PendingJob:
        self._served += 1
        self._keys[chosen.key].last_served = self._served
        self.discard(chosen.uid)
        return chosen

    def _reorder(self, name: str) -> None:
        """Put a key where its first job belongs; forget one without jobs, but for its turn."""
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
        """Keep the last turn of a key that nobody waits with; the oldest matter least."""
        self._idle_keys[name] = last_served
        if len(self._idle_keys) > MAX_IDLE_KEYS:
            del self._idle_keys[next(iter(self._idle_keys))]
