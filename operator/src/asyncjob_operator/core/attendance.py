"""Which workers have gone silent: their Leases have not changed for too long, and go.

Counted on this replica's own monotonic clock from when it first saw a Lease as it is, so that
nobody's wall clock matters.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from asyncjob.json_types import JsonObject, child, integer, text
from asyncjob.names import WORKER_LEASE_PREFIX


@dataclass(frozen=True, slots=True)
class WorkerLease:
    """A worker's Lease in one version; `duration` is what it says itself, in seconds."""

    namespace: str
    name: str
    uid: str
    version: str
    duration: int

    @property
    def pod(self) -> tuple[str, str]:
        """Return namespace and name of the pod it is about."""
        return self.namespace, self.name.removeprefix(WORKER_LEASE_PREFIX)


Attendance = Mapping[WorkerLease, float]
"""Leases as they are, and since when: monotonic seconds."""


def read_worker_lease(obj: JsonObject) -> WorkerLease:
    """Read a coordination Lease."""
    meta = child(obj, "metadata")
    return WorkerLease(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        version=text(meta, "resourceVersion"),
        duration=integer(child(obj, "spec"), "leaseDurationSeconds"),
    )


def attend(before: Attendance, listed: Iterable[WorkerLease], now: float) -> Attendance:
    """Return since when each Lease there is has been as it is."""
    ours = (lease for lease in listed if lease.name.startswith(WORKER_LEASE_PREFIX))
    return {lease: before.get(lease, now) for lease in ours}


def silent_workers(
    attendance: Attendance, busy: AbstractSet[tuple[str, str]], timeout: float, now: float
) -> list[WorkerLease]:
    """Return the Leases that are to go; `busy`: pods that hold jobs.

    A job's recovery needs to see who is the newest process of its pod, so jobs go first. A worker
    that announces itself seldom, and says so, is not silent in between.
    """
    return [
        lease
        for lease, since in attendance.items()
        if now - since >= max(timeout, lease.duration) and lease.pod not in busy
    ]
