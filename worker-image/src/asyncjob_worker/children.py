"""Submits the children of one attempt to the API server, and looks at them.

Called from the handler's thread, works in the event loop. An attempt that has been told to stop, or
whose lease may have ended, sends nothing more: another may be at work on the job by then.
"""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import structlog

from asyncjob.app.child_errors import AttemptOverError, SubmitConflictError
from asyncjob.app.child_order import ChildOrder
from asyncjob.app.child_view import ChildRef, ChildView, read_child
from asyncjob.errors import AlreadyExistsError, ApiError, NotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import Backoff
from asyncjob.names import CONTENT_ANNOTATION, JOBS, PARENT_LABEL, collection, job_path
from asyncjob_worker.child_refusal import is_transient, refusal
from asyncjob_worker.child_watch import ChildWatch
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob

log = structlog.get_logger()

T = TypeVar("T")

AT_A_TIME = 4
"""Children that a worker submits at a time: claims and outcomes need connections, too."""


class AttemptChildren:
    """The children of one held job, as one attempt sees them; `gate` bounds those on their way."""

    def __init__(
        self,
        session: KubeSession,
        held: HeldJob,
        *,
        gate: asyncio.Semaphore | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._held = held
        self._gate = gate or asyncio.Semaphore(AT_A_TIME)
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._watch = ChildWatch(session, held.job.namespace, held.job.uid, pause)
        self._going: set[concurrent.futures.Future[Any]] = set()
        self._over = False

    def submit(self, order: ChildOrder) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same order twice is the same job."""
        return self._begin(self._submit(order))

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Look until the job has finished; TimeoutError after so many seconds."""
        return self._begin(self._watch.until_finished(child, timeout))

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Look at all children of the job."""
        return self._begin(self._list())

    def stop(self) -> None:
        """Submit nothing more, and cancel what is not answered yet."""
        self._over = True
        for future in list(self._going):
            future.cancel()

    def _begin(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._going.add(future)
        future.add_done_callback(self._going.discard)
        return future

    async def _submit(self, order: ChildOrder) -> ChildRef:
        backoff = Backoff(initial=0.1, cap=5.0)
        while (made := await self._in_turn(order)) is None:
            await self._pause(backoff.pause())
        return ChildRef(order.name, text(child(made, "metadata"), "uid"))

    async def _in_turn(self, order: ChildOrder) -> JsonObject | None:
        async with self._gate:
            return await self._try(order)

    async def _try(self, order: ChildOrder) -> JsonObject | None:
        """Return the job, new or found; None if the answer is open or another try may help."""
        self._check_alive(order)
        path = collection(self._held.job.namespace, JOBS)
        try:
            return await self._session.create(path, order.body)
        except AlreadyExistsError:
            return await self._find(order)
        except ApiError as error:
            if not is_transient(error):
                raise refusal(error, order, self._held.job.namespace) from error
            log.warning("child not submitted yet", child=order.name, error=str(error))
            return None

    async def _find(self, order: ChildOrder) -> JsonObject | None:
        """Return the job of that name if it is what we have ordered, now or in another attempt."""
        try:
            found = await self._session.get(job_path(self._held.job.namespace, order.name))
        except NotFoundError:
            return None
        except ApiError as error:
            if not is_transient(error):
                raise refusal(error, order, self._held.job.namespace) from error
            return None
        self._check_own(found, order)
        return found

    def _check_own(self, found: JsonObject, order: ChildOrder) -> None:
        meta = child(found, "metadata")
        if text(child(meta, "labels"), PARENT_LABEL) != self._held.job.uid:
            raise SubmitConflictError(
                f"there is a job {order.name} that is no child of this one: give another name"
            )
        if text(child(meta, "annotations"), CONTENT_ANNOTATION) != order.content:
            what = f"name {order.name!r}" if order.key is None else f"key {order.key!r}"
            raise SubmitConflictError(
                f"{what} was used by this job for a child with other content ({order.name}): "
                "give each child a key of its own"
            )

    def _check_alive(self, order: ChildOrder) -> None:
        held, now = self._held, lease_seconds()
        over = self._over or held.stopped is not None or held.reporting
        if over or now >= min(held.ends_at, held.times_out_at):
            why = held.stopped.value if held.stopped else "it has ended"
            raise AttemptOverError(f"the attempt is over ({why}): {order.name} is not submitted")

    async def _list(self) -> Sequence[ChildView]:
        path = collection(self._held.job.namespace, JOBS)
        params = {"labelSelector": f"{PARENT_LABEL}={self._held.job.uid}"}
        return [read_child(found) async for found in self._session.list(path, params)]
