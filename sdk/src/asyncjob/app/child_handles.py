"""Child jobs as their parent's handler holds them: on their way, stored, and waited for."""

import asyncio
import concurrent.futures
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from asyncjob.app.child_jobs import (
    ChildEnd,
    ChildJobs,
    ChildRef,
    ChildView,
    ChildWaits,
    HeldChildWaits,
    SyncOrAsyncFuture,
    refuse_in_event_loop,
)
from asyncjob.app.errors import AttemptOverError, ChildGoneError, ending_as_a_stop
from asyncjob.app.waiting_calls import Forgotten, WaitingCall
from asyncjob.app.waits import WaitLimit, seconds_of
from asyncjob.names import JOB_KIND

V = TypeVar("V")


@dataclass(eq=False)
class ChildCall(WaitingCall[V]):
    """Children that are waited for: `await` it in an async handler, `.result()` in a sync one."""

    _open_waits: Callable[[], ChildWaits]
    _refs: Sequence[ChildRef]
    _seconds: float | None
    _check: bool
    _pick: Callable[[list[ChildView]], V]

    async def _wait(self) -> V:
        refs = self._distinct()
        return self._value_of(refs, await self._open_waits().children(refs, self._seconds))

    def _distinct(self) -> Sequence[ChildRef]:
        return list(dict.fromkeys(self._refs))

    def result(self, timeout: float | None = None) -> V:
        """Return the same in a sync handler, which may end here as well.

        `timeout` shortens that of the wait, in all attempts: it is not how long this call blocks.
        Raises CancelledError if the handler is told to stop meanwhile.
        """
        self.mark_taken()
        refuse_in_event_loop()
        limits = [limit for limit in (self._seconds, timeout) if limit is not None]
        seconds = min(limits, default=None)
        refs = self._distinct()
        return self._value_of(refs, self._open_waits().children_blocking(refs, seconds))

    def _value_of(self, refs: Sequence[ChildRef], ends: Sequence[ChildEnd]) -> V:
        """Return the value, or raise the first error in the order of the children."""
        by_ref = dict(zip(refs, ends, strict=True))
        views = []
        for end in map(by_ref.__getitem__, self._refs):
            if isinstance(end, ChildGoneError):
                raise end
            views.append(end.check() if self._check else end)
        return self._pick(views)


def seconds_of_limit(what: str, timeout: WaitLimit | None) -> float | None:
    """Return a limit in seconds; raises StepError for what is none."""
    seconds = None if timeout is None else seconds_of(what, timeout)
    return seconds if isinstance(timeout, timedelta) else timeout


def _only(views: list[ChildView]) -> ChildView:
    return views[0]


class Child:
    """A child job or array that the API server has taken; `open_waits` gives what waits for it.

    `forgotten` has the waits that the handler has dropped.
    """

    def __init__(
        self,
        ref: ChildRef,
        jobs: ChildJobs,
        open_waits: Callable[[], ChildWaits] | None = None,
        forgotten: Forgotten | None = None,
    ) -> None:
        self._ref = ref
        self._forgotten = forgotten
        self._open_waits = open_waits or partial(HeldChildWaits, jobs)

    @property
    def name(self) -> str:
        """Name of the job."""
        return self._ref.name

    @property
    def uid(self) -> str:
        """UID of the job."""
        return self._ref.uid

    @property
    def kind(self) -> str:
        """AsyncJob or AsyncArray."""
        return self._ref.kind

    @property
    def ref(self) -> ChildRef:
        """Its name and UID."""
        return self._ref

    def wait(
        self, timeout: WaitLimit | None = None, *, check: bool = False
    ) -> ChildCall[ChildView]:
        """Wait until it has finished, however: `view = await child.wait()`.

        A wait of more than two seconds parks the job: the handler ends here, and is run again from
        its top once the child has finished. With `check`, ChildFailedError unless it has succeeded.
        Raises TimeoutError `timeout`, a timedelta or seconds, after it was first waited for, and
        ChildGoneError if
        it was deleted.
        """
        what = f"the wait for {self._ref.called}"
        limit = seconds_of_limit(what, timeout)
        call = ChildCall(self._open_waits, [self._ref], limit, check, _only)
        call.expect(what, self._forgotten)
        return call


class ChildSubmission(SyncOrAsyncFuture[Child]):
    """A child job or array on its way: it is sent at once, whether anyone waits for it or not.

    `await submission` gives the Child in an async handler, `submission.result()` in a sync one;
    both raise SubmitError. A handler's success is reported only after all of them are stored, and
    so is that its job is parked.
    """

    def __init__(
        self, name: str, future: "concurrent.futures.Future[Child]", kind: str = JOB_KIND
    ) -> None:
        super().__init__(future)
        self._name = name
        self._kind = kind
        self._retrieved = False

    @property
    def name(self) -> str:
        """Name of the child, known at once."""
        return self._name

    @property
    def kind(self) -> str:
        """AsyncJob or AsyncArray."""
        return self._kind

    @property
    def retrieved(self) -> bool:
        """Whether somebody knows what became of it."""
        return self._retrieved

    def __await__(self) -> Generator[Any, None, Child]:
        """Wait until it is stored; a caller that gives up waiting does not call it back."""
        try:
            with ending_as_a_stop():
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
