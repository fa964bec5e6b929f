"""Tries what other processes do for us until it works, is refused, or the attempt has to stop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from asyncjob.errors import AsyncJobError
from asyncjob.kube.backoff import ExponentialBackoff
from asyncjob_worker.held import HeldJob
from asyncjob_worker.offload.waiting import AttemptStopped, run_unless_stopped

log = structlog.get_logger()

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]


class RetriedCall(Generic[T]):
    """Tries one call. `refusals` is how often an error that no try mends is met before it counts.

    `failure` completes a sentence: "the payload is not read yet".
    """

    def __init__(
        self,
        held: HeldJob,
        failure: str,
        call: Callable[[], Awaitable[T]],
        *,
        refusals: int = 1,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._held = held
        self._failure = failure
        self._call = call
        self._refusals_left = refusals
        self._pause = pause
        self._last_error = ""

    async def run(self, *, drain_grace: float = 0.0) -> T:
        """Return what the call returns, raises its last error, or Interrupted with the last error.

        `drain_grace` in seconds is what a worker that drains gives it.
        """
        try:
            return await run_unless_stopped(
                self._held, self._retry_until_done(), drain_grace=drain_grace
            )
        except AttemptStopped as end:
            if self._last_error:
                raise AttemptStopped(end.why, f"{self._failure}: {self._last_error}") from None
            raise

    async def _retry_until_done(self) -> T:
        backoff = ExponentialBackoff(initial=0.5, cap=10.0)
        while True:
            try:
                return await self._call()
            except AsyncJobError as error:
                self._record_error(error)
            await self._pause(backoff.next_delay())

    def _record_error(self, error: AsyncJobError) -> None:
        """Remember the error; raises it if it is final."""
        if not error.retryable:
            self._refusals_left -= 1
            if self._refusals_left <= 0:
                raise error
        self._last_error = str(error)
        log.warning(self._failure, job=self._held.job.name, error=str(error))
