"""Which handlers are at work, for how long, and which of them holds the event loop right now."""

import asyncio
from collections.abc import Callable

from asyncjob_worker.held import HeldJob
from asyncjob_worker.starts import HandlerFuture

OnHandlerEnd = Callable[[str, float], None]
"""Is told a handler's job type and for how many seconds it ran."""


class RunningHandlers:
    """The handlers at work in one event loop. `clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float], on_end: OnHandlerEnd = lambda *_: None) -> None:
        self._clock = clock
        self._on_end = on_end
        self._jobs: dict[asyncio.Future[object], HeldJob] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def futures(self) -> set[HandlerFuture]:
        """What still runs."""
        return set(self._jobs)

    def add(self, future: HandlerFuture, held: HeldJob) -> None:
        """Take in a handler that has just been started."""
        begun, self._loop = self._clock(), future.get_loop()
        self._jobs[future] = held

        def end(_: HandlerFuture) -> None:
            del self._jobs[future]
            self._on_end(held.job.type, self._clock() - begun)

        future.add_done_callback(end)

    def blocking_job(self) -> HeldJob | None:
        """Return the job whose handler has the event loop right now; called from any thread.

        None if it is nobody's, or a task that a handler has started: whose child a task is cannot
        be told.
        """
        if self._loop is None:
            return None
        task = asyncio.current_task(self._loop)
        return None if task is None else self._jobs.get(task)
