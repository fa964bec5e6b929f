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
class WorkerLeaseVersion:
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


UnchangedSince = Mapping[WorkerLeaseVersion, float]
"""Leases as they are, and since when: monotonic seconds."""


def read_worker_lease(obj: JsonObject) -> WorkerLeaseVersion:
    """Read a coordination Lease."""
    meta = child(obj, "metadata")
    return WorkerLeaseVersion(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        version=text(meta, "resourceVersion"),
        duration=integer(child(obj, "spec"), "leaseDurationSeconds"),
    )


def track_unchanged(
    previous: UnchangedSince, listed: Iterable[WorkerLeaseVersion], now: float
) -> UnchangedSince:
    """Return since when each Lease there is has been as it is."""
    ours = (lease for lease in listed if lease.name.startswith(WORKER_LEASE_PREFIX))
    return {lease: previous.get(lease, now) for lease in ours}


def stale_leases(
    unchanged_since: UnchangedSince,
    busy_pods: AbstractSet[tuple[str, str]],
    timeout: float,
    now: float,
) -> list[WorkerLeaseVersion]:
    """Return the Leases that are to go; `busy_pods`: pods that hold jobs.

    A job's recovery needs to see who is the newest process of its pod, so jobs go first. A worker
    that announces itself seldom, and says so, is not silent in between.
    """
    return [
        lease
        for lease, since in unchanged_since.items()
        if now - since >= max(timeout, lease.duration) and lease.pod not in busy_pods
    ]
