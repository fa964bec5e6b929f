"""What a worker says of itself in a Lease of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from asyncjob.announcement import read_registration
from asyncjob.json_types import Json, JsonObject, child, flag, text
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.names import (
    COMPONENT_LABEL,
    POD_UID_ANNOTATION,
    QUEUE_LABEL,
    WORKER_ANNOTATION,
    WORKER_COMPONENT,
    WORKER_LEASE_PREFIX,
)

LIVE_RENEWAL_INTERVALS = 3
"""A worker that misses so many announcements in a row no longer counts."""


@dataclass(frozen=True, slots=True)
class WorkerLease:
    """Identity, queue, slots and handler types of one start of a worker process."""

    holder: LeaseHolder
    queue: str
    slots: int
    types: Sequence[str]
    interval: float
    draining: bool = False
    """Claims nothing more, but what it holds is still its own."""

    def manifest(self) -> JsonObject:
        """Return the Lease, renewed now; the same body creates it and patches it.

        The Lease goes with its pod.
        """
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        about: dict[str, Json] = {
            "queue": self.queue,
            "slots": self.slots,
            "types": list(self.types),
        }
        if self.draining:
            about["draining"] = True
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": WORKER_LEASE_PREFIX + self.holder.pod,
                "labels": {COMPONENT_LABEL: WORKER_COMPONENT, QUEUE_LABEL: self.queue},
                "annotations": {
                    POD_UID_ANNOTATION: self.holder.pod_uid,
                    WORKER_ANNOTATION: orjson.dumps(about).decode(),
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


def claiming_worker(lease: JsonObject) -> str:
    """Return the identity of the worker that a Lease announces; empty if it claims no jobs."""
    return (
        ""
        if flag(read_registration(lease), "draining")
        else text(child(lease, "spec"), "holderIdentity")
    )


def leases_path(namespace: str) -> str:
    """Return the API path of a namespace's Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def lease_path(namespace: str, pod: str) -> str:
    """Return the API path of a pod's worker Lease."""
    return f"{leases_path(namespace)}/{WORKER_LEASE_PREFIX}{pod}"
