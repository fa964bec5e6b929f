"""Looks at child jobs that are waited for until they have finished.

Waiting costs few requests however many children are waited for: each wait is polled often at first,
then less and less often. One child is read by itself; of several the unfinished jobs are listed,
metadata only, and each that is not among them is read once. Arrays are read one by one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from asyncjob.app.child_jobs import ChildRef, ChildView, read_child
from asyncjob.app.errors import ChildGoneError
from asyncjob.errors import (
    ApiError,
    ConflictError,
    ExpiredError,
    ObjectNotFoundError,
    UnauthorizedError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import FINISHED_PHASES
from asyncjob.names import (
    ARRAY_KIND,
    JOB_KIND,
    JOBS,
    PARENT_LABEL,
    child_path,
    collection_path,
)

log = structlog.get_logger()

FIRST_POLL_SECONDS: Final = 0.2
MAX_POLL_SECONDS: Final = 5.0
"""Intervals between reads of a child that is waited for. The first is short, so that the end of a
quick one is seen at once; the longest bounds what waiting for a slow one costs."""

_POLL_BACKOFF: Final = 1.5
"""By how much the interval grows with each poll."""

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""Only the UIDs of the children are needed: payloads and checkpoints may be large."""

_UNFINISHED: Final = ",".join(f"status.phase!={phase.value}" for phase in sorted(FINISHED_PHASES))


@dataclass(slots=True, eq=False)
class _PendingWait:
    """A child that `waiters` callers wait for; it is due for a poll in `due_in` seconds."""

    ref: ChildRef
    future: asyncio.Future[ChildView] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    waiters: int = 0
    due_in: float = 0.0
    interval: float = FIRST_POLL_SECONDS

    def schedule_next(self, *, was_due: bool) -> None:
        """Set when the next poll is due, later each time after one that was due."""
        self.due_in = self.interval
        if was_due:
            self.interval = min(self.interval * _POLL_BACKOFF, MAX_POLL_SECONDS)


class ChildPoller:
    """Polls the children of one job for as long as somebody waits for one."""

    def __init__(
        self,
        session: KubeSession,
        namespace: str,
        parent_uid: str,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._session = session
        self._namespace = namespace
        self._parent_uid = parent_uid
        self._pause = pause
        self._waits: dict[ChildRef, _PendingWait] = {}
        self._wait_added = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def until_finished(self, ref: ChildRef, seconds: float | None) -> ChildView:
        """Return the finished job.

        Raises ChildGoneError if it was deleted, TimeoutError after `seconds`, ApiError where no
        read can succeed, and ValueError for a child that this version cannot read.
        """
        wait = self._add_waiter(ref)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(wait.future)
        except TimeoutError:
            raise TimeoutError(f"{ref.called} has not finished within {seconds} s") from None
        finally:
            self._remove_waiter(wait)

    def _add_waiter(self, ref: ChildRef) -> _PendingWait:
        wait = self._waits.get(ref)
        if wait is None or wait.future.done():
            wait = self._waits[ref] = _PendingWait(ref)
            self._wait_added.set()
        wait.waiters += 1
        # It may be done while its callback, which sets it to None, has not run yet.
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())
            self._task.add_done_callback(self._on_task_done)
        return wait

    def _remove_waiter(self, wait: _PendingWait) -> None:
        wait.waiters -= 1
        if not wait.waiters:
            wait.future.cancel()
            if self._waits.get(wait.ref) is wait:
                del self._waits[wait.ref]
        if not self._waits and self._task is not None:
            self._task.cancel()
            self._task = None

    def _on_task_done(self, task: "asyncio.Task[None]") -> None:
        """Pass an unexpected error of the polling task on to all that wait."""
        if self._task is task:
            self._task = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail_all(error)

    async def _run(self) -> None:
        while waits := self._pending():
            if any(wait.due_in <= 0 for wait in waits):
                try:
                    await self._poll(waits)
                except ApiError as error:
                    self._on_error(error)
            if waits := self._pending():
                await self._sleep(min(wait.due_in for wait in waits))

    def _pending(self) -> list[_PendingWait]:
        return [wait for wait in self._waits.values() if not wait.future.done()]

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the next poll is due or a wait is added; count the time down in all waits."""
        if seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        waits, started = self._pending(), loop.time()
        pause = asyncio.ensure_future(self._pause(seconds))
        added = asyncio.ensure_future(self._wait_added.wait())
        try:
            await asyncio.wait({pause, added}, return_when=asyncio.FIRST_COMPLETED)
            passed = seconds if pause.done() else loop.time() - started
        finally:
            pause.cancel()
            added.cancel()
        for wait in waits:
            wait.due_in -= passed

    async def _poll(self, waits: list[_PendingWait]) -> None:
        self._wait_added.clear()
        due = [wait for wait in waits if wait.due_in <= 0]
        jobs = [wait for wait in due if wait.ref.kind == JOB_KIND]
        listed = [wait for wait in waits if wait.ref.kind == JOB_KIND] if len(jobs) > 1 else jobs
        covered = [*listed, *(wait for wait in due if wait.ref.kind != JOB_KIND)]
        for wait in covered:
            wait.schedule_next(was_due=wait in due)
        unfinished = await self._unfinished_jobs() if len(jobs) > 1 else frozenset()
        for wait in covered:
            if wait.ref.uid not in unfinished and not wait.future.done():
                await self._read(wait)

    async def unfinished(self) -> frozenset[str]:
        """Return the UIDs of the children that have not finished, arrays among those asked for."""
        waits = self._pending()
        jobs = any(wait.ref.kind == JOB_KIND for wait in waits)
        found = await self._unfinished_jobs() if jobs or not waits else frozenset()
        arrays = [wait for wait in waits if wait.ref.kind == ARRAY_KIND]
        for wait in arrays:
            await self._read(wait)
        return found | {wait.ref.uid for wait in arrays if not wait.future.done()}

    async def _unfinished_jobs(self) -> frozenset[str]:
        path = collection_path(self._namespace, JOBS)
        query = {
            "labelSelector": f"{PARENT_LABEL}={self._parent_uid}",
            "fieldSelector": _UNFINISHED,
        }
        found = self._session.list(path, query, accept=METADATA_ONLY)
        return frozenset([_uid(job) async for job in found])

    async def _read(self, wait: _PendingWait) -> None:
        ref, future = wait.ref, wait.future
        try:
            found = await self._session.get(child_path(self._namespace, ref.kind, ref.name))
        except ObjectNotFoundError:
            found = None
        if future.done():
            return
        if found is None or _uid(found) != ref.uid:
            future.set_exception(ChildGoneError(f"{ref.called} has been deleted"))
            return
        try:
            view = read_child(found)
        except ValueError as error:  # fails the wait for this child only
            future.set_exception(error)
            return
        if view.finished:
            future.set_result(view)

    def _on_error(self, error: ApiError) -> None:
        if is_transient(error) or isinstance(error, ExpiredError):
            log.warning("cannot list child jobs", error=str(error))
        else:
            self._fail_all(error)

    def _fail_all(self, error: BaseException) -> None:
        for wait in self._pending():
            wait.future.set_exception(error)


def _uid(job: JsonObject) -> str:
    return text(child(job, "metadata"), "uid")


def is_transient(error: ApiError) -> bool:
    """Return whether the same request may succeed later.

    A refused token counts as transient: the heartbeats decide whether the job is lost.
    """
    return error.retryable or isinstance(error, ConflictError | UnauthorizedError)
