"""`JobView`: what a decision needs to know of a job, read from an object of the API server.

It holds no payload, result or history: a cache of 50,000 of these must stay small.
"""

from dataclasses import dataclass

from asyncjob.json_types import (
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    items,
    opt_integer,
    opt_number,
    opt_text,
    text,
)
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase, Reason
from asyncjob.lifecycle.policy import EffectivePolicy, read_effective_policy
from asyncjob.lifecycle.timestamps import add_seconds
from asyncjob.lifecycle.waits import WaitView, read_waiting
from asyncjob.names import ARRAY_KIND, DEFAULT_QUEUE, JOB_KIND, PARENT_LABEL


@dataclass(frozen=True, slots=True)
class LeaseView:
    """Who holds the job: pod name and UID, and the identity of that worker process."""

    holder: str
    holder_uid: str
    worker: str
    renewals: int
    duration_seconds: int


@dataclass(frozen=True, slots=True)
class ControlFields:
    """The parts of `spec` that a user may change later."""

    cancel: bool = False
    suspend: bool = False
    redrive: int = 0
    rerun: int = 0
    cancel_cascade: bool = False


@dataclass(frozen=True, slots=True)
class DependencyView:
    """What has to finish first: with success unless `any_outcome`, its `children` included.

    It is a job, or an array by its `kind`.
    """

    name: str
    any_outcome: bool = False
    children: bool = False
    kind: str = JOB_KIND

    @property
    def called(self) -> str:
        """Return what people call it: its name, behind the word array if it is one."""
        return called(self.kind, self.name)


def called(kind: str, name: str) -> str:
    """Return what people call a job or an array: its name, behind the word array if it is one."""
    return f"array {name}" if kind == ARRAY_KIND else name


@dataclass(frozen=True, slots=True)
class Gates:
    """What of `spec` may keep a job from being queued, or from being claimed once it is."""

    not_before: str | None = None
    not_after: str | None = None
    depends_on: tuple[DependencyView, ...] = ()
    deduplication_id: str | None = None
    concurrency_key: str | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as decisions see it. Times are RFC 3339 text as stored, delays are seconds.

    `parent_uid` is the UID of the job it is a child of. `pending_message` is what a Pending job's
    message says. `completion_time` is by the clock of the part that finished the job, and
    whatever it says; `completion_write_time` is by the API server's, in whole seconds, where it is
    known.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    creation_timestamp: str
    deleting: bool
    parent_uid: str
    type: str
    queue: str
    phase: Phase
    reason: str
    pending_message: str
    attempt: int
    claim: str
    retries: int
    crashes: int
    releases: int
    redrives: int
    reruns: int
    admitted: bool
    control: ControlFields
    gates: Gates
    lease: LeaseView | None
    effective: EffectivePolicy | None
    queue_timeout_seconds: int | None
    cancel_grace_seconds: int | None
    ttl_seconds_after_finished: int | None
    has_dedup_key: bool
    start_time: str | None
    first_start_time: str | None
    completion_time: str | None
    completion_write_time: str | None
    last_transition_time: str | None
    next_attempt_time: str | None
    retry_delay_seconds: float | None
    priority: int
    parks: int = 0
    waiting: tuple[WaitView, ...] = ()
    """What it is parked for; empty unless it is parked."""

    deadline_seconds: int | None = None

    @property
    def deadline(self) -> str | None:
        """Return when the job is cancelled if it has not finished, RFC 3339; None: never.

        It counts from the creation, and so goes on through parks and redrives.
        """
        return deadline_of(self.creation_timestamp, self.deadline_seconds)

    @property
    def resumed(self) -> bool:
        """Return whether it is queued to go on after a wait: no start that a rate limit counts.

        Also if it was held meanwhile, by `suspend` or for its queue; a redrive starts it.
        """
        queued = self.phase is Phase.QUEUED
        return queued and (
            self.reason == Reason.WAIT_OVER
            or (self.reason == Reason.GATE_OPENED and self.parks > 0)
        )

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Return whether nothing happens to the job without a person."""
        return self.phase in FINISHED_PHASES

    @property
    def cascades_cancel(self) -> bool:
        """Return whether what hangs on the job is cancelled with it."""
        control = self.control
        return control.cancel and control.cancel_cascade and self.phase is not Phase.SUCCEEDED

    @property
    def gated(self) -> bool:
        """Return whether workers leave the job alone until it has `status.admitted`.

        With `notBefore`, `notAfter`, `dependsOn` or `deduplicationId` the API server refuses a
        claim without it (rule `gate.admitted`). A suspended or cancelled job it does not let be
        claimed in any case (`gate.suspend`, `gate.cancel`); counting these as gated spares the
        worker a claim that would be refused.
        """
        gates = self.gates
        return bool(
            gates.not_before
            or gates.not_after
            or gates.depends_on
            or gates.deduplication_id
            or self.control.suspend
            or self.control.cancel
        )


def deadline_of(created: str, seconds: int | None) -> str | None:
    """Return when a job created then is cancelled if it has not finished; None: never."""
    if seconds is None:
        return None
    try:
        return add_seconds(created, seconds)
    except (ValueError, OverflowError):  # a creation that tells no time, or an end after 9999
        return None


def too_late_to_redrive(name: str, deadline: str) -> str:
    """Return what is said of a dead letter that is not redriven because its deadline has passed."""
    return f"job {name} is not redriven: its deadline passed at {deadline}; submit a new job"


def read_job(obj: JsonObject) -> JobView:
    """Read an AsyncJob; raises ValueError on a phase this version does not know."""
    meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
    phase = Phase(text(status, "phase", Phase.QUEUED))
    return JobView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        resource_version=text(meta, "resourceVersion"),
        creation_timestamp=text(meta, "creationTimestamp"),
        deleting="deletionTimestamp" in meta,
        parent_uid=text(child(meta, "labels"), PARENT_LABEL),
        type=text(spec, "type"),
        queue=text(spec, "queue", DEFAULT_QUEUE),
        phase=phase,
        reason=text(status, "reason"),
        pending_message=text(status, "message") if phase is Phase.PENDING else "",
        attempt=integer(status, "attempt"),
        claim=text(status, "claim"),
        retries=integer(status, "retries"),
        crashes=integer(status, "crashes"),
        releases=integer(status, "releases"),
        redrives=integer(status, "redrives"),
        reruns=integer(status, "reruns"),
        admitted=flag(status, "admitted"),
        control=_read_control_fields(spec),
        gates=_read_gates(spec),
        lease=_read_lease(status),
        effective=read_effective_policy(status) if "effective" in status else None,
        queue_timeout_seconds=opt_integer(spec, "queueTimeoutSeconds"),
        cancel_grace_seconds=opt_integer(spec, "cancelGraceSeconds"),
        ttl_seconds_after_finished=opt_integer(spec, "ttlSecondsAfterFinished"),
        has_dedup_key="idempotencyKey" in spec or "deduplicationId" in spec,
        start_time=opt_text(status, "startTime"),
        first_start_time=opt_text(status, "firstStartTime"),
        completion_time=opt_text(status, "completionTime"),
        completion_write_time=_read_completion_write_time(meta)
        if "completionTime" in status
        else None,
        last_transition_time=opt_text(status, "lastTransitionTime"),
        next_attempt_time=opt_text(status, "nextAttemptTime"),
        retry_delay_seconds=opt_number(status, "retryDelaySeconds"),
        priority=integer(spec, "priority"),
        parks=integer(status, "parks") if "parks" in status else 0,
        waiting=read_waiting(status, child(spec, "signals")) if "waiting" in status else (),
        deadline_seconds=opt_integer(spec, "deadlineSeconds")
        if "deadlineSeconds" in spec
        else None,
    )


def _read_completion_write_time(meta: JsonObject) -> str | None:
    """Return when the API server last took a write from who has set the finished job's status.

    Whatever managedFields a writer of the status sends along: the API server makes it the owner as
    of now. A status is owned whole, but where an earlier version's CRD was in force. Who may patch
    the job itself may also forge the times.
    """
    entries = map(as_object, items(meta, "managedFields"))
    times = [text(entry, "time") for entry in entries if _owns_completion(entry)]
    return max(filter(None, times), default=None)


def _owns_completion(entry: JsonObject) -> bool:
    fields = child(entry, "fieldsV1")
    if text(entry, "subresource") != "status" or "f:status" not in fields:
        return False
    owned = child(fields, "f:status")
    return not owned or "f:completionTime" in owned


_NO_CONTROL_FIELDS = ControlFields()
_NO_GATES = Gates()
_GATE_FIELDS = frozenset(
    ("notBefore", "notAfter", "dependsOn", "deduplicationId", "concurrencyKey")
)


def _read_control_fields(spec: JsonObject) -> ControlFields:
    control = ControlFields(
        cancel=flag(spec, "cancel"),
        suspend=flag(spec, "suspend"),
        redrive=integer(spec, "redrive"),
        rerun=integer(spec, "rerun"),
        cancel_cascade=flag(spec, "cancelCascade"),
    )
    return _NO_CONTROL_FIELDS if control == _NO_CONTROL_FIELDS else control


def _read_gates(spec: JsonObject) -> Gates:
    if _GATE_FIELDS.isdisjoint(spec):
        return _NO_GATES
    return Gates(
        not_before=opt_text(spec, "notBefore"),
        not_after=opt_text(spec, "notAfter"),
        depends_on=read_dependencies(spec),
        deduplication_id=opt_text(spec, "deduplicationId"),
        concurrency_key=opt_text(spec, "concurrencyKey"),
    )


def read_dependencies(spec: JsonObject) -> tuple[DependencyView, ...]:
    """Return what a job or an array depends on, by its spec."""
    return tuple(map(_read_dependency, map(as_object, items(spec, "dependsOn"))))


def _read_dependency(entry: JsonObject) -> DependencyView:
    array = text(entry, "array")
    return DependencyView(
        name=array or text(entry, "name"),
        any_outcome=text(entry, "outcome") == "Any",
        children=flag(entry, "children"),
        kind=ARRAY_KIND if array else JOB_KIND,
    )


def _read_lease(status: JsonObject) -> LeaseView | None:
    lease = child(status, "lease")
    if not lease:
        return None
    return LeaseView(
        holder=text(lease, "holder"),
        holder_uid=text(lease, "holderUID"),
        worker=text(lease, "worker"),
        renewals=integer(lease, "renewals"),
        duration_seconds=integer(lease, "durationSeconds", 60),
    )
