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
from asyncjob.app.child_order import ChildManifest
from asyncjob.app.child_view import ChildRef, ChildView, read_child
from asyncjob.errors import AlreadyExistsError, ApiError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import ExponentialBackoff
from asyncjob.names import CONTENT_ANNOTATION, JOBS, PARENT_LABEL, collection_path, job_path
from asyncjob_worker.child_refusal import is_transient, submit_error
from asyncjob_worker.child_watch import ChildPoller
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob

log = structlog.get_logger()

T = TypeVar("T")

MAX_CONCURRENT_SUBMITS = 4
"""Children that a worker submits at a time: claims and outcomes need connections, too."""


class AttemptChildJobs:
    """The children of one held job, as one attempt sees them.

    `limiter` bounds those on their way.
    """

    def __init__(
        self,
        session: KubeSession,
        held: HeldJob,
        *,
        limiter: asyncio.Semaphore | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._held = held
        self._limiter = limiter or asyncio.Semaphore(MAX_CONCURRENT_SUBMITS)
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._poller = ChildPoller(session, held.job.namespace, held.job.uid, pause)
        self._in_flight: set[concurrent.futures.Future[Any]] = set()
        self._stopped = False

    def submit(self, order: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same order twice is the same job."""
        return self._start(self._submit(order))

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Look until the job has finished; TimeoutError after so many seconds."""
        return self._start(self._poller.until_finished(child, timeout))

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Look at all children of the job."""
        return self._start(self._list())

    def stop(self) -> None:
        """Submit nothing more, and cancel what is not answered yet."""
        self._stopped = True
        for future in list(self._in_flight):
            future.cancel()

    def _start(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        return future

    async def _submit(self, order: ChildManifest) -> ChildRef:
        backoff = ExponentialBackoff(initial=0.1, cap=5.0)
        while (made := await self._submit_limited(order)) is None:
            await self._pause(backoff.next_delay())
        return ChildRef(order.name, text(child(made, "metadata"), "uid"))

    async def _submit_limited(self, order: ChildManifest) -> JsonObject | None:
        async with self._limiter:
            return await self._submit_once(order)

    async def _submit_once(self, order: ChildManifest) -> JsonObject | None:
        """Return the job, new or found; None if the answer is open or another try may help."""
        self._check_may_submit(order)
        path = collection_path(self._held.job.namespace, JOBS)
        try:
            return await self._session.create(path, order.manifest)
        except AlreadyExistsError:
            return await self._find_existing(order)
        except ApiError as error:
            if not is_transient(error):
                raise submit_error(error, order, self._held.job.namespace) from error
            log.warning("child not submitted yet", child=order.name, error=str(error))
            return None

    async def _find_existing(self, order: ChildManifest) -> JsonObject | None:
        """Return the job of that name if it is what we have ordered, now or in another attempt."""
        try:
            found = await self._session.get(job_path(self._held.job.namespace, order.name))
        except ObjectNotFoundError:
            return None
        except ApiError as error:
            if not is_transient(error):
                raise submit_error(error, order, self._held.job.namespace) from error
            return None
        self._check_same_child(found, order)
        return found

    def _check_same_child(self, found: JsonObject, order: ChildManifest) -> None:
        meta = child(found, "metadata")
        if text(child(meta, "labels"), PARENT_LABEL) != self._held.job.uid:
            raise SubmitConflictError(
                f"there is a job {order.name} that is no child of this one: give another name"
            )
        if text(child(meta, "annotations"), CONTENT_ANNOTATION) != order.fingerprint:
            what = f"name {order.name!r}" if order.key is None else f"key {order.key!r}"
            raise SubmitConflictError(
                f"{what} was used by this job for a child with other content ({order.name}): "
                "give each child a key of its own"
            )

    def _check_may_submit(self, order: ChildManifest) -> None:
        held, now = self._held, lease_seconds()
        over = self._stopped or held.stopped is not None or held.writing_outcome
        if over or now >= min(held.lease_expires_at, held.times_out_at):
            why = held.stopped.value if held.stopped else "it has ended"
            raise AttemptOverError(f"the attempt is over ({why}): {order.name} is not submitted")

    async def _list(self) -> Sequence[ChildView]:
        path = collection_path(self._held.job.namespace, JOBS)
        params = {"labelSelector": f"{PARENT_LABEL}={self._held.job.uid}"}
        return [read_child(found) async for found in self._session.list(path, params)]
