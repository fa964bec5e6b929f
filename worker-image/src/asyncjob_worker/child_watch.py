"""Waits for children to finish, with few requests however many are waited for.

One child is read by itself. Of several, those that have not finished are listed, and each that is
no longer among them is read once.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.app.child_errors import ChildGoneError
from asyncjob.app.child_view import ChildRef, ChildView, read_child
from asyncjob.errors import ApiError, NotFoundError
from asyncjob.json_types import child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import FINISHED
from asyncjob.names import JOBS, PARENT_LABEL, collection, job_path
from asyncjob_worker.child_refusal import is_transient

log = structlog.get_logger()

FIRST_SECONDS = 0.2
MOST_SECONDS = 5.0
_GROWTH = 1.5

_UNFINISHED = ",".join(f"status.phase!={phase.value}" for phase in sorted(FINISHED))


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
        self._waiting: dict[ChildRef, asyncio.Future[ChildView]] = {}
        self._users: dict[ChildRef, int] = {}
        self._looking: asyncio.Task[None] | None = None
        self._pausing = False
        self._seconds = FIRST_SECONDS

    async def until_finished(self, ref: ChildRef, seconds: float | None) -> ChildView:
        """Return the finished job.

        Raises ChildGoneError, TimeoutError after so many seconds, and ApiError where looking can
        never succeed.
        """
        answer = self._enter(ref)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(answer)
        except TimeoutError:
            raise TimeoutError(f"child {ref.name} has not finished within {seconds} s") from None
        finally:
            self._leave(ref)

    def _enter(self, ref: ChildRef) -> asyncio.Future[ChildView]:
        if ref not in self._waiting:
            self._waiting[ref] = asyncio.get_running_loop().create_future()
            self._look_anew()
        self._users[ref] = self._users.get(ref, 0) + 1
        return self._waiting[ref]

    def _leave(self, ref: ChildRef) -> None:
        self._users[ref] -= 1
        if not self._users[ref]:
            del self._users[ref]
            self._waiting.pop(ref).cancel()
        if not self._waiting and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _look_anew(self) -> None:
        """Look soon and often at first: somebody has begun to wait."""
        self._seconds = FIRST_SECONDS
        if self._looking is not None and self._pausing:
            self._looking.cancel()
            self._looking = None
        if self._looking is None:
            self._pausing = False
            self._looking = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while self._open():
            try:
                await self._look()
            except ApiError as error:
                self._take_error(error)
            seconds, self._seconds = self._seconds, min(self._seconds * _GROWTH, MOST_SECONDS)
            self._pausing = True
            await self._pause(seconds)
            self._pausing = False
        self._looking = None

    def _open(self) -> list[ChildRef]:
        return [ref for ref, answer in self._waiting.items() if not answer.done()]

    async def _look(self) -> None:
        refs = self._open()
        unfinished = await self._unfinished() if len(refs) > 1 else frozenset()
        for ref in refs:
            if ref.uid not in unfinished:
                await self._read(ref)

    async def _unfinished(self) -> frozenset[str]:
        path = collection(self._namespace, JOBS)
        params = {
            "labelSelector": f"{PARENT_LABEL}={self._parent_uid}",
            "fieldSelector": _UNFINISHED,
        }
        found = [job async for job in self._session.list(path, params)]
        return frozenset(text(child(job, "metadata"), "uid") for job in found)

    async def _read(self, ref: ChildRef) -> None:
        try:
            view = read_child(await self._session.get(job_path(self._namespace, ref.name)))
        except NotFoundError:
            view = None
        answer = self._waiting.get(ref)
        if answer is None or answer.done():
            return
        if view is None or view.uid != ref.uid:
            answer.set_exception(ChildGoneError(f"child {ref.name} has been deleted"))
        elif view.finished:
            answer.set_result(view)

    def _take_error(self, error: ApiError) -> None:
        if is_transient(error):
            log.warning("cannot look at children", error=str(error))
            return
        for ref in self._open():
            self._waiting[ref].set_exception(error)
