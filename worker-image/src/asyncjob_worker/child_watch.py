"""Waits for children to finish, with few requests however many are waited for.

Each wait is looked at soon and often at first, then less and less often, whoever else begins to
wait. One child is read by itself. Where several are due, those that have not finished are listed,
as metadata only, and each that is no longer among them is read once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from asyncjob.app.child_errors import ChildGoneError
from asyncjob.app.child_view import ChildRef, ChildView, read_child
from asyncjob.errors import ApiError, ExpiredError, NotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import FINISHED
from asyncjob.names import JOBS, PARENT_LABEL, collection, job_path
from asyncjob_worker.child_refusal import is_transient

log = structlog.get_logger()

FIRST_SECONDS: Final = 0.2
MOST_SECONDS: Final = 5.0
_GROWTH: Final = 1.5

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""Of the children only the UIDs are wanted: payloads and checkpoints may be large."""

_UNFINISHED: Final = ",".join(f"status.phase!={phase.value}" for phase in sorted(FINISHED))


@dataclass(slots=True, eq=False)
class _Wait:
    """A child that `users` wait for; it is due for a look in `left` seconds."""

    ref: ChildRef
    answer: asyncio.Future[ChildView] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    users: int = 0
    left: float = 0.0
    pause: float = FIRST_SECONDS

    def looked_at(self, *, was_due: bool) -> None:
        """Wait for the next look, and longer each time it was this one's turn."""
        self.left = self.pause
        if was_due:
            self.pause = min(self.pause * _GROWTH, MOST_SECONDS)


class ChildWatch:
    """Looks at the children of one job for as long as somebody waits for one."""

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
        self._waits: dict[ChildRef, _Wait] = {}
        self._arrived = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def until_finished(self, ref: ChildRef, seconds: float | None) -> ChildView:
        """Return the finished job.

        Raises ChildGoneError, TimeoutError after so many seconds, ApiError where looking can never
        succeed, and ValueError for a child that this version cannot read.
        """
        wait = self._enter(ref)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(wait.answer)
        except TimeoutError:
            raise TimeoutError(f"child {ref.name} has not finished within {seconds} s") from None
        finally:
            self._leave(wait)

    def _enter(self, ref: ChildRef) -> _Wait:
        wait = self._waits.get(ref)
        if wait is None or wait.answer.done():
            wait = self._waits[ref] = _Wait(ref)
            self._arrived.set()
        wait.users += 1
        # Done, but not told so yet: its callback runs in a later turn of the event loop.
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._run())
            self._looking.add_done_callback(self._ended)
        return wait

    def _leave(self, wait: _Wait) -> None:
        wait.users -= 1
        if not wait.users:
            wait.answer.cancel()
            if self._waits.get(wait.ref) is wait:
                del self._waits[wait.ref]
        if not self._waits and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _ended(self, looking: "asyncio.Task[None]") -> None:
        """Leave nobody waiting for a look that has failed in a way that nobody thought of."""
        if self._looking is looking:
            self._looking = None
        error = None if looking.cancelled() else looking.exception()
        if error is not None:
            self._fail_all(error)

    async def _run(self) -> None:
        while waits := self._open():
            if any(wait.left <= 0 for wait in waits):
                try:
                    await self._look(waits)
                except ApiError as error:
                    self._take_error(error)
            if waits := self._open():
                await self._rest(min(wait.left for wait in waits))

    def _open(self) -> list[_Wait]:
        return [wait for wait in self._waits.values() if not wait.answer.done()]

    async def _rest(self, seconds: float) -> None:
        """Let time pass until the next wait is due, or somebody new has come."""
        if seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        waits, began = self._open(), loop.time()
        pause, arrival = (
            asyncio.ensure_future(self._pause(seconds)),
            asyncio.ensure_future(self._arrived.wait()),
        )
        try:
            await asyncio.wait({pause, arrival}, return_when=asyncio.FIRST_COMPLETED)
            passed = seconds if pause.done() else loop.time() - began
        finally:
            pause.cancel()
            arrival.cancel()
        for wait in waits:
            wait.left -= passed

    async def _look(self, waits: list[_Wait]) -> None:
        self._arrived.clear()
        due = [wait for wait in waits if wait.left <= 0]
        covered = waits if len(due) > 1 else due
        for wait in covered:
            wait.looked_at(was_due=wait in due)
        unfinished = await self._unfinished() if len(due) > 1 else frozenset()
        for wait in covered:
            if wait.ref.uid not in unfinished and not wait.answer.done():
                await self._read(wait)

    async def _unfinished(self) -> frozenset[str]:
        """Return the UIDs of the children that have not finished."""
        path = collection(self._namespace, JOBS)
        query = {
            "labelSelector": f"{PARENT_LABEL}={self._parent_uid}",
            "fieldSelector": _UNFINISHED,
        }
        found = self._session.list(path, query, accept=METADATA_ONLY)
        return frozenset([_uid(job) async for job in found])

    async def _read(self, wait: _Wait) -> None:
        ref, answer = wait.ref, wait.answer
        try:
            found = await self._session.get(job_path(self._namespace, ref.name))
        except NotFoundError:
            found = None
        if answer.done():
            return
        if found is None or _uid(found) != ref.uid:
            answer.set_exception(ChildGoneError(f"child {ref.name} has been deleted"))
            return
        try:
            view = read_child(found)
        except ValueError as error:  # what one child holds is no other's concern
            answer.set_exception(error)
            return
        if view.finished:
            answer.set_result(view)

    def _take_error(self, error: ApiError) -> None:
        if is_transient(error) or isinstance(error, ExpiredError):
            log.warning("cannot look at children", error=str(error))
        else:
            self._fail_all(error)

    def _fail_all(self, error: BaseException) -> None:
        for wait in self._open():
            wait.answer.set_exception(error)


def _uid(job: JsonObject) -> str:
    return text(child(job, "metadata"), "uid")
