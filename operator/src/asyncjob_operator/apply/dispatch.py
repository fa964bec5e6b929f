"""Works through a list of what something is due for: many at once, and only while leading."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from asyncjob_operator.apply.todo import WorkQueue
from asyncjob_operator.core.vitals import LoopHealth
from asyncjob_operator.telemetry.containment import Activity, Containment, ObjectRef

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
