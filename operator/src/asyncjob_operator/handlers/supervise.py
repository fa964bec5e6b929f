"""Keeps a loop going whatever happens to it, with growing pauses between its failures."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.backoff import Backoff
from asyncjob_operator.core.vitals import Pulse
from asyncjob_operator.kube.clock import monotonic

log = structlog.get_logger()

CALM_SECONDS = 60.0
"""A loop that went on for so long without failing starts with short pauses again."""


async def supervise(
    pulse: Pulse,
    run: Callable[[Pulse], Awaitable[None]],
    backoff: Backoff,
    failed: Callable[[], None] = lambda: None,
) -> None:
    """Run, and run again, until cancelled.

    A request that fails shows that the loop turns. Another error does not: what fails by itself
    again and again is as good as dead.
    """
    name = pulse.name
    while True:
        started_at = monotonic()
        try:
            await run(pulse)
            log.warning("ended unexpectedly", loop=name)
        except ApiError as error:
            pulse.turned()
            log.warning("interrupted", loop=name, error=str(error))
        except Exception:  # supervises: the operator goes on
            log.exception("failed", loop=name)
        failed()
        if monotonic() - started_at > CALM_SECONDS:
            backoff.reset()
        pause = backoff.pause()
        log.info("starting anew", loop=name, wait=round(pause, 1))
        await asyncio.sleep(pause)
