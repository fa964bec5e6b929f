"""Tries what other processes do for us until it works, is refused, or the attempt has to stop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from asyncjob.errors import AsyncJobError
from asyncjob.kube.backoff import Backoff
from asyncjob_worker.held import HeldJob
from asyncjob_worker.offload.waiting import Interrupted, while_alive

log = structlog.get_logger()

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]


class Tries(Generic[T]):
    """Tries one call. `refusals` is how often an error that no try mends is met before it counts.

    `doing` completes a sentence: "the payload is not read yet".
    """

    def __init__(
        self,
        held: HeldJob,
        doing: str,
        call: Callable[[], Awaitable[T]],
        *,
        refusals: int = 1,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._held = held
        self._doing = doing
        self._call = call
        self._refusals_left = refusals
        self._pause = pause
        self._last = ""

    async def run(self, *, patience: float = 0.0) -> T:
        """Return what the call returns, raises its last error, or Interrupted with the last error.

        `patience` in seconds is what a worker that drains gives it.
        """
        try:
            return await while_alive(self._held, self._until_done(), patience=patience)
        except Interrupted as end:
            if self._last:
                raise Interrupted(end.why, f"{self._doing}: {self._last}") from None
            raise

    async def _until_done(self) -> T:
        backoff = Backoff(initial=0.5, cap=10.0)
        while True:
            try:
                return await self._call()
            except AsyncJobError as error:
                self._note(error)
            await self._pause(backoff.pause())

    def _note(self, error: AsyncJobError) -> None:
        """Remember the error; raises it if it is final."""
        if not error.retryable:
            self._refusals_left -= 1
            if self._refusals_left <= 0:
                raise error
        self._last = str(error)
        log.warning(self._doing, job=self._held.job.name, error=str(error))
