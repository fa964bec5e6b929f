"""The graceful stop: from the first signal until nothing runs here any more."""

import asyncio
from typing import Any

import structlog

from asyncjob.app.stop import Stop
from asyncjob_worker.parts import Components
from asyncjob_worker.settings import Settings

log = structlog.get_logger()

RELEASE_SECONDS = 5.0
"""How long the release of the jobs that are left may take."""


class Drain:
    """Knows whether the worker drains, and whether in a hurry."""

    def __init__(self, settings: Settings) -> None:
        self._grace = settings.grace
        self._stop_wait = settings.stop_wait
        self._begun = asyncio.Event()
        self._no_grace = asyncio.Event()

    def begin(self, *, without_grace: bool = False) -> None:
        """Begin; the second time, or in a hurry, without any grace for running handlers."""
        if without_grace or self._begun.is_set():
            self._no_grace.set()
        self._begun.set()

    @property
    def is_begun(self) -> bool:
        """Whether it has begun."""
        return self._begun.is_set()

    async def begun(self) -> None:
        """Wait until it has begun."""
        await self._begun.wait()

    async def run(self, components: Components, slots: asyncio.Future[None]) -> None:
        """Claim no more, let handlers end within the grace period, release what then stops."""
        log.info("worker draining", running=len(components.runner.running), grace=self._grace)
        components.slots.drain()
        components.runner.stop_waiting_for_abandoned()
        telling = asyncio.ensure_future(components.registration.mark_draining())
        hurry = asyncio.ensure_future(self._no_grace.wait())
        either: set[asyncio.Future[Any]] = {slots, hurry}
        try:
            await asyncio.wait(either, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
            components.runner.stop_all(Stop.DRAINING)
            await asyncio.wait({slots}, timeout=self._stop_wait + RELEASE_SECONDS)
        finally:
            hurry.cancel()
            telling.cancel()
        for held in components.runner.running:
            log.error(
                "job left to the operator: it stays leased until this process has ended",
                job=held.job.name,
            )
