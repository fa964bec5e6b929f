"""The work queue of the control loops: fair lanes, deadlines, backoff per item, and workers.

The contract is client-go's: an item is queued once, is handled by one worker at a time, and an item
whose handling failed comes back later each time.
"""

import asyncio
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from asyncjob_operator.core.heap import DeadlineHeap
from asyncjob_operator.kube.clock import with_jitter
from asyncjob_operator.telemetry.containment import Activity, Containment, ObjectRef
from asyncjob_operator.telemetry.loop_health import LoopHealth

MAX_REFUSED_BACKOFF: Final = 600.0
"""Seconds; so seldom is tried again what the API server refuses, be it by a rule or for a right.

It refuses the same write for as long as the object is as it is, so trying sooner helps nobody.
"""

MAX_TRACKED_ITEMS: Final = 10_000
"""Of so many that have failed and were not heard of since it is known how often."""


class ItemBackoff:
    """Failures in a row per key; pauses in seconds, doubled from `initial` up to `cap`."""

    def __init__(self, initial: float, cap: float) -> None:
        self.cap = cap
        self.initial = initial
        self._failures: dict[str, int] = {}
        self._last_errors: dict[str, str] = {}

    def record_failure(self, key: str) -> float:
        """Count a failure and return the pause before the next try."""
        failures = self._failures[key] = self._failures.pop(key, 0) + 1
        if len(self._failures) > MAX_TRACKED_ITEMS:
            self.reset(next(iter(self._failures)))
        return with_jitter(min(self.initial * 2 ** min(failures - 1, 30), self.cap))

    def failures(self, key: str) -> int:
        """Return how often in a row it has failed."""
        return self._failures.get(key, 0)

    def is_new_error(self, key: str, message: str) -> bool:
        """Return whether it fails otherwise than the last time; whoever asks says so."""
        before = self._last_errors.get(key)
        self._last_errors[key] = message
        return before != message

    def reset(self, key: str) -> None:
        """Begin anew: it could be written, or there is nothing more to do about it."""
        self._failures.pop(key, None)
        self._last_errors.pop(key, None)


class WorkQueue:
    """Lanes take turns, and within a lane who came first is first.

    So a thousand of one kind, or of one tenant, hold up another's first by one turn. One being
    worked on is not handed out again until it is done. What is added while it is worked on is
    forgotten, because who works looks at it once more afterwards; or, with `requeue_dirty`, it is
    on the list again then. Of one lane at most `max_per_lane` are worked on at once, so that the
    others find somebody free, and an API server that is not busy with that lane alone.
    """

    def __init__(self, *, requeue_dirty: bool = False, max_per_lane: int = sys.maxsize) -> None:
        self._requeue_dirty = requeue_dirty
        self._max_per_lane = max_per_lane
        self._lanes: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._lane_of: dict[str, str] = {}
        self._processing: dict[str, str] = {}
        self._processing_in_lane: Counter[str] = Counter()
        self._dirty: dict[str, str] = {}
        self._available = asyncio.Event()

    def __len__(self) -> int:
        return len(self._lane_of)

    def add(self, key: str, lane: str = "") -> None:
        """Put it on the list, unless it is being worked on; who is on it already keeps its lane."""
        if key in self._processing:
            if self._requeue_dirty:
                self._dirty[key] = lane
        elif key not in self._lane_of:
            self._lane_of[key] = lane
            self._lanes.setdefault(lane, OrderedDict())[key] = None
            self._available.set()

    def discard(self, key: str) -> None:
        """Take it off the list."""
        lane = self._lane_of.pop(key, None)
        if lane is not None:
            del self._lanes[lane][key]
            if not self._lanes[lane]:
                del self._lanes[lane]

    async def get(self) -> str:
        """Wait for the first of the lane whose turn it is, and take it; it is busy until `done`."""
        while (lane := self._next_lane()) is None:
            self._available.clear()
            await self._available.wait()
        keys = self._lanes.pop(lane)
        key, _ = keys.popitem(last=False)
        del self._lane_of[key]
        if keys:
            self._lanes[lane] = keys
        self._processing[key] = lane
        self._processing_in_lane[lane] += 1
        return key

    def done(self, key: str) -> None:
        """Take that the work on it has ended, however."""
        lane = self._processing.pop(key, None)
        if lane is not None:
            self._processing_in_lane[lane] -= 1
            if not self._processing_in_lane[lane]:
                del self._processing_in_lane[lane]
            self._available.set()
        if key in self._dirty:
            self.add(key, self._dirty.pop(key))

    def requeue(self, key: str) -> None:
        """Take that nothing was done: it is on the list again."""
        lane = self._processing.get(key, "")
        self.done(key)
        self.add(key, lane)

    def _next_lane(self) -> str | None:
        most = self._max_per_lane
        return next((lane for lane in self._lanes if self._processing_in_lane[lane] < most), None)


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


MAX_CONCURRENT_RECONCILES: Final = 32


class Reconciler(Protocol):
    """Who does what is due."""

    async def reconcile(self, key: str) -> None:
        """Do what is due for the one on the list."""

    def object_ref(self, key: str) -> ObjectRef:
        """Return which object that is."""

    def requeue_after(self, key: str, seconds: float) -> None:
        """Leave one alone for so long that makes the operator stumble."""


class Leadership(Protocol):
    """Whether this replica may act."""

    def leads(self) -> bool:
        """Return whether it may act now."""

    async def wait_until_elected(self) -> None:
        """Wait until it may."""


class ReconcilePool:
    """Bounded concurrency; `on_done` is called with each one on the list that was worked on."""

    def __init__(
        self,
        queue: WorkQueue,
        reconciler: Reconciler,
        leadership: Leadership,
        containment: Containment,
        on_done: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self._reconciler = reconciler
        self._leadership = leadership
        self._containment = containment
        self._on_done = on_done
        self._free_slots = asyncio.Semaphore(MAX_CONCURRENT_RECONCILES)
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, health: LoopHealth) -> None:
        """Act until cancelled; what has begun then goes on."""
        while True:
            with health.idle():
                await self._leadership.wait_until_elected()
            await self._free_slots.acquire()
            try:
                with health.idle():
                    uid = await self._queue.get()
            except asyncio.CancelledError:
                self._free_slots.release()
                raise
            if not self._leadership.leads():
                self._requeue(uid)
                continue
            task = asyncio.create_task(self._reconcile(uid), name=f"act on {uid}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def drain(self, seconds: float) -> None:
        """Wait for what has begun, but not for long."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            for task in late:
                task.cancel()

    def _requeue(self, key: str) -> None:
        self._free_slots.release()
        self._queue.requeue(key)

    async def _reconcile(self, key: str) -> None:
        one = self._reconciler.object_ref(key)
        try:
            with self._containment.guard(one, Activity.ACT) as guard:
                await self._reconciler.reconcile(key)
            if guard.pause is not None:
                self._reconciler.requeue_after(key, guard.pause)
        finally:
            self._free_slots.release()
            self._queue.done(key)
            self._on_done(key)
