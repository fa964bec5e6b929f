"""Who waits for a place in one queue, and whose turn it is.

The highest priority first; among equals the concurrency keys take turns, so that a thousand jobs of
one key do not hold up another key's first; within a key the job that has waited longest. With
ageing a job counts one higher in priority for so many seconds of waiting, and then comes before
jobs that have waited less, whatever their key.

The order does not change as time goes by, so that the keys stay sorted between rounds: a round
costs what it gives away, not a walk over all keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from asyncjob_operator.core.heap import KeyedHeap

REMEMBERED: Final = 1000
"""Of so many keys that nobody waits with any more the last turn is known."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One job in the line, in this `stay`. `since` is its creation, in epoch seconds."""

    uid: str
    name: str
    stay: str
    key: str
    priority: int
    since: float

    def rank(self, ageing: int | None) -> tuple[float, float, str]:
        """Return what jobs of one key are sorted by."""
        first = self.since - self.priority * ageing if ageing else -self.priority
        return (first, self.since, self.uid)

    def tier(self, ageing: int | None) -> int:
        """Return what counts before the turns of keys, the least first.

        With ageing all jobs age at the same moments, the multiples of `ageing`: so the difference
        between two of them stays what it is.
        """
        first, _, _ = self.rank(ageing)
        return int(first // ageing) if ageing else int(first)


@dataclass(slots=True)
class _Key:
    """The jobs of one key, and the number of its last turn."""

    turn: int = 0
    jobs: KeyedHeap[tuple[float, float, str]] = field(default_factory=KeyedHeap)


class Line:
    """The line of one queue."""

    def __init__(self, ageing: int | None = None) -> None:
        self._ageing = ageing
        self._waiting: dict[str, Waiting] = {}
        self._keys: dict[str, _Key] = {}
        self._order: KeyedHeap[tuple[int, int, float, str]] = KeyedHeap()
        self._gone: dict[str, int] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def put(self, waiting: Waiting) -> bool:
        """Line a job up, or note that it has changed; returns whether that is news."""
        before = self._waiting.get(waiting.uid)
        if before == waiting:
            return False
        if before and before.key != waiting.key:
            self.discard(before.uid)
        self._waiting[waiting.uid] = waiting
        if waiting.key not in self._keys:
            # A key that comes anew has its turn before those that have had theirs; one that only
            # ran out of jobs has not come anew, or one job at a time would hold all others up.
            self._keys[waiting.key] = _Key(turn=self._gone.pop(waiting.key, 0))
        self._keys[waiting.key].jobs.set(waiting.uid, waiting.rank(self._ageing))
        self._sort(waiting.key)
        return True

    def discard(self, uid: str) -> bool:
        """Take a job out of the line; returns whether it was there."""
        waiting = self._waiting.pop(uid, None)
        if waiting is None:
            return False
        self._keys[waiting.key].jobs.set(uid, None)
        self._sort(waiting.key)
        return True

    def take(self, count: int, may_have: Callable[[str], bool]) -> list[Waiting]:
        """Take out at most so many jobs, in the order of their turns.

        `may_have` is asked of a key before each place that it would get. One that may not have
        another now gets none in this round.
        """
        taken: list[Waiting] = []
        passed: list[str] = []
        while len(taken) < count and (first := self._order.first()) is not None:
            chosen = self._waiting[first[0][-1]]
            if may_have(chosen.key):
                taken.append(self._have_turn(chosen))
            else:
                passed.append(chosen.key)
                self._order.set(chosen.key, None)
        for key in passed:
            self._sort(key)
        return taken

    def _have_turn(self, chosen: Waiting) -> Waiting:
        self._turns += 1
        self._keys[chosen.key].turn = self._turns
        self.discard(chosen.uid)
        return chosen

    def _sort(self, name: str) -> None:
        """Put a key where its first job belongs; forget one without jobs, but for its turn."""
        key = self._keys[name]
        first = key.jobs.first()
        if first is None:
            self._order.set(name, None)
            del self._keys[name]
            if key.turn:
                self._remember(name, key.turn)
            return
        head = self._waiting[first[1]]
        self._order.set(name, (head.tier(self._ageing), key.turn, head.since, head.uid))

    def _remember(self, name: str, turn: int) -> None:
        """Keep the last turn of a key that nobody waits with; the oldest matter least."""
        self._gone[name] = turn
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]
