"""Retries an attempt's own I/O: payloads to read, results to store.

Until it succeeds, fails for good, or the attempt has to stop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

import structlog

from asyncjob.app.context import Stop
from asyncjob.errors import AsyncJobError
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob_worker.clock import boottime
from asyncjob_worker.leases.held_job import HeldJob

log = structlog.get_logger()

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]


class RetriedCall(Generic[T]):
    """Retries one call.

    `refusals` is how often the call may fail with an error that is not retryable until that error
    is raised. `failure` says in log and outcome what has failed, "the payload could not be read".
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
        """Return what the call returns.

        Raises its error if that is final, and AttemptStopped, with the last error as its detail, if
        the attempt has to stop. When the worker drains, the call gets `drain_grace` more seconds.
        """
        try:
            return await run_unless_stopped(
                self._held, self._retry_until_done(), drain_grace=drain_grace
            )
        except AttemptStopped as stopped:
            if self._last_error:
                raise AttemptStopped(stopped.why, f"{self._failure}: {self._last_error}") from None
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
        """Record the error; raise it if it is final."""
        if not error.retryable:
            self._refusals_left -= 1
            if self._refusals_left <= 0:
                raise error
        self._last_error = str(error)
        log.warning(self._failure, job=self._held.job.name, error=str(error))


class AttemptStopped(Exception):  # noqa: N818  # an end, not an error
    """The attempt was asked to stop meanwhile; `detail` is the failure that it was waiting out."""

    def __init__(self, why: Stop, detail: str = "") -> None:
        super().__init__(why.value)
        self.why = why
        self.detail = detail


async def run_unless_stopped(
    held: HeldJob, work: Coroutine[Any, Any, T], *, drain_grace: float = 0.0
) -> T:
    """Return what the work returns; cancel it and raise AttemptStopped if the attempt has to stop.

    When the worker drains, the work gets `drain_grace` more seconds. The attempt's execution
    timeout and the job's deadline stop the attempt as well.
    """
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    timer = loop.call_later(held.ends_at - boottime(), held.stop_at_end)
    task, stop_task = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        with held.reacting(lambda: loop.call_soon_threadsafe(stopping.set)):
            if held.stopped is None:
                await asyncio.wait({task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
            if held.stopped is Stop.DRAINING:
                await asyncio.wait({task}, timeout=drain_grace)
            if not task.done():
                raise AttemptStopped(held.stopped or Stop.DRAINING)
            return task.result()
    finally:
        timer.cancel()
        task.cancel()
        stop_task.cancel()
        await asyncio.gather(task, stop_task, return_exceptions=True)
