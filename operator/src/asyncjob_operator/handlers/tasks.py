"""The operator's loops by name, each supervised."""

import asyncio
from collections.abc import Awaitable, Callable

from asyncjob.kube.backoff import Backoff
from asyncjob_operator.core.vitals import Pulse, Vitals
from asyncjob_operator.handlers.supervise import supervise

Run = Callable[[Pulse], Awaitable[None]]
"""A loop, which says by its pulse that it goes on."""


class Tasks:
    """Starts loops and ends them; pauses between a loop's failures grow from `initial` to `cap`."""

    def __init__(self, initial: float, cap: float, vitals: Vitals) -> None:
        self._initial = initial
        self._cap = cap
        self._vitals = vitals
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: set[asyncio.Task[None]] = set()

    def start(
        self,
        name: str,
        run: Run,
        failed: Callable[[], None] = lambda: None,
        cap: float = float("inf"),
    ) -> None:
        """Start a loop; one of the same name is ended. `cap`: a longest pause of its own."""
        before = self._tasks.pop(name, None)
        if before:
            before.cancel()
            self._ended.add(before)
        backoff = Backoff(self._initial, min(self._cap, cap))
        pulse = self._vitals.pulse(name)
        self._tasks[name] = asyncio.create_task(supervise(pulse, run, backoff, failed), name=name)

    async def end(self, *, but: str = "") -> None:
        """End all loops, or all but one, and wait until they have ended."""
        ending = [self._tasks.pop(name) for name in list(self._tasks) if name != but]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, *self._ended, return_exceptions=True)
        self._ended.clear()
