"""Keeps a loop going whatever happens to it, with growing pauses between its failures."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.backoff import ExponentialBackoff
from asyncjob_operator.core.vitals import LoopHealth
from asyncjob_operator.kube.clock import monotonic

log = structlog.get_logger()

BACKOFF_RESET_SECONDS = 60.0
"""A loop that went on for so long without failing starts with short pauses again."""


async def supervise(
    health: LoopHealth,
    run: Callable[[LoopHealth], Awaitable[None]],
    backoff: ExponentialBackoff,
    on_failure: Callable[[], None] = lambda: None,
) -> None:
    """Run, and run again, until cancelled.

    A request that fails shows that the loop turns. Another error does not: what fails by itself
    again and again is as good as dead.
    """
    name = health.name
    while True:
        started_at = monotonic()
        try:
            await run(health)
            log.warning("ended unexpectedly", loop=name)
        except ApiError as error:
            health.attempted()
            log.warning("interrupted", loop=name, error=str(error))
        except Exception:  # supervises: the operator goes on
            log.exception("failed", loop=name)
        on_failure()
        if monotonic() - started_at > BACKOFF_RESET_SECONDS:
            backoff.reset()
        pause = backoff.next_delay()
        log.info("starting anew", loop=name, wait=round(pause, 1))
        await asyncio.sleep(pause)
