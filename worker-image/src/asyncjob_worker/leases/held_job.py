"""A job whose lease this worker holds: the claim's answer, and the handler's reports.

Shared between the event loop, handler threads and the heartbeat thread. Whole values are replaced,
never changed in place, so that a reader sees the old or the new. Reports and stops come from any
thread: `progress()`, `checkpoint()` and `stop()` take a lock.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from asyncjob.app.context import JobParent, Stop
from asyncjob.deep_json import levels_read, may_be_cut
from asyncjob.json_types import Json, JsonObject, child, opt_text, text
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import StatusFields, truncate
from asyncjob.lifecycle.policy import BUILT_IN_POLICY, DEFAULT_CANCEL_GRACE_SECONDS, EffectivePolicy
from asyncjob.lifecycle.signals import readable_signals, signals_of
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import (
    PARENT_LABEL,
    PARENT_NAME_ANNOTATION,
    SCHEDULED_TIME_ANNOTATION,
    job_status_path,
)
from asyncjob_worker.clock import boottime

SAFETY_SECONDS: Final = 1.0
"""A handler is stopped this long before its lease can have expired."""

FENCED_SECONDS: Final = 0.5
"""How long a fenced handler may take to stop before it is killed, where it can be. Less than
`SAFETY_SECONDS`: it is gone before another worker can run the job."""

_STOP_RANK = {why: rank for rank, why in enumerate(Stop)}

log = structlog.get_logger()


def no_reaction() -> None:
    """React to no stop: nothing runs that could be stopped."""


@dataclass(frozen=True, slots=True)
class HandlerReport:
    """The handler's newest progress and checkpoint."""

    version: int = 0
    """Grows with each report; 0 means that there was none."""

    progress: JsonObject | None = None
    checkpoint: Json = None
    checkpoint_version: int = 0
    """The version that brought the checkpoint; 0 means that there was none."""


@dataclass(slots=True, eq=False)
class HeldJob:
    """One claimed job. Times are seconds of the lease clock.

    Compared and hashed by identity: for a moment one process may hold two claims of one job.
    """

    job: JobView
    spec: JsonObject
    status: JsonObject
    """The status that the claim was answered with."""

    started_at: float
    """When the claim was sent."""

    sent_at: float
    """When the claim or the last stored renewal was sent."""

    queue_cancel_grace: float = DEFAULT_CANCEL_GRACE_SECONDS
    deadline_at: float = math.inf
    """When the job's deadline passes, as far as the API server's clock was known at the claim."""

    renewals: int = 0
    """The number of renewals that the API server has, as far as is known."""

    unconfirmed_since: float | None = None
    """When the next renewal was first sent without getting an answer."""

    latest_report: HandlerReport = field(default_factory=HandlerReport)
    stored_version: int = 0
    """Version of the report that is stored."""

    stopped: Stop | None = None
    """Why the handler is to stop."""

    refusal: str = ""
    """Why the API server cannot take what the handler reports."""

    writing_outcome: bool = False
    """Whether the handler is over and its outcome is being written."""

    scheduled_time: str | None = None
    fenced_at: float | None = None
    unauthorized_since: float | None = None
    """Since when each read of the job was answered with 401."""

    parent: JobParent | None = None
    traceparent: str | None = None
    """The submitter's, or that of the attempt once it is traced."""

    metadata: JsonObject = field(default_factory=dict)
    """The metadata that the claim was answered with."""

    too_deep: bool = False
    """Whether the job is nested so deep that part of it was not read, other than of signals."""

    _on_stop: Callable[[], object] = no_reaction
    _kill: Callable[[], object] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def from_response(cls, response: JsonObject, sent_at: float) -> "HeldJob":
        """Return the job that a successful claim answered with."""
        spec, status = child(response, "spec"), child(response, "status")
        rest = {name: value for name, value in spec.items() if name != "signals"}
        signals = readable_signals(signals_of(spec), levels_read(response))
        metadata = child(response, "metadata")
        return cls(
            read_job(response),
            {**rest, "signals": signals} if signals else rest,
            status,
            started_at=sent_at,
            sent_at=sent_at,
            parent=job_parent(metadata),
            traceparent=opt_text(spec, "traceparent"),
            scheduled_time=opt_text(child(metadata, "annotations"), SCHEDULED_TIME_ANNOTATION),
            metadata=metadata,
            too_deep=may_be_cut(response, {"spec": rest, "status": status}),
        )

    @property
    def policy(self) -> EffectivePolicy:
        """The policy that the claim has stored in the job."""
        return self.job.effective or BUILT_IN_POLICY

    @property
    def claim(self) -> str:
        """The random ID of this claim."""
        return text(self.status, "claim")

    @property
    def status_path(self) -> str:
        """API path of the job's status."""
        return job_status_path(self.job.namespace, self.job.name)

    @property
    def lease_expires_at(self) -> float:
        """When the lease may have expired, counted from sending the last stored renewal."""
        return self.sent_at + self.policy.lease_duration_seconds

    @property
    def safe_until(self) -> float:
        """Until when the handler may run without another renewal."""
        return self.lease_expires_at - SAFETY_SECONDS

    @property
    def times_out_at(self) -> float:
        """When the attempt's execution timeout ends."""
        return self.started_at + self.policy.execution_timeout_seconds

    @property
    def ends_at(self) -> float:
        """When the attempt has to end: at its time limit, or the job's deadline if sooner."""
        return min(self.times_out_at, self.deadline_at)

    def set_deadline(self, server_time: Callable[[], float]) -> None:
        """Tell when the job's deadline passes, by what the API server's clock shows now."""
        if self.job.deadline is not None:
            left = parse_timestamp(self.job.deadline).timestamp() - server_time()
            self.deadline_at = boottime() + left

    def stop_at_end(self) -> None:
        """Stop the handler because it is `ends_at`, from any thread."""
        past = self.deadline_at <= self.times_out_at
        self.stop(Stop.PAST_DEADLINE if past else Stop.TIMED_OUT)

    @property
    def renewal_due_at(self) -> float:
        """When the next heartbeat is due: after a third of the lease."""
        return self.sent_at + self.policy.lease_duration_seconds / 3

    @property
    def cancel_grace(self) -> float:
        """How long a handler may take to stop after a cancel, in seconds."""
        own = self.job.cancel_grace_seconds
        return float(self.queue_cancel_grace if own is None else own)

    def stop(self, why: Stop) -> None:
        """Stop the handler, from any thread; of several reasons the highest rank in `Stop` wins."""
        with self._lock:
            if self.stopped is None or _STOP_RANK[why] > _STOP_RANK[self.stopped]:
                self.stopped = why
                if why is Stop.FENCED:
                    self.fenced_at = boottime()
        self._on_stop()

    @contextmanager
    def reacting(self, on_stop: Callable[[], object]) -> Iterator[None]:
        """Have this called meanwhile after each `stop`, in the thread that stops."""
        self._on_stop = on_stop
        try:
            yield
        finally:
            self._on_stop = no_reaction

    @contextmanager
    def killable(self, kill: Callable[[], object] | None) -> Iterator[None]:
        """Let `kill_handler` call this meanwhile; None if the handler cannot be killed."""
        self._kill = kill
        try:
            yield
        finally:
            self._kill = None

    @property
    def can_be_killed(self) -> bool:
        """Whether a handler runs that can be killed and has not been."""
        return self._kill is not None

    def kill_handler(self) -> bool:
        """Kill the handler, from any thread; return False if it has ended or been killed before."""
        kill, self._kill = self._kill, None
        if kill is None:
            return False
        kill()
        return True

    def fence_if_expired(self) -> None:
        """Stop it if its lease may have expired: a loop, a thread or the machine stood still."""
        if self.stopped is not Stop.FENCED and boottime() > self.safe_until:
            log.error("lease lost: no heartbeat was stored in time", job=self.job.name)
            self.stop(Stop.FENCED)

    def stop_refused(self, message: str) -> None:
        """Stop the handler because the API server can never store what it reports."""
        self.refusal = message
        self.stop(Stop.REFUSED)

    def progress(self, percent: int, message: str | None) -> None:
        """Record the handler's progress, to be sent with the next heartbeat."""
        value: StatusFields = {"percent": percent}
        if message:
            value["message"] = truncate(message)
        with self._lock:
            old = self.latest_report
            self.latest_report = replace(old, version=old.version + 1, progress=value)

    def checkpoint(self, value: Json) -> None:
        """Record the handler's checkpoint, to be sent with the next heartbeat."""
        with self._lock:
            version = self.latest_report.version + 1
            self.latest_report = HandlerReport(
                version, self.latest_report.progress, value, checkpoint_version=version
            )

    def unsaved_report(self) -> HandlerReport | None:
        """Return the part of the newest report that is not stored yet."""
        report, stored = self.latest_report, self.stored_version
        if report.version <= stored:
            return None
        if report.checkpoint_version > stored:
            return report
        return replace(report, checkpoint=None, checkpoint_version=0)


def job_parent(metadata: JsonObject) -> JobParent | None:
    """Return the job that submitted the one with this metadata, if one did."""
    uid = text(child(metadata, "labels"), PARENT_LABEL)
    if not uid:
        return None
    return JobParent(uid, opt_text(child(metadata, "annotations"), PARENT_NAME_ANNOTATION))
