"""Keeps a loop going whatever happens to it, with growing pauses between its failures."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.backoff import Backoff
from asyncjob_operator.kube.clock import monotonic

log = structlog.get_logger()

CALM_SECONDS = 60.0
"""A loop that went on for so long without failing starts with short pauses again."""


async def supervise(
    name: str,
    run: Callable[[], Awaitable[None]],
    backoff: Backoff,
    failed: Callable[[], None] = lambda: None,
) -> None:
    """Run, and run again, until cancelled."""
    while True:
        started_at = monotonic()
        try:
            await run()
            log.warning("ended unexpectedly", loop=name)
        except ApiError as error:
            log.warning("interrupted", loop=name, error=str(error))
        except Exception:  # supervises: the operator goes on
            log.exception("failed", loop=name)
        failed()
        if monotonic() - started_at > CALM_SECONDS:
            backoff.reset()
        pause = backoff.pause()
        log.info("starting anew", loop=name, wait=round(pause, 1))
        await asyncio.sleep(pause)
