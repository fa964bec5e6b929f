"""Who waits for a place in one queue, and whose turn it is.

The highest priority first; among equals the concurrency keys take turns, so that a thousand jobs of
one key do not hold up another key's first; within a key the job that has waited longest. With
ageing a job counts one higher in priority for so many seconds of waiting, and then comes before
jobs that have waited less, whatever their key.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

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
        """Return what jobs of one key are sorted by: it does not change as time goes by."""
        first = self.since - self.priority * ageing if ageing else -self.priority
        return (first, self.since, self.uid)

    def tier(self, ageing: int | None, now: float) -> int:
        """Return the priority that counts now."""
        aged = int(max(0.0, now - self.since) // ageing) if ageing else 0
        return self.priority + aged


@dataclass(slots=True)
class _Key:
    """The jobs of one key, and the number of its last turn."""

    heap: list[tuple[tuple[float, float, str], int, Waiting]] = field(default_factory=list)
    turn: int = 0


class Line:
    """The line of one queue."""

    def __init__(self, ageing: int | None = None) -> None:
        self._ageing = ageing
        self._waiting: dict[str, Waiting] = {}
        self._keys: dict[str, _Key] = {}
        self._gone: dict[str, int] = {}
        self._turns = 0
        self._entries = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def put(self, waiting: Waiting) -> bool:
        """Line a job up, or note that it has changed; returns whether that is news."""
        if self._waiting.get(waiting.uid) == waiting:
            return False
        self._waiting[waiting.uid] = waiting
        key = self._keys.get(waiting.key)
        if key is None:
            # A key that comes anew has its turn before those that have had theirs; one that only
            # ran out of jobs has not come anew, or one job at a time would hold all others up.
            key = self._keys[waiting.key] = _Key(turn=self._gone.pop(waiting.key, 0))
        self._entries += 1
        heapq.heappush(key.heap, (waiting.rank(self._ageing), self._entries, waiting))
        return True

    def discard(self, uid: str) -> bool:
        """Take a job out of the line; returns whether it was there."""
        return self._waiting.pop(uid, None) is not None

    def round(self, now: float) -> "Round":
        """Begin to give places away at this time, in epoch seconds."""
        heads = {name: head for name in list(self._keys) if (head := self._head(name))}
        return Round(self, heads, now)

    def tier(self, head: Waiting, now: float) -> int:
        """Return the priority of a job that counts now."""
        return head.tier(self._ageing, now)

    def turn(self, key: str) -> int:
        """Return the number of the key's last turn, 0 if it had none."""
        return self._keys[key].turn

    def take(self, waiting: Waiting) -> Waiting | None:
        """Take a head out of the line; return the next of its key."""
        self._turns += 1
        self._keys[waiting.key].turn = self._turns
        del self._waiting[waiting.uid]
        return self._head(waiting.key)

    def _head(self, name: str) -> Waiting | None:
        key = self._keys[name]
        while key.heap:
            _, _, waiting = key.heap[0]
            if self._waiting.get(waiting.uid) == waiting:
                return waiting
            heapq.heappop(key.heap)  # gone, or lined up anew since
        del self._keys[name]
        if key.turn:
            self._remember(name, key.turn)
        return None

    def _remember(self, name: str, turn: int) -> None:
        """Keep the last turn of a key that nobody waits with; the oldest matter least."""
        self._gone[name] = turn
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]


class Round:
    """One round of giving places away."""

    def __init__(self, line: Line, heads: dict[str, Waiting], now: float) -> None:
        self._line = line
        self._now = now
        self._order = [self._ordered(head) for head in heads.values()]
        heapq.heapify(self._order)

    def take(self, may_have: Callable[[str], bool]) -> Waiting | None:
        """Take out the job whose turn it is.

        A key that may not have another place now gets none in this round.
        """
        while self._order:
            _, chosen = heapq.heappop(self._order)
            if may_have(chosen.key):
                following = self._line.take(chosen)
                if following is not None:
                    heapq.heappush(self._order, self._ordered(following))
                return chosen
        return None

    def _ordered(self, head: Waiting) -> tuple[tuple[int, int, float, str], Waiting]:
        tier = self._line.tier(head, self._now)
        return (-tier, self._line.turn(head.key), head.since, head.uid), head
