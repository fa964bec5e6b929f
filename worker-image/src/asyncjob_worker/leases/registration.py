"""The worker's own Lease, which registers the process: identity, queue, slots and types.

It is written before the first claim, renewed while the worker runs, and its holder is removed at
the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import orjson
import structlog

from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ForbiddenError,
    ObjectNotFoundError,
    UnauthorizedError,
)
from asyncjob.json_types import Json, JsonObject
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
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        registration: dict[str, Json] = {
            "queue": self.queue,
            "slots": self.slots,
            "types": list(self.types),
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
                "renewTime": now,
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
        """Show that this worker claims no more, so that others take over its share at once."""
        self._lease = replace(self._lease, draining=True)
        await self._try_write("draining not announced")

    async def deregister(self) -> None:
        """Remove the holder from the Lease, so that this worker no longer counts as live."""
        body: JsonObject = {"spec": {"holderIdentity": ""}}
        try:
            async with asyncio.timeout(DEREGISTER_SECONDS):
                await self._session.merge_patch(self._path, body)
        except ObjectNotFoundError:
            return
        except (ApiError, TimeoutError) as error:
            log.warning("worker lease not emptied", error=str(error) or "no answer in time")

    async def _try_write(self, message: str) -> None:
        try:
            await self._write()
        except ApiError as error:
            log.warning(message, error=str(error))

    async def _write(self) -> None:
        body = self._lease.manifest()
        try:
            await self._session.merge_patch(self._path, body)
        except ObjectNotFoundError:
            try:
                await self._session.create(self._path.rpartition("/")[0], body)
            except AlreadyExistsError:
                await self._session.merge_patch(self._path, body)

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
