"""When to look at which job again, and which jobs to leave alone until then."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from asyncjob_operator.core.heap import DeadlineHeap


class DelayingQueue:
    """One deadline per job, in monotonic seconds; a blocked job keeps its own."""

    def __init__(self) -> None:
        self._heap = DeadlineHeap()
        self._blocked: dict[str, float] = {}
        self._backlog: OrderedDict[str, None] = OrderedDict()
        self._wakes_at = float("inf")
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        return len(self._heap)

    def add_all(self, uids: Iterable[str]) -> None:
        """Look at all of these in time, after what is due; a job is there once, however often."""
        self._backlog.update(dict.fromkeys(uids))
        if self._backlog:
            self._woken.set()

    def advance(self, uid: str, at: float) -> None:
        """Look at the job at this time, if not before."""
        before = self._heap.deadline_of(uid)
        if before is None or at < before:
            self.requeue_at(uid, at)

    def requeue_at(self, uid: str, at: float | None) -> None:
        """Look at the job at this time, or not by time alone."""
        if uid in self._blocked:
            return
        self._heap.set(uid, at)
        if at is not None and at < self._wakes_at:
            self._woken.set()

    def block_until(self, uid: str, until: float) -> None:
        """Leave the job alone until then."""
        self._blocked.pop(uid, None)
        self.requeue_at(uid, until)
        self._blocked[uid] = until

    def is_blocked(self, uid: str, now: float) -> bool:
        """Return whether the job is to be left alone."""
        return self._blocked.get(uid, now) > now

    def forget(self, uid: str) -> None:
        """Forget the job."""
        self._blocked.pop(uid, None)
        self._backlog.pop(uid, None)
        self._heap.set(uid, None)

    def pop_due(self, now: float, limit: int) -> list[str]:
        """Take at most `limit` jobs whose time has come, and then of those added in bulk."""
        due = self._heap.pop_due(now, limit)
        for uid in due:
            self._blocked.pop(uid, None)
        more = min(limit - len(due), len(self._backlog))
        return due + [self._backlog.popitem(last=False)[0] for _ in range(more)]

    def late_by(self, now: float) -> float | None:
        """Return how many seconds ago the first deadline was due, None if none is."""
        next_at = self._heap.next_deadline()
        return None if next_at is None or next_at > now else now - next_at

    async def wait(self, now: float, longest: float) -> None:
        """Wait for the next deadline, `longest` seconds at most; a sooner one cuts it short."""
        if self._backlog:
            await asyncio.sleep(0)
            return
        next_at = self._heap.next_deadline()
        pause = longest if next_at is None else min(max(next_at - now, 0.0), longest)
        self._wakes_at = now + pause
        self._woken.clear()
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            return
        finally:
            self._wakes_at = float("inf")
