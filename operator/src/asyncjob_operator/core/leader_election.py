"""Leader election by one Lease, judged by this replica's monotonic clock alone.

A leader counts from *sending* its last successful renewal and stops a safety margin before the
lease's duration is over. A candidate counts the full duration from when it first saw that renewal,
which cannot be earlier. So no wall clock matters, and no two replicas lead at once.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from asyncjob.json_types import Json, JsonObject, child, integer, text
from asyncjob.names import (
    CAPABILITIES_ANNOTATION,
    VERSION_TIMES_ANNOTATION,
    announce_capabilities,
)
from asyncjob_operator.core.now import to_epoch

SAFETY_MARGIN_SECONDS: Final = 1.0
"""Seconds that a leader stops acting before another may take its Lease over."""

NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class LeaderElectionRecord:
    """The Lease as it was read; `holder` is empty once it is released, `duration` in seconds."""

    holder: str
    version: str
    duration: float
    transitions: int
    version_times: str = ""
    """What the leader has noted, as `VersionTimes.text` returns it."""

    capabilities: str = ""
    """What a leader has announced that it can do, under its own name."""

    created_at: float = 0.0
    """When the API server created it, in epoch seconds."""


class ElectionStep(Enum):
    """What a candidate should do now."""

    CREATE = auto()
    TAKE = auto()
    RENEW = auto()
    WAIT = auto()


class ElectionCandidate:
    """One replica's view of the election; times are monotonic seconds."""

    def __init__(self, identity: str, duration: float) -> None:
        self.identity = identity
        self.duration = duration
        self.record: LeaderElectionRecord | None = None
        self._observed_at = 0.0
        self._leads_until = NEVER

    def observe(self, record: LeaderElectionRecord | None, now: float) -> None:
        """Record the Lease as a read has shown it, None if it does not exist."""
        if record is None or self.record is None or record.version != self.record.version:
            self._observed_at = now
        self.record = record
        if record is None or record.holder != self.identity:
            self._leads_until = NEVER

    def next_step(self, now: float) -> ElectionStep:
        """Return what to do, given the last observation."""
        if self.record is None:
            return ElectionStep.CREATE
        if self.record.holder == self.identity:
            return ElectionStep.RENEW
        free = not self.record.holder or now >= self._observed_at + self.record.duration
        return ElectionStep.TAKE if free else ElectionStep.WAIT

    def record_write(self, record: LeaderElectionRecord, sent_at: float, now: float) -> None:
        """Record the answer to a successful write that was sent at this time."""
        self.observe(record, now)
        self._leads_until = sent_at + self.duration - SAFETY_MARGIN_SECONDS

    def resign(self) -> None:
        """Stop leading at once."""
        self._leads_until = NEVER

    def leads(self, now: float) -> bool:
        """Return whether this replica may act."""
        return now < self._leads_until


def read_election_record(lease: JsonObject) -> LeaderElectionRecord:
    """Read a coordination Lease."""
    spec, metadata = child(lease, "spec"), child(lease, "metadata")
    return LeaderElectionRecord(
        holder=text(spec, "holderIdentity"),
        version=text(metadata, "resourceVersion"),
        duration=float(integer(spec, "leaseDurationSeconds", 10)),
        transitions=integer(spec, "leaseTransitions"),
        version_times=text(child(metadata, "annotations"), VERSION_TIMES_ANNOTATION),
        capabilities=text(child(metadata, "annotations"), CAPABILITIES_ANNOTATION),
        created_at=to_epoch(text(metadata, "creationTimestamp"), default=0.0),
    )


def election_lease_body(
    candidate: ElectionCandidate,
    name: str,
    holder: str,
    time: str,
    version_times: str,
    *,
    wakes_from_arrays: bool = True,
) -> JsonObject:
    """Return the Lease to create or, where one was seen, a merge-patch conditional on it.

    `version_times` is left out where the Lease has it already. `wakes_from_arrays` tells whether
    this replica may watch arrays, and so wakes jobs that wait for them.
    """
    record = candidate.record
    metadata: dict[str, Json] = {"name": name}
    spec: dict[str, Json] = {
        "holderIdentity": holder,
        "leaseDurationSeconds": max(1, int(candidate.duration)),
        "renewTime": time,
    }
    if record:
        metadata["resourceVersion"] = record.version
    annotations: dict[str, Json] = {}
    if version_times != (record.version_times if record else ""):
        annotations[VERSION_TIMES_ANNOTATION] = version_times
    capabilities = announce_capabilities(holder, arrays=wakes_from_arrays)
    if holder and (record is None or record.capabilities != capabilities):
        annotations[CAPABILITIES_ANNOTATION] = capabilities
    if annotations:
        metadata["annotations"] = annotations
    if record is None or (holder and holder != record.holder):
        spec["acquireTime"] = time
        spec["leaseTransitions"] = record.transitions + 1 if record else 0
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }
