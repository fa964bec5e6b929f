"""The worker's own Lease, which registers the process: identity, queue, slots and types.

It is written before the first claim, renewed while the worker runs, and its holder is removed at
the end. Each write is conditional on the version that is known: one that is delayed until the
container has been started again must not name the older process, or the operator would take the
newer for replaced, and its jobs from it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import orjson
import structlog

from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    ObjectNotFoundError,
    UnauthorizedError,
)
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.names import (
    COMPONENT_LABEL,
    POD_UID_ANNOTATION,
    QUEUE_LABEL,
    WORKER_ANNOTATION,
    WORKER_COMPONENT,
    WORKER_LEASE_PREFIX,
)
from asyncjob.shards import SHARDS
from asyncjob_worker.clock import micro_time_text
from asyncjob_worker.errors import CannotStartError

log = structlog.get_logger()

LIVE_RENEWAL_INTERVALS = 3
"""A worker whose Lease has not changed for this many intervals no longer counts as live."""

DEREGISTER_SECONDS = 3.0
"""How long an unreachable API server may delay the end of the process."""


@dataclass(frozen=True, slots=True)
class WorkerLease:
    """Identity, queue, slots and handler types of one start of a worker process."""

    holder: LeaseHolder
    queue: str
    slots: int
    types: Sequence[str]
    interval: float
    """Time between renewals, in seconds."""

    draining: bool = False
    """Whether the worker claims no more jobs; those it holds are still its own."""

    def manifest(self) -> JsonObject:
        """Return the Lease, renewed now; the same body creates it and patches it.

        Its owner is the pod, so that it is deleted with it.
        """
        registration: dict[str, Json] = {
            "queue": self.queue,
            "slots": self.slots,
            "types": list(self.types),
            "shards": SHARDS,
        }
        if self.draining:
            registration["draining"] = True
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": WORKER_LEASE_PREFIX + self.holder.pod,
                "labels": {COMPONENT_LABEL: WORKER_COMPONENT, QUEUE_LABEL: self.queue},
                "annotations": {
                    POD_UID_ANNOTATION: self.holder.pod_uid,
                    WORKER_ANNOTATION: orjson.dumps(registration).decode(),
                },
                "ownerReferences": [self._pod_reference()],
            },
            "spec": {
                "holderIdentity": self.holder.worker,
                "leaseDurationSeconds": max(1, int(self.interval * LIVE_RENEWAL_INTERVALS)),
                "renewTime": micro_time_text(),
            },
        }

    def _pod_reference(self) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": self.holder.pod,
            "uid": self.holder.pod_uid,
        }


class WorkerRegistration:
    """Registers one worker process by its Lease."""

    def __init__(
        self,
        session: KubeSession,
        lease: WorkerLease,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._lease = lease
        self._path = lease_path(session.access.namespace, lease.holder.pod)
        self._collection = leases_path(session.access.namespace)
        self._lock = asyncio.Lock()
        self._version = ""
        """The newest version that is known, empty if it is not."""

        self._creating: asyncio.Task[JsonObject] | None = None
        self._pause = pause

    async def register(self) -> None:
        """Write the Lease for the first time; wait for an API server that is unreachable.

        Raises CannotStartError where waiting does not help.
        """
        backoff = ExponentialBackoff()
        while True:
            try:
                return await self._write()
            except (ForbiddenError, UnauthorizedError, ObjectNotFoundError) as error:
                raise CannotStartError(self._explain(error)) from error
            except ApiError as error:
                pause = backoff.next_delay()
                wait = round(pause, 1)
                log.warning("waiting for the API server", error=str(error), retry_in=wait)
                await self._pause(pause)

    async def renew_periodically(self, before_renewal: Callable[[], None]) -> None:
        """Renew until cancelled; `before_renewal` is called before each renewal."""
        while True:
            await self._pause(self._lease.interval)
            before_renewal()
            await self._try_write("worker lease not renewed")

    async def mark_draining(self) -> None:
        """Show that this worker claims no more jobs, so that others take over its share at once."""
        self._lease = replace(self._lease, draining=True)
        await self._try_write("worker lease not marked as draining")

    async def deregister(self) -> None:
        """Remove the holder from the Lease, so that this worker no longer counts as live."""
        try:
            async with asyncio.timeout(DEREGISTER_SECONDS):
                if self._creating:
                    # A stop may have come meanwhile. There is no version that would refuse it: it
                    # could take effect after the end and name this worker for good.
                    await asyncio.gather(self._creating, return_exceptions=True)
                await self._remove_holder()
        except ObjectNotFoundError:
            return
        except (ApiError, TimeoutError) as error:
            log.warning("worker lease not emptied", error=str(error) or "no answer in time")

    async def _remove_holder(self) -> None:
        body: JsonObject = {"spec": {"holderIdentity": ""}}
        while True:
            if not self._version:
                lease = await self._read()
                if text(child(lease, "spec"), "holderIdentity") != self._lease.holder.worker:
                    return
                self._note(lease)
            # A write of ours that nobody waits for any more, such as the mark of a drain that is
            # over, may come in between.
            with suppress(ConflictError):
                await self._patch(body)
                return

    async def _try_write(self, message: str) -> None:
        try:
            await self._write()
        except ApiError as error:
            log.warning(message, error=str(error))

    async def _write(self) -> None:
        """Write the Lease on the version that is known, or take over the one that there is."""
        async with self._lock:  # a renewal and the mark of a drain may come at the same time
            if self._version:
                with suppress(ConflictError, ObjectNotFoundError):
                    await self._patch(self._lease.manifest())
                    return
            try:
                creation = self._session.create(self._collection, self._lease.manifest())
                self._creating = asyncio.ensure_future(creation)
                self._note(await asyncio.shield(self._creating))
            except AlreadyExistsError:
                self._note(await self._read())
            # Also one just created: a role without the right to patch is told at the start.
            await self._patch(self._lease.manifest())

    async def _patch(self, body: JsonObject) -> None:
        version, self._version = self._version, ""  # unknown until there is an answer
        metadata = {**child(body, "metadata"), "resourceVersion": version}
        self._note(await self._session.merge_patch(self._path, {**body, "metadata": metadata}))

    async def _read(self) -> JsonObject:
        """Return the Lease as it is; workers may list Leases, not get one."""
        name = self._path.rpartition("/")[2]
        params = {"fieldSelector": f"metadata.name={name}"}
        found = items(await self._session.get(self._collection, params), "items")
        if not found:
            raise ObjectNotFoundError(f"no lease {name}")
        return as_object(found[0])

    def _note(self, lease: JsonObject) -> None:
        self._version = text(child(lease, "metadata"), "resourceVersion")

    def _explain(self, error: ApiError) -> str:
        if isinstance(error, ObjectNotFoundError):
            return f"namespace {self._session.access.namespace!r} does not exist: {error}"
        if isinstance(error, UnauthorizedError):
            return f"the API server does not accept this pod's token: {error}"
        return f"this identity may not write its worker Lease, check the worker's RBAC: {error}"


def leases_path(namespace: str) -> str:
    """Return the API path of a namespace's Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def lease_path(namespace: str, pod: str) -> str:
    """Return the API path of a pod's worker Lease."""
    return f"{leases_path(namespace)}/{WORKER_LEASE_PREFIX}{pod}"
