"""Queued jobs that another worker claims first, and which of them this one takes over.

That is after a delay. While the owner of a shard goes on it claims the first of its jobs next, and
of what it has claimed just now the watch does not tell yet: a deputy that took over the first would
mostly lose it. So while the owner goes on its deputy takes over the last, to which the owner comes
last. Others, who come later, and of jobs of several owners, always take over the first. Pure: time
is an argument.
"""

from collections.abc import Callable

from asyncjob_worker.claiming.turns import TurnQueue


class ForeignJobs:
    """Jobs for which this worker has the same rank, each with its time of arrival.

    `of_one_shard` says that this worker is the deputy of their owner.
    """

    __slots__ = ("_of_one_shard", "_owner_seen_at", "_waiting")

    def __init__(self, *, of_one_shard: bool) -> None:
        self._of_one_shard = of_one_shard
        self._waiting: TurnQueue[float] = TurnQueue()
        self._owner_seen_at: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def first(self) -> float:
        """Return the arrival of the first. Raises IndexError if there is none."""
        return self._waiting.first

    def append(self, now: float, name: str, array: str) -> None:
        """Add a job; `array` is empty unless it is a chunk of one."""
        self._waiting.append(now, name, array)

    def compact(self, is_wanted: Callable[[str], bool]) -> None:
        """Remove the names that are not wanted, and all but the first occurrence of each."""
        self._waiting.compact(is_wanted)

    def pop(
        self, now: float, *, idle_since: float, delay: float, is_wanted: Callable[[str], bool]
    ) -> str | None:
        """Remove and return the job to take over now; None if there is none.

        It has waited for `delay` since it arrived, and since this worker has no own jobs left.
        First names that are not wanted are removed: that they are gone shows that their owner, or
        somebody in its place, goes on.
        """
        while self._waiting and not is_wanted(self._waiting.first_name):
            self._waiting.popleft()
            if self._of_one_shard:
                self._owner_seen_at = now
        if not self._waiting or idle_since + delay > now:
            return None
        if self._first_waits_since + delay <= now:
            return self._waiting.popleft()
        return self._waiting.pop_last(now, lambda arrived: arrived + delay)

    def waits_since(self, idle_since: float | None) -> float:
        """Return from when on the delay counts that is over first. Raises IndexError if empty."""
        second = self._waiting.second if self._of_one_shard else None
        began = self._first_waits_since if second is None else min(self._first_waits_since, second)
        return began if idle_since is None else max(began, idle_since)

    @property
    def _first_waits_since(self) -> float:
        first = self._waiting.first
        return first if self._owner_seen_at is None else max(first, self._owner_seen_at)
