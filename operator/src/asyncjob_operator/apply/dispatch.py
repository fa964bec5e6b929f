"""Works through a list of what something is due for: many at once, and only while leading."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from asyncjob_operator.apply.todo import Todo
from asyncjob_operator.core.vitals import Pulse
from asyncjob_operator.telemetry.containment import Containment, Doing, Subject

CONCURRENCY: Final = 32


class Acts(Protocol):
    """Who does what is due."""

    async def act(self, key: str) -> None:
        """Do what is due for the one on the list."""

    def subject(self, key: str) -> Subject:
        """Return which object that is."""

    def broken(self, key: str, seconds: float) -> None:
        """Leave one alone for so long that makes the operator stumble."""


class Leadership(Protocol):
    """Whether this replica may act."""

    def leads(self) -> bool:
        """Return whether it may act now."""

    async def elected(self) -> None:
        """Wait until it may."""


class Dispatch:
    """Bounded concurrency; `look` is called with each one on the list that was worked on."""

    def __init__(
        self,
        todo: Todo,
        actor: Acts,
        leadership: Leadership,
        containment: Containment,
        look: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._todo = todo
        self._actor = actor
        self._leadership = leadership
        self._containment = containment
        self._look = look
        self._places = asyncio.Semaphore(CONCURRENCY)
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, pulse: Pulse) -> None:
        """Act until cancelled; what has begun then goes on."""
        while True:
            with pulse.idle():
                await self._leadership.elected()
            await self._places.acquire()
            try:
                with pulse.idle():
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
        self._todo.put_back(uid)

    async def _work(self, uid: str) -> None:
        one = self._actor.subject(uid)
        try:
            with self._containment.guard(one, Doing.ACT) as guard:
                await self._actor.act(uid)
            if guard.pause is not None:
                self._actor.broken(uid, guard.pause)
        finally:
            self._places.release()
            self._todo.done(uid)
            self._look(uid)
