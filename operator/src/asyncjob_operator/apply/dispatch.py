"""Works through the list of jobs something is due for: many at once, and only while leading."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from asyncjob_operator.apply.todo import Todo

log = structlog.get_logger()

CONCURRENCY: Final = 32


class Leadership(Protocol):
    """Whether this replica may act."""

    def leads(self) -> bool:
        """Return whether it may act now."""

    async def elected(self) -> None:
        """Wait until it may."""


class Acting(Protocol):
    """Who acts on one thing at a time."""

    async def act(self, uid: str) -> None:
        """Do what is due."""

    def broken(self, uid: str) -> None:
        """Leave alone for a while what makes the operator stumble."""


class Dispatch:
    """Bounded concurrency; `look` is called with each job that was worked on."""

    def __init__(
        self, todo: Todo, actor: Acting, leadership: Leadership, look: Callable[[str], None]
    ) -> None:
        self._todo = todo
        self._actor = actor
        self._leadership = leadership
        self._look = look
        self._places = asyncio.Semaphore(CONCURRENCY)
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Act until cancelled; what has begun then goes on."""
        while True:
            await self._leadership.elected()
            await self._places.acquire()
            try:
                uid = await self._todo.take()
            except asyncio.CancelledError:
                self._places.release()
                raise
            if not self._leadership.leads():
                self._put_back(uid)
                continue
            task = asyncio.create_task(self._work(uid), name=f"act on {uid}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def drain(self, seconds: float) -> None:
        """Wait for what has begun, but not for long."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            for task in late:
                task.cancel()

    def _put_back(self, uid: str) -> None:
        self._places.release()
        self._todo.done(uid)
        self._todo.add(uid)

    async def _work(self, uid: str) -> None:
        try:
            await self._actor.act(uid)
        except Exception:  # supervises: one job must not stop the others
            log.exception("acting on a job failed", uid=uid)
            self._actor.broken(uid)
        finally:
            self._places.release()
            self._todo.done(uid)
            self._look(uid)
