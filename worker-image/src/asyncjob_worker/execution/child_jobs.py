"""The child jobs of one attempt: submits them, waits for them to finish, lists them.

Called from the handler's thread, works in the event loop. An attempt that has been asked to stop,
or whose lease may have expired, submits nothing more: by then another worker may run the job.
Waiting costs few requests however many children are waited for: each wait is polled often at first,
then less and less often. One child is read by itself; of several the unfinished ones are listed,
metadata only, and each that is not among them is read once.
"""

import asyncio
import concurrent.futures
import contextlib
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
from asyncjob_worker.clock import boottime
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import is_policy_refusal

log = structlog.get_logger()

T = TypeVar("T")

MAX_CONCURRENT_SUBMITS = 4
"""Children that a worker submits at the same time: claims and outcomes need connections too."""

FIRST_POLL_SECONDS: Final = 0.2
MAX_POLL_SECONDS: Final = 5.0
"""Intervals between reads of a child that is waited for. The first is short, so that the end of a
quick one is seen at once; the longest bounds what waiting for a slow one costs."""

_POLL_BACKOFF: Final = 1.5
"""By how much the interval between polls of a wait grows with each, from the first to the last of
the intervals above."""

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""Only the UIDs of the children are needed: payloads and checkpoints may be large."""

_UNFINISHED: Final = ",".join(f"status.phase!={phase.value}" for phase in sorted(FINISHED_PHASES))

CHILDREN_ROLE = "asyncjob-worker-children"
"""Name of the ClusterRole that lets workers submit jobs."""

_RBAC_DENIED = 'cannot create resource "asyncjobs"'


class AttemptChildJobs:
    """The children of one held job, for one attempt.

    `limiter` bounds how many are submitted at the same time.
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
        self._submissions: set[concurrent.futures.Future[ChildRef]] = set()
        self._stopped = False

    def submit(self, manifest: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same manifest twice is the same job."""
        submission = self._start(self._submit(manifest))
        self._submissions.add(submission)
        submission.add_done_callback(self._submissions.discard)
        return submission

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Wait until the job has finished; TimeoutError after `timeout` seconds."""
        return self._start(self._poller.until_finished(child, timeout))

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """List all children of the job, those that are on their way included."""
        return self._start(self._list(tuple(self._submissions)))

    def stop(self) -> None:
        """Submit nothing more, and cancel the requests that are not answered yet."""
        self._stopped = True
        for future in list(self._in_flight):
            future.cancel()

    def _start(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        return future

    async def _submit(self, manifest: ChildManifest) -> ChildRef:
        backoff = ExponentialBackoff(initial=0.1, cap=5.0)
        while (created := await self._submit_limited(manifest)) is None:
            await self._pause(backoff.next_delay())
        return ChildRef(manifest.name, text(child(created, "metadata"), "uid"))

    async def _submit_limited(self, manifest: ChildManifest) -> JsonObject | None:
        async with self._limiter:
            return await self._submit_once(manifest)

    async def _submit_once(self, manifest: ChildManifest) -> JsonObject | None:
        """Return the job, new or found; None if it has to be tried again."""
        self._check_may_submit(manifest)
        path = collection_path(self._held.job.namespace, JOBS)
        try:
            return await self._session.create(path, manifest.manifest)
        except AlreadyExistsError:
            return await self._find_existing(manifest)
        except ApiError as error:
            if not is_transient(error):
                raise submit_error(error, manifest, self._held.job.namespace) from error
            log.warning("child not submitted yet", child=manifest.name, error=str(error))
            return None

    async def _find_existing(self, manifest: ChildManifest) -> JsonObject | None:
        """Return the job of that name if this job has submitted it, now or in another attempt.

        Returns None if it cannot be read now; raises SubmitConflictError if it is another job.
        """
        try:
            found = await self._session.get(job_path(self._held.job.namespace, manifest.name))
        except ObjectNotFoundError:
            return None
        except ApiError as error:
            if not is_transient(error):
                raise submit_error(error, manifest, self._held.job.namespace) from error
            return None
        self._check_same_child(found, manifest)
        return found

    def _check_same_child(self, found: JsonObject, manifest: ChildManifest) -> None:
        meta = child(found, "metadata")
        if text(child(meta, "labels"), PARENT_LABEL) != self._held.job.uid:
            raise SubmitConflictError(
                f"there is a job {manifest.name} that is not a child of this one: give another name"
            )
        if text(child(meta, "annotations"), CONTENT_ANNOTATION) != manifest.fingerprint:
            clash = f"name {manifest.name!r}" if manifest.key is None else f"key {manifest.key!r}"
            raise SubmitConflictError(
                f"{clash} was used by this job for a child with other content ({manifest.name}): "
                "give each child a key of its own"
            )

    def _check_may_submit(self, manifest: ChildManifest) -> None:
        held, now = self._held, boottime()
        over = self._stopped or held.stopped is not None or held.writing_outcome
        if over or now >= min(held.lease_expires_at, held.times_out_at):
            reason = held.stopped.value if held.stopped else "it has ended"
            raise AttemptOverError(
                f"the attempt is over ({reason}): {manifest.name} is not submitted"
            )

    async def _list(
        self, submissions: Sequence["concurrent.futures.Future[ChildRef]"]
    ) -> Sequence[ChildView]:
        for submission in submissions:
            # Its error is for its submitter; a list waits only for its end.
            with contextlib.suppress(Exception):
                await asyncio.shield(asyncio.wrap_future(submission))
        path = collection_path(self._held.job.namespace, JOBS)
        params = {"labelSelector": f"{PARENT_LABEL}={self._held.job.uid}"}
        return [read_child(found) async for found in self._session.list(path, params)]


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
            raise TimeoutError(f"child {ref.name} has not finished within {seconds} s") from None
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
        ref, future = wait.ref, wait.future
        try:
            found = await self._session.get(job_path(self._namespace, ref.name))
        except ObjectNotFoundError:
            found = None
        if future.done():
            return
        if found is None or _uid(found) != ref.uid:
            future.set_exception(ChildGoneError(f"child {ref.name} has been deleted"))
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


def submit_error(error: ApiError, manifest: ChildManifest, namespace: str) -> SubmitError:
    """Return the error that the handler gets for a failed submission."""
    what = f"child {manifest.name}"
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
        f"create rolebinding {CHILDREN_ROLE} --clusterrole={CHILDREN_ROLE} "
        f"--serviceaccount={namespace}:asyncjob-worker"
    )
