"""The child jobs of one attempt: submits them, waits for them to finish, lists them.

Called from the handler's thread, works in the event loop. An attempt that has been told to stop, or
whose lease may have ended, submits nothing more: by then another worker may run the job. Waiting
costs few requests however many children are waited for: each wait is polled often at first, then
less and less often; one child is read by itself, several are listed as metadata only, and each that
is no longer unfinished is read once.
"""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import structlog

from asyncjob.app.child_jobs import ChildRef, ChildView, read_child
from asyncjob.app.child_manifest import ChildManifest
from asyncjob.app.errors import (
    AttemptOverError,
    ChildGoneError,
    SubmitConflictError,
    SubmitError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnauthorizedError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.lifecycle.phases import FINISHED_PHASES
from asyncjob.names import CONTENT_ANNOTATION, JOBS, PARENT_LABEL, collection_path, job_path
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import is_policy_refusal

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


FIRST_POLL_SECONDS: Final = 0.2
MAX_POLL_SECONDS: Final = 5.0
_POLL_BACKOFF: Final = 1.5

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""Of the children only the UIDs are wanted: payloads and checkpoints may be large."""

_UNFINISHED: Final = ",".join(f"status.phase!={phase.value}" for phase in sorted(FINISHED_PHASES))


@dataclass(slots=True, eq=False)
class _PendingWait:
    """A child that `waiters` wait for; it is due for a look in `due_in` seconds."""

    ref: ChildRef
    future: asyncio.Future[ChildView] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    waiters: int = 0
    due_in: float = 0.0
    interval: float = FIRST_POLL_SECONDS

    def schedule_next(self, *, was_due: bool) -> None:
        """Wait for the next look, and longer each time it was this one's turn."""
        self.due_in = self.interval
        if was_due:
            self.interval = min(self.interval * _POLL_BACKOFF, MAX_POLL_SECONDS)


class ChildPoller:
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
        self._waits: dict[ChildRef, _PendingWait] = {}
        self._wait_added = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def until_finished(self, ref: ChildRef, seconds: float | None) -> ChildView:
        """Return the finished job.

        Raises ChildGoneError, TimeoutError after so many seconds, ApiError where looking can never
        succeed, and ValueError for a child that this version cannot read.
        """
        wait = self._add_waiter(ref)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(wait.future)
        except TimeoutError:
            raise TimeoutError(f"child {ref.name} has not finished within {seconds} s") from None
        finally:
            self._remove_waiter(wait)

    def _add_waiter(self, ref: ChildRef) -> _PendingWait:
        wait = self._waits.get(ref)
        if wait is None or wait.future.done():
            wait = self._waits[ref] = _PendingWait(ref)
            self._wait_added.set()
        wait.waiters += 1
        # Done, but not told so yet: its callback runs in a later turn of the event loop.
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
        """Leave nobody waiting for a look that has failed in a way that nobody thought of."""
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
        """Let time pass until the next wait is due, or somebody new has come."""
        if seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        waits, began = self._pending(), loop.time()
        pause, arrival = (
            asyncio.ensure_future(self._pause(seconds)),
            asyncio.ensure_future(self._wait_added.wait()),
        )
        try:
            await asyncio.wait({pause, arrival}, return_when=asyncio.FIRST_COMPLETED)
            passed = seconds if pause.done() else loop.time() - began
        finally:
            pause.cancel()
            arrival.cancel()
        for wait in waits:
            wait.due_in -= passed

    async def _poll(self, waits: list[_PendingWait]) -> None:
        self._wait_added.clear()
        due = [wait for wait in waits if wait.due_in <= 0]
        covered = waits if len(due) > 1 else due
        for wait in covered:
            wait.schedule_next(was_due=wait in due)
        unfinished = await self._unfinished() if len(due) > 1 else frozenset()
        for wait in covered:
            if wait.ref.uid not in unfinished and not wait.future.done():
                await self._read(wait)

    async def _unfinished(self) -> frozenset[str]:
        """Return the UIDs of the children that have not finished."""
        path = collection_path(self._namespace, JOBS)
        query = {
            "labelSelector": f"{PARENT_LABEL}={self._parent_uid}",
            "fieldSelector": _UNFINISHED,
        }
        found = self._session.list(path, query, accept=METADATA_ONLY)
        return frozenset([_uid(job) async for job in found])

    async def _read(self, wait: _PendingWait) -> None:
        ref, answer = wait.ref, wait.future
        try:
            found = await self._session.get(job_path(self._namespace, ref.name))
        except ObjectNotFoundError:
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


CHILDREN_ROLE = "asyncjob-worker-children"
"""ClusterRole that lets workers submit jobs."""

_RBAC_DENIED = 'cannot create resource "asyncjobs"'


def is_transient(error: ApiError) -> bool:
    """Return whether the same request may succeed later; a lost token is the heartbeats' matter."""
    return error.retryable or isinstance(error, ConflictError | UnauthorizedError)


def submit_error(error: ApiError, order: ChildManifest, namespace: str) -> SubmitError:
    """Return what the handler is told."""
    what = f"child {order.name}"
    if isinstance(error, ForbiddenError):
        return SubmitForbiddenError(f"{what}: {error}{_rbac_hint(error, namespace)}")
    if isinstance(error, TooLargeError):
        return SubmitRefusedError(f"{what} is too large, hand data over by reference: {error}")
    if isinstance(error, InvalidError):
        return SubmitRefusedError(f"{what}: {error}")
    return SubmitError(f"{what}: {error}")


def _rbac_hint(error: ForbiddenError, namespace: str) -> str:
    if is_policy_refusal(error) or _RBAC_DENIED not in str(error):
        return ""
    return (
        f"; workers submit jobs only with the ClusterRole {CHILDREN_ROLE}: kubectl -n {namespace} "
        "create "
        f"rolebinding {CHILDREN_ROLE} --clusterrole={CHILDREN_ROLE} "
        f"--serviceaccount={namespace}:asyncjob-worker"
    )
