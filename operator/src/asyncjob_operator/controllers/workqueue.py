"""The work queue of the control loops: fair lanes, requeue times, backoff per item, and workers.

As in client-go, an item is queued once, is handled by one worker at a time, and comes back later
each time its handling fails. Unlike client-go, an item that is added while it is handled is dropped
by default: the pools of jobs and cron jobs evaluate each item once more when it is done, which
queues it only if something is due, where client-go would hand out every job a second time for the
event of the operator's own write. `WorkQueue(requeue_dirty=True)` is client-go's behaviour, for
items that nobody evaluates: admission has it.
"""

import asyncio
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from asyncjob.backoff import backoff_delay, with_jitter
from asyncjob_operator.core.heap import TimerHeap
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.quarantine import Activity, ObjectRef, Quarantine

MAX_CONCURRENT_RECONCILES: Final = 32
"""Items of one pool that are reconciled at the same time.

Enough to take 1,000 jobs from dead workers within 15 s.
"""

MAX_PER_NAMESPACE: Final = MAX_CONCURRENT_RECONCILES // 2
"""Of these, cron jobs, and queues with limits, of one namespace: the others find a free worker."""

MAX_REFUSED_BACKOFF: Final = 600.0
"""Longest pause in seconds after a write that the API server refuses, by a rule or for a right.

It refuses the same write as long as the object does not change: trying more often does not help.
"""

MAX_TRACKED_ITEMS: Final = 10_000
"""Keys whose failures are counted; the one that failed longest ago is forgotten first."""


class WorkQueue:
    """A first-in, first-out queue of keys per lane; the lanes take turns.

    So a thousand keys of one kind, or of one tenant, delay another lane's first key by one turn. A
    key that is being processed is not handed out again until it is done. Adding it meanwhile does
    nothing, because `ReconcilePool` has it evaluated once more when it is done; with
    `requeue_dirty` it is queued again then. At most `max_per_lane` keys of a lane are processed at
    the same time, so that the other lanes find a free worker, and an API server that is not busy
    with that lane alone.
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
        """Queue a key that is not being processed; one that is queued already keeps its lane."""
        if key in self._processing:
            if self._requeue_dirty:
                self._dirty[key] = lane
        elif key not in self._lane_of:
            self._lane_of[key] = lane
            self._lanes.setdefault(lane, OrderedDict())[key] = None
            self._available.set()

    def discard(self, key: str) -> None:
        """Remove a key that is queued."""
        lane = self._lane_of.pop(key, None)
        if lane is not None:
            del self._lanes[lane][key]
            if not self._lanes[lane]:
                del self._lanes[lane]

    async def get(self) -> str:
        """Wait for the next lane's first key and return it; it is being processed until `done`."""
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
        """Record that processing the key has ended, well or not."""
        lane = self._processing.pop(key, None)
        if lane is not None:
            self._processing_in_lane[lane] -= 1
            if not self._processing_in_lane[lane]:
                del self._processing_in_lane[lane]
            self._available.set()
        if key in self._dirty:
            self.add(key, self._dirty.pop(key))

    def requeue(self, key: str) -> None:
        """Put a key that was handed out, and not processed, back into its lane."""
        lane = self._processing.get(key, "")
        self.done(key)
        self.add(key, lane)

    def _next_lane(self) -> str | None:
        limit = self._max_per_lane
        return next((lane for lane in self._lanes if self._processing_in_lane[lane] < limit), None)


class DelayingQueue:
    """When to evaluate each job again, in monotonic seconds; a blocked job's time is not moved.

    Cron jobs have one of their own, by uid, and so has admission, by queue.
    """

    def __init__(self) -> None:
        self._heap = TimerHeap()
        self._blocked: dict[str, float] = {}
        self._added_in_bulk: OrderedDict[str, None] = OrderedDict()
        self._wakes_at = float("inf")
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        return len(self._heap)

    def add_all(self, uids: Iterable[str]) -> None:
        """Evaluate all of these soon, after what is due; a job added repeatedly is in it once."""
        self._added_in_bulk.update(dict.fromkeys(uids))
        if self._added_in_bulk:
            self._woken.set()

    def advance(self, uid: str, at: float) -> None:
        """Evaluate the job at this time, if it is not due earlier."""
        current = self._heap.time_of(uid)
        if current is None or at < current:
            self.requeue_at(uid, at)

    def requeue_at(self, uid: str, at: float | None) -> None:
        """Evaluate the job at this time; None: not because of time alone."""
        if uid in self._blocked:
            return
        self._heap.set(uid, at)
        if at is not None and at < self._wakes_at:
            self._woken.set()

    def block_until(self, uid: str, until: float) -> None:
        """Leave the job alone until this time."""
        self._blocked.pop(uid, None)
        self.requeue_at(uid, until)
        self._blocked[uid] = until

    def is_blocked(self, uid: str, now: float) -> bool:
        """Return whether the job is left alone at this time."""
        return self._blocked.get(uid, now) > now

    def forget(self, uid: str) -> None:
        """Forget the job."""
        self._blocked.pop(uid, None)
        self._added_in_bulk.pop(uid, None)
        self._heap.set(uid, None)

    def pop_due(self, now: float, limit: int) -> list[str]:
        """Remove and return at most `limit` jobs: those that are due, then those added in bulk."""
        due = self._heap.pop_due(now, limit)
        for uid in due:
            self._blocked.pop(uid, None)
        more = min(limit - len(due), len(self._added_in_bulk))
        return due + [self._added_in_bulk.popitem(last=False)[0] for _ in range(more)]

    def late_by(self, now: float) -> float | None:
        """Return for how many seconds the earliest deadline has been due, None if none is."""
        next_at = self._heap.next_time()
        return None if next_at is None or next_at > now else now - next_at

    async def wait(self, now: float, longest: float) -> None:
        """Wait for the next deadline, at most `longest` seconds; a new, earlier one ends it."""
        if self._added_in_bulk:
            await asyncio.sleep(0)
            return
        next_at = self._heap.next_time()
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
        return with_jitter(backoff_delay(failures, self.initial, self.cap))

    def failures(self, key: str) -> int:
        """Return how often in a row the key has failed."""
        return self._failures.get(key, 0)

    def is_new_error(self, key: str, message: str) -> bool:
        """Return whether this error differs from the key's last one, and remember it."""
        previous = self._last_errors.get(key)
        self._last_errors[key] = message
        return previous != message

    def reset(self, key: str) -> None:
        """Forget the key's failures: its write succeeded, or nothing is left to do."""
        self._failures.pop(key, None)
        self._last_errors.pop(key, None)


class Reconciler(Protocol):
    """Does what is due for the keys of a work queue."""

    async def reconcile(self, key: str) -> None:
        """Do what is due for the object of this key."""

    def object_ref(self, key: str) -> ObjectRef:
        """Return the object of this key."""

    def requeue_after(self, key: str, seconds: float) -> None:
        """Leave an object whose reconciliation raised alone for this many seconds."""


class Leadership(Protocol):
    """Whether this replica may act."""

    def leads(self) -> bool:
        """Return whether this replica may act now."""

    async def wait_until_elected(self) -> None:
        """Wait until this replica may act."""


class ReconcilePool:
    """Reconciles the keys of a queue, a bounded number at once.

    `on_done` is called with each afterwards, to evaluate it again: a key that is added while it is
    processed is not queued.
    """

    def __init__(
        self,
        queue: WorkQueue,
        reconciler: Reconciler,
        leadership: Leadership,
        quarantine: Quarantine,
        on_done: Callable[[str], None],
    ) -> None:
        self._queue = queue
        self._reconciler = reconciler
        self._leadership = leadership
        self._quarantine = quarantine
        self._on_done = on_done
        self._free_slots = asyncio.Semaphore(MAX_CONCURRENT_RECONCILES)
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, health: LoopHealth) -> None:
        """Reconcile until cancelled; reconciliations that have begun then go on: see `drain`."""
        while True:
            with health.idle():
                await self._leadership.wait_until_elected()
            await self._free_slots.acquire()
            try:
                with health.idle():
                    key = await self._queue.get()
            except asyncio.CancelledError:
                self._free_slots.release()
                raise
            if not self._leadership.leads():
                self._requeue(key)
                continue
            task = asyncio.create_task(self._reconcile(key), name=f"act on {key}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def drain(self, seconds: float) -> None:
        """Wait up to this many seconds for what has begun, then cancel the rest."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            for task in late:
                task.cancel()

    def _requeue(self, key: str) -> None:
        self._free_slots.release()
        self._queue.requeue(key)

    async def _reconcile(self, key: str) -> None:
        ref = self._reconciler.object_ref(key)
        try:
            with self._quarantine.guard(ref, Activity.ACT) as guard:
                await self._reconciler.reconcile(key)
            if guard.pause is not None:
                self._reconciler.requeue_after(key, guard.pause)
        finally:
            self._free_slots.release()
            self._queue.done(key)
            self._on_done(key)
