"""The child jobs of one attempt: submits them, waits for them to finish, lists them.

Called from the handler's thread, works in the event loop. An attempt that has been asked to stop,
or whose lease may have expired, submits nothing more: by then another worker may run the job.
"""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import structlog

from asyncjob.app.child_jobs import ChildRef, ChildView, read_child
from asyncjob.app.child_manifest import ChildManifest, called_child, with_article
from asyncjob.app.errors import (
    AttemptOverError,
    SubmitConflictError,
    SubmitError,
    SubmitForbiddenError,
    SubmitRefusedError,
)
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.names import (
    ARRAY_KIND,
    ARRAYS,
    CONTENT_ANNOTATION,
    JOB_KIND,
    JOBS,
    PARENT_LABEL,
    child_path,
    collection_path,
)
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.children.child_poller import ChildPoller, is_transient
from asyncjob_worker.execution.children.earlier_children import EarlierChildren
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import is_policy_refusal

log = structlog.get_logger()

T = TypeVar("T")

MAX_CONCURRENT_SUBMITS = 4
"""Children that a worker submits at the same time: claims and outcomes need connections too."""

CHILDREN_ROLE = "asyncjob-worker-children"
"""Name of the ClusterRole that lets workers submit jobs."""

_RBAC_DENIED = ('cannot create resource "asyncjobs"', 'cannot create resource "asyncarrays"')


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
        namespace, uid = held.job.namespace, held.job.uid
        self._poller = ChildPoller(session, namespace, uid, pause)
        self._earlier = EarlierChildren(session, namespace, uid, has_earlier=held.job.attempt > 1)
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
        waiting = self._start(self._until_finished(child, timeout))
        if self._stopped:
            waiting.cancel()
        return waiting

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """List all children of the job, those that are on their way included."""
        return self._start(self._list(tuple(self._submissions)))

    async def unfinished(self) -> frozenset[str]:
        """Return the UIDs of the children that have not finished, by a list in the event loop."""
        return await self._poller.unfinished()

    def stop(self) -> None:
        """Submit nothing more, and cancel the requests that are not answered yet."""
        self._stopped = True
        self._earlier.stop()
        for future in list(self._in_flight):
            future.cancel()

    def _start(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        return future

    async def _until_finished(self, child: ChildRef, seconds: float | None) -> ChildView:
        succeeded = self._earlier.take_succeeded(child)
        return succeeded or await self._poller.until_finished(child, seconds)

    async def _submit(self, manifest: ChildManifest) -> ChildRef:
        backoff = ExponentialBackoff(initial=0.1, cap=5.0)
        while (created := await self._submit_limited(manifest)) is None:
            await self._pause(backoff.next_delay())
        return ChildRef(manifest.name, text(child(created, "metadata"), "uid"), manifest.kind)

    async def _submit_limited(self, manifest: ChildManifest) -> JsonObject | None:
        async with self._limiter:
            return await self._submit_once(manifest)

    async def _submit_once(self, manifest: ChildManifest) -> JsonObject | None:
        """Return the job, new or found; None if it has to be tried again."""
        self._check_may_submit(manifest)
        if (earlier := self._take_earlier(manifest)) is not None:
            return earlier
        plural = ARRAYS if manifest.kind == ARRAY_KIND else JOBS
        path = collection_path(self._held.job.namespace, plural)
        try:
            return await self._session.create(path, manifest.manifest)
        except AlreadyExistsError:
            if manifest.kind == JOB_KIND:
                await self._earlier.list()
            return self._take_earlier(manifest) or await self._find_existing(manifest)
        except ApiError as error:
            if not is_transient(error):
                raise submit_error(error, manifest, self._held.job.namespace) from error
            log.warning("child not submitted yet", child=manifest.name, error=str(error))
            return None

    def _take_earlier(self, manifest: ChildManifest) -> JsonObject | None:
        """Return the job if a list has found it, with nothing but metadata; no list has arrays."""
        if manifest.kind != JOB_KIND or (earlier := self._earlier.take(manifest.name)) is None:
            return None
        self._check_same_child(earlier, manifest)
        return earlier

    async def _find_existing(self, manifest: ChildManifest) -> JsonObject | None:
        """Return the job if it is ours, None if it cannot be read now; or SubmitConflictError."""
        try:
            namespace = self._held.job.namespace
            found = await self._session.get(child_path(namespace, manifest.kind, manifest.name))
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
                f"there is {with_article(manifest.kind)} {manifest.name} that is not a child of "
                "this one: give another name"
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
        if over or now >= min(held.lease_expires_at, held.ends_at):
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


def submit_error(error: ApiError, manifest: ChildManifest, namespace: str) -> SubmitError:
    """Return the error that the handler gets for a failed submission."""
    what = f"{called_child(manifest.kind)} {manifest.name}"
    if isinstance(error, ForbiddenError):
        return SubmitForbiddenError(f"{what}: {error}{_rbac_hint(error, namespace)}")
    if isinstance(error, TooLargeError):
        return SubmitRefusedError(f"{what} is too large, hand data over by reference: {error}")
    if isinstance(error, InvalidError):
        return SubmitRefusedError(f"{what}: {error}")
    return SubmitError(f"{what}: {error}")


def _rbac_hint(error: ForbiddenError, namespace: str) -> str:
    if is_policy_refusal(error) or not any(denied in str(error) for denied in _RBAC_DENIED):
        return ""
    return (
        f"; workers submit jobs only with the ClusterRole {CHILDREN_ROLE}: kubectl -n {namespace} "
        f"create rolebinding {CHILDREN_ROLE} --clusterrole={CHILDREN_ROLE} "
        f"--serviceaccount={namespace}:asyncjob-worker"
    )
