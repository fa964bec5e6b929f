"""A job that this worker holds the lease of: the claim's answer, and the handler's reports.

Shared between the event loop, handler threads and the heartbeat thread. Each field has one writer;
whole values are replaced, never changed in place, so that a reader sees the old or the new.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from asyncjob.app.context import JobParent, Stop
from asyncjob.deep_json import TruncatedObject
from asyncjob.json_types import Json, JsonObject, child, opt_text, text
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import StatusFields, truncate
from asyncjob.lifecycle.policy import BUILT_IN_POLICY, DEFAULT_CANCEL_GRACE_SECONDS, EffectivePolicy
from asyncjob.names import (
    PARENT_LABEL,
    PARENT_NAME_ANNOTATION,
    SCHEDULED_TIME_ANNOTATION,
    job_status_path,
)
from asyncjob_worker.clock import lease_seconds

SAFETY_SECONDS: Final = 1.0
"""A handler is stopped so long before its lease can have ended."""

FENCED_SECONDS: Final = 0.5
"""What is left to a handler that can be killed once another worker may run its job: less than the
time between losing the lease here (`SAFETY_SECONDS`) and its end."""

_STOP_RANK = {why: rank for rank, why in enumerate(Stop)}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HandlerReport:
    """The newest report of the handler. `version` grows with each; 0 means no such report yet."""

    version: int = 0
    progress: JsonObject | None = None
    checkpoint: Json = None
    checkpoint_version: int = 0


@dataclass(slots=True, eq=False)
class HeldJob:
    """One claimed job. Times are seconds of the lease clock.

    Compared and registered by identity: for a moment one process may hold two claims of one job.

    `renewals` is the number the API server has, as far as is known; `unconfirmed_since` is when the
    next was first sent without an answer. While `writing_outcome` the handler is over and its
    outcome is being written. `traceparent` is the submitter's, or that of the attempt once it is
    traced. `too_deep`: part of the job could not be read. `on_fenced` kills the handler, where that
    can be done, from any thread. `unauthorized_since`: since then each look at the job was answered
    with 401.
    """

    job: JobView
    spec: JsonObject
    status: JsonObject
    started_at: float
    sent_at: float
    queue_cancel_grace: float = DEFAULT_CANCEL_GRACE_SECONDS
    renewals: int = 0
    unconfirmed_since: float | None = None
    latest_report: HandlerReport = field(default_factory=HandlerReport)
    stored_version: int = 0
    stopped: Stop | None = None
    refusal: str = ""
    writing_outcome: bool = False
    scheduled_time: str | None = None
    on_stop: Callable[[], object] | None = None
    on_fenced: Callable[[], object] | None = None
    fenced_at: float | None = None
    unauthorized_since: float | None = None
    parent: JobParent | None = None
    traceparent: str | None = None
    too_deep: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def from_response(cls, response: JsonObject, sent_at: float) -> "HeldJob":
        """Return the job that a successful claim answered with."""
        spec, status = child(response, "spec"), child(response, "status")
        metadata = child(response, "metadata")
        return cls(
            read_job(response),
            spec,
            status,
            started_at=sent_at,
            sent_at=sent_at,
            parent=job_parent(metadata),
            traceparent=opt_text(spec, "traceparent"),
            scheduled_time=opt_text(child(metadata, "annotations"), SCHEDULED_TIME_ANNOTATION),
            too_deep=isinstance(response, TruncatedObject),
        )

    @property
    def policy(self) -> EffectivePolicy:
        """The policy in force."""
        return self.job.effective or BUILT_IN_POLICY

    @property
    def claim(self) -> str:
        """The random id of our claim."""
        return text(self.status, "claim")

    @property
    def status_path(self) -> str:
        """API path of the job's status."""
        return job_status_path(self.job.namespace, self.job.name)

    @property
    def lease_expires_at(self) -> float:
        """When the lease may have ended, counted from sending the last successful renewal."""
        return self.sent_at + self.policy.lease_duration_seconds

    @property
    def safe_until(self) -> float:
        """Until when the handler may run for sure, without another renewal."""
        return self.lease_expires_at - SAFETY_SECONDS

    @property
    def times_out_at(self) -> float:
        """When the attempt has used up its execution timeout."""
        return self.started_at + self.policy.execution_timeout_seconds

    @property
    def renewal_due_at(self) -> float:
        """When the next heartbeat is due: a third into the lease."""
        return self.sent_at + self.policy.lease_duration_seconds / 3

    @property
    def cancel_grace(self) -> float:
        """How long a handler may take to stop after a cancel, in seconds."""
        own = self.job.cancel_grace_seconds
        return float(self.queue_cancel_grace if own is None else own)

    def stop(self, why: Stop) -> None:
        """Tell the handler to stop; of several reasons the highest counts."""
        with self._lock:
            if self.stopped is None or _STOP_RANK[why] > _STOP_RANK[self.stopped]:
                self.stopped = why
                if why is Stop.FENCED:
                    self.fenced_at = lease_seconds()
        if (tell := self.on_stop) is not None:
            tell()

    def fence_if_expired(self) -> None:
        """Stop it if its lease may have ended: the loop or the machine may have stood still."""
        if self.stopped is not Stop.FENCED and lease_seconds() > self.safe_until:
            log.error("lease lost before the handler began", job=self.job.name)
            self.stop(Stop.FENCED)

    def stop_refused(self, message: str) -> None:
        """Stop the handler, because the store can never take what it reports."""
        self.refusal = message
        self.stop(Stop.REFUSED)

    def progress(self, percent: int, message: str | None) -> None:
        """Take the handler's progress."""
        value: StatusFields = {"percent": percent}
        if message:
            value["message"] = truncate(message)
        with self._lock:
            old = self.latest_report
            self.latest_report = replace(old, version=old.version + 1, progress=value)

    def checkpoint(self, value: Json) -> None:
        """Take the handler's checkpoint."""
        with self._lock:
            new = self.latest_report.version + 1
            self.latest_report = HandlerReport(
                new, self.latest_report.progress, value, checkpoint_version=new
            )

    def unsaved_report(self) -> HandlerReport | None:
        """Return what of the newest report is not stored yet."""
        draft, saved = self.latest_report, self.stored_version
        if draft.version <= saved:
            return None
        if draft.checkpoint_version > saved:
            return draft
        return replace(draft, checkpoint=None, checkpoint_version=0)


def job_parent(metadata: JsonObject) -> JobParent | None:
    """Return the job that submitted the one with this metadata, if one did."""
    uid = text(child(metadata, "labels"), PARENT_LABEL)
    if not uid:
        return None
    return JobParent(uid, opt_text(child(metadata, "annotations"), PARENT_NAME_ANNOTATION))
