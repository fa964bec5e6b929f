"""The operator's loops by name, each restarted with growing pauses whatever happens to it."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.telemetry.loop_health import HealthMonitor, LoopHealth

LoopFunction = Callable[[LoopHealth], Awaitable[None]]
"""A loop, which reports its attempts and progress to its health."""


class TaskSupervisor:
    """Starts loops and ends them.

    Pauses between a loop's failures grow from `backoff_initial` to `backoff_max`.
    """

    def __init__(
        self, backoff_initial: float, backoff_max: float, health_monitor: HealthMonitor
    ) -> None:
        self._backoff_initial = backoff_initial
        self._backoff_max = backoff_max
        self._health_monitor = health_monitor
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._replaced: set[asyncio.Task[None]] = set()

    def start(
        self,
        name: str,
        run: LoopFunction,
        max_pause: float = float("inf"),
    ) -> None:
        """Start a loop; one of the same name is ended. `max_pause`: a longest pause of its own."""
        before = self._tasks.pop(name, None)
        if before:
            before.cancel()
            self._replaced.add(before)
        backoff = ExponentialBackoff(self._backoff_initial, min(self._backoff_max, max_pause))
        health = self._health_monitor.loop(name)
        self._tasks[name] = asyncio.create_task(supervise(health, run, backoff), name=name)

    async def stop(self, *, except_for: str = "") -> None:
        """End all loops, or all but one, and wait until they have ended."""
        ending = [self._tasks.pop(name) for name in list(self._tasks) if name != except_for]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, *self._replaced, return_exceptions=True)
        self._replaced.clear()


log = structlog.get_logger()

BACKOFF_RESET_SECONDS = 60.0
"""Seconds without a failure after which a loop's pauses are short again."""


async def supervise(health: LoopHealth, run: LoopFunction, backoff: ExponentialBackoff) -> None:
    """Run, and run again, until cancelled.

    A request that fails counts as an attempt of the loop. Any other error does not, so that a loop
    that fails by itself again and again is reported as stalled.
    """
    name = health.name
    while True:
        started_at = monotonic()
        try:
            await run(health)
            log.warning("loop ended unexpectedly", loop=name)
        except ApiError as error:
            health.attempted()
            log.warning("loop interrupted", loop=name, error=str(error))
        except Exception:  # supervises: the operator goes on
            log.exception("loop failed", loop=name)
        if monotonic() - started_at > BACKOFF_RESET_SECONDS:
            backoff.reset()
        pause = backoff.next_delay()
        log.info("loop restarting", loop=name, wait=round(pause, 1))
        await asyncio.sleep(pause)
