"""A job this worker holds: what the claim said, and what the handler has reported since.

Shared between the event loop, handler threads and the heartbeat thread. Each field has one writer;
whole values are replaced, never changed in place, so that a reader sees the old or the new.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.move import Fields
from asyncjob.lifecycle.policy import BUILT_IN, EffectivePolicy
from asyncjob.lifecycle.view import JobView, read_job
from asyncjob.names import job_path


class Stop(StrEnum):
    """Why a running handler is told to stop; a later one in this list outranks an earlier one."""

    DRAINING = "draining"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    FENCED = "fenced"


_RANK = {why: rank for rank, why in enumerate(Stop)}


@dataclass(frozen=True, slots=True)
class Draft:
    """The newest report of the handler; `version` grows with each."""

    version: int = 0
    progress: JsonObject | None = None
    checkpoint: Json = None
    has_checkpoint: bool = False

    def fields(self) -> Fields:
        """Return the status fields that carry it."""
        fields: Fields = {}
        if self.progress is not None:
            fields["progress"] = self.progress
        if self.has_checkpoint:
            fields["checkpoint"] = self.checkpoint
        return fields


@dataclass(slots=True)
class HeldJob:
    """One claimed job. Times are seconds of the lease clock."""

    job: JobView
    spec: JsonObject
    status: JsonObject
    started_at: float
    sent_at: float
    renewals: int = 0
    draft: Draft = field(default_factory=Draft)
    saved_version: int = 0
    stopped: Stop | None = None
    on_stop: Callable[[], object] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def from_answer(cls, answer: JsonObject, sent_at: float) -> "HeldJob":
        """Return the job that a successful claim answered with."""
        spec, status = child(answer, "spec"), child(answer, "status")
        return cls(read_job(answer), spec, status, started_at=sent_at, sent_at=sent_at)

    @property
    def policy(self) -> EffectivePolicy:
        """The policy in force."""
        return self.job.effective or BUILT_IN

    @property
    def status_path(self) -> str:
        """API path of the job's status."""
        return f"{job_path(self.job.namespace, self.job.name)}/status"

    @property
    def ends_at(self) -> float:
        """When the lease may have ended, counted from sending the last successful renewal."""
        return self.sent_at + self.policy.lease_duration_seconds

    @property
    def times_out_at(self) -> float:
        """When the attempt has used up its execution timeout."""
        return self.started_at + self.policy.execution_timeout_seconds

    @property
    def renew_at(self) -> float:
        """When the next heartbeat is due: a third into the lease."""
        return self.sent_at + self.policy.lease_duration_seconds / 3

    def stop(self, why: Stop) -> None:
        """Tell the handler to stop; of several reasons the highest counts."""
        with self._lock:
            if self.stopped is None or _RANK[why] > _RANK[self.stopped]:
                self.stopped = why
        if self.on_stop:
            self.on_stop()

    def progress(self, percent: int, message: str | None) -> None:
        """Take the handler's progress."""
        value: Fields = {"percent": percent}
        if message:
            value["message"] = message[:1024]
        with self._lock:
            old = self.draft
            self.draft = Draft(old.version + 1, value, old.checkpoint, old.has_checkpoint)

    def checkpoint(self, value: Json) -> None:
        """Take the handler's checkpoint."""
        with self._lock:
            self.draft = Draft(self.draft.version + 1, self.draft.progress, value, True)  # noqa: FBT003

    def unsaved(self) -> Draft | None:
        """Return the newest report if it is not stored yet."""
        draft = self.draft
        return draft if draft.version > self.saved_version else None

    def fence(self) -> list[JsonObject]:
        """Return the operations that make a patch fail once the job is another claim's."""
        claim, attempt = text(self.status, "claim"), self.job.attempt
        return [
            {"op": "replace", "path": "/status/claim", "value": claim},
            {"op": "replace", "path": "/status/attempt", "value": attempt},
        ]
