"""Reads worker Leases: how a worker registers, and shows that it is alive.

Operator, gateway, clients and other workers all read them here. A Lease is written by a worker's
account, which may write anything: what cannot be read counts as absent.
"""

from dataclasses import dataclass

from asyncjob.json_text import loads
from asyncjob.json_types import (
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    opt_integer,
    text,
    texts,
)
from asyncjob.names import (
    POD_UID_ANNOTATION,
    QUEUE_LABEL,
    WORKER_ANNOTATION,
    WORKER_LEASE_PREFIX,
)


@dataclass(frozen=True, slots=True)
class WorkerLeaseView:
    """The content of a worker Lease; text is empty where it is absent."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    queue_label: str
    pod_uid: str
    worker: str
    """Identity of the worker process; empty once it has withdrawn."""

    renew_time: str
    duration_seconds: int | None
    """Seconds that the Lease lasts without a renewal."""

    registered_queue: str
    types: tuple[str, ...] | None
    """Handler types that the worker lists, None if it does not say."""

    slots: int
    shards: int
    """Into how many shards it divides jobs; 0 if it watches all of them."""

    draining: bool
    release: str
    """The version of the worker's software."""

    @property
    def pod(self) -> str:
        """Name of the worker's pod."""
        return pod_of_lease(self.name)

    @property
    def claiming_worker(self) -> str:
        """Identity of the worker process; empty if it claims no jobs."""
        return "" if self.draining else self.worker


def read_worker_lease(lease: JsonObject) -> WorkerLeaseView:
    """Read a worker Lease."""
    meta, spec = child(lease, "metadata"), child(lease, "spec")
    registration = _read_registration(meta)
    return WorkerLeaseView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        resource_version=text(meta, "resourceVersion"),
        queue_label=text(child(meta, "labels"), QUEUE_LABEL),
        pod_uid=text(child(meta, "annotations"), POD_UID_ANNOTATION),
        worker=text(spec, "holderIdentity"),
        renew_time=text(spec, "renewTime"),
        duration_seconds=opt_integer(spec, "leaseDurationSeconds"),
        registered_queue=text(registration, "queue"),
        types=tuple(texts(registration, "types")) if "types" in registration else None,
        slots=integer(registration, "slots"),
        shards=integer(registration, "shards"),
        draining=flag(registration, "draining"),
        release=text(registration, "version"),
    )


def pod_of_lease(lease: str) -> str:
    """Return the name of the pod that a worker Lease of this name is about."""
    return lease.removeprefix(WORKER_LEASE_PREFIX)


def _read_registration(meta: JsonObject) -> JsonObject:
    annotation = text(child(meta, "annotations"), WORKER_ANNOTATION)
    try:
        return as_object(loads(annotation))
    except ValueError:
        return {}
