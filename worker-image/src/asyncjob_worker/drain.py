"""The graceful stop: from the first signal until nothing runs here any more."""

import asyncio
from typing import Any

import structlog

from asyncjob.app.stop import Stop
from asyncjob_worker.parts import Parts
from asyncjob_worker.settings import Settings

log = structlog.get_logger()

REPORT_SECONDS = 5.0
"""How long the release of the jobs that are left may take."""


class Drain:
    """Knows whether the worker drains, and whether in a hurry."""

    def __init__(self, settings: Settings) -> None:
        self._grace = settings.grace
        self._stop_wait = settings.stop_wait
        self._begun = asyncio.Event()
        self._hurry = asyncio.Event()

    def begin(self, *, hurry: bool = False) -> None:
        """Begin; the second time, or in a hurry, without any grace for running handlers."""
        if hurry or self._begun.is_set():
            self._hurry.set()
        self._begun.set()

    @property
    def is_begun(self) -> bool:
        """Whether it has begun."""
        return self._begun.is_set()

    async def begun(self) -> None:
        """Wait until it has begun."""
        await self._begun.wait()

    async def run(self, parts: Parts, slots: asyncio.Future[None]) -> None:
        """Claim no more, let handlers end within the grace period, release what then stops."""
        log.info("worker draining", running=len(parts.runner.running), grace=self._grace)
        parts.slots.drain()
        parts.runner.give_up_waiting()
        telling = asyncio.ensure_future(parts.announcer.drain())
        hurry = asyncio.ensure_future(self._hurry.wait())
        either: set[asyncio.Future[Any]] = {slots, hurry}
        try:
            await asyncio.wait(either, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
            parts.runner.stop_all(Stop.DRAINING)
            await asyncio.wait({slots}, timeout=self._stop_wait + REPORT_SECONDS)
        finally:
            hurry.cancel()
            telling.cancel()
        for held in parts.runner.running:
            log.error(
                "job left to the operator: it stays leased until this process has ended",
                job=held.job.name,
            )
