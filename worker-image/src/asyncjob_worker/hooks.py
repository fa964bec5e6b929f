"""Tells an app's hooks what has happened. No slot and no lease ever waits for a hook.

Each hook has a lane of its own: it is told one event after the other, and what it cannot take in
time it is not told.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog

from asyncjob.app import Resources
from asyncjob.app.events import Hook, Told
from asyncjob.app.threads import in_daemon_thread

log = structlog.get_logger()

HOOK_SECONDS: Final = 5.0
"""How long a hook may take for one event."""

LAST_SECONDS: Final = 2.0
"""How long the hooks together may take for what is left at the end."""

MAX_WAITING: Final = 1000
"""Events that wait for a hook; further ones are dropped and counted in the log."""


class Hooks:
    """All hooks of one worker process."""

    def __init__(self, hooks: Sequence[Hook], *, seconds: float = HOOK_SECONDS) -> None:
        self._hooks = hooks
        self._seconds = seconds
        self._lanes: list[_Lane] = []

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def start(self, resources: Resources) -> None:
        """Begin to tell; what was told before is lost."""
        self._lanes = [_Lane(hook, resources, self._seconds) for hook in self._hooks]

    def tell(self, told: Told) -> None:
        """Tell all that want to know, soon."""
        for lane in self._lanes:
            lane.tell(told)

    async def end(self, seconds: float = LAST_SECONDS) -> int:
        """Tell what is left, in bounded time; returns how many hooks still run after that."""
        if not self._lanes:
            return 0
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.finish()
        await asyncio.wait({lane.task for lane in lanes}, timeout=seconds)
        for lane in lanes:
            lane.give_up()
        _, left = await asyncio.wait({lane.task for lane in lanes}, timeout=0.1)
        return len(left)


class _Lane:
    """One hook and what it is still to be told."""

    def __init__(self, hook: Hook, resources: Resources, seconds: float) -> None:
        self._hook = hook
        self._call = partial(hook.function, **resources.arguments(hook.needs))
        self._seconds = seconds
        self._waiting: asyncio.Queue[Told | None] = asyncio.Queue(MAX_WAITING + 1)
        self._dropped = 0
        self._thread: asyncio.Future[object] | None = None
        self.task = asyncio.ensure_future(self._run())

    def tell(self, told: Told) -> None:
        if not self._hook.wants(told):
            return
        if self._waiting.qsize() >= MAX_WAITING:
            self._dropped += 1
            return
        self._waiting.put_nowait(told)

    def finish(self) -> None:
        self._waiting.put_nowait(None)

    def give_up(self) -> None:
        if not self.task.done():
            log.warning("hook is not told the rest", hook=self._hook.who, left=self._left())
            self.task.cancel()

    def _left(self) -> int:
        return self._waiting.qsize() + self._dropped

    async def _run(self) -> None:
        while (told := await self._waiting.get()) is not None:
            await self._tell(told)
            if self._dropped:
                log.warning("hook was too slow", hook=self._hook.who, dropped=self._dropped)
                self._dropped = 0

    async def _tell(self, told: Told) -> None:
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                await (self._call(told) if self._hook.is_async else self._in_thread(told))
        except asyncio.CancelledError as error:
            if self.task.cancelling():
                raise
            self._note(told, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # it changes nothing for anyone
            if limit.expired():
                log.warning("hook took too long", hook=self._hook.who, told=told.event.value)
            else:
                self._note(told, error)

    def _note(self, told: Told, error: BaseException) -> None:
        log.error("hook failed", hook=self._hook.who, told=told.event.value, exc_info=error)

    async def _in_thread(self, told: Told) -> None:
        """Call a sync hook; one that never returns keeps one thread, not one for each event."""
        if self._thread is not None and not self._thread.done():
            await asyncio.wait({self._thread})
        self._thread = in_daemon_thread(partial(self._call, told), "hook")
        self._thread.add_done_callback(_retrieve)
        await asyncio.wait({self._thread})
        self._thread.result()


def _retrieve(call: asyncio.Future[object]) -> None:
    """Look at an error that comes too late, or asyncio would report it as forgotten."""
    if not call.cancelled():
        call.exception()
