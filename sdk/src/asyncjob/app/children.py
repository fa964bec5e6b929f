"""Child jobs in the hands of their parent's handler."""

import asyncio
import concurrent.futures
from collections.abc import Generator
from typing import Any

from asyncjob.app.child_errors import AttemptOverError
from asyncjob.app.child_jobs import ChildJobs
from asyncjob.app.child_view import ChildRef, ChildView
from asyncjob.app.eventual import SyncOrAsyncFuture, map_future

__all__ = ["Child", "ChildJobs", "ChildRef", "ChildSubmission", "ChildView"]


class Child:
    """A child job that the API server has taken."""

    def __init__(self, ref: ChildRef, jobs: ChildJobs) -> None:
        self._ref = ref
        self._jobs = jobs

    @property
    def name(self) -> str:
        """Name of the job."""
        return self._ref.name

    @property
    def uid(self) -> str:
        """UID of the job."""
        return self._ref.uid

    def wait(
        self, timeout: float | None = None, *, check: bool = False
    ) -> SyncOrAsyncFuture[ChildView]:
        """Wait until it has finished, however; TimeoutError after `timeout` seconds.

        With `check`, ChildFailedError unless it has succeeded. Raises ChildGoneError if it was
        deleted. The parent keeps its slot meanwhile: children in the same queue need others.
        """
        seen = self._jobs.wait(self._ref, timeout)
        return SyncOrAsyncFuture(map_future(seen, ChildView.check) if check else seen)


class ChildSubmission(SyncOrAsyncFuture[Child]):
    """A child job on its way: it is sent at once, whether anyone waits for it or not.

    `await submission` gives the Child in an async handler, `submission.result()` in a sync one;
    both raise SubmitError. A handler's success is reported only after all of them are stored.
    """

    def __init__(self, name: str, future: "concurrent.futures.Future[Child]") -> None:
        super().__init__(future)
        self._name = name
        self._retrieved = False

    @property
    def name(self) -> str:
        """Name of the child, known at once."""
        return self._name

    @property
    def retrieved(self) -> bool:
        """Whether somebody knows what became of it."""
        return self._retrieved

    def __await__(self) -> Generator[Any, None, Child]:
        """Wait until it is stored; whoever gives up waiting does not call it back."""
        try:
            child = yield from asyncio.shield(asyncio.wrap_future(self._future)).__await__()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._retrieved = True
            raise
        self._retrieved = True
        return child

    def result(self, timeout: float | None = None) -> Child:
        """Wait in a sync handler until it is stored."""
        try:
            return super().result(timeout)
        finally:
            self._retrieved = self._retrieved or self._future.done()

    async def wait_stored(self) -> None:
        """Wait until it is stored; AttemptOverError if it was called back."""
        future = asyncio.wrap_future(self._future)
        await asyncio.wait({future})
        if future.cancelled():
            raise AttemptOverError
        future.result()
