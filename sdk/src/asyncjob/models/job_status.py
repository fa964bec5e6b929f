"""The status of an AsyncJob: written by its worker and the operator, read by everyone."""

from typing import Annotated

from pydantic import Field

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import Backoff
from asyncjob.lifecycle.step_records import MAX_STEP_KEY_LENGTH, MAX_STEPS
from asyncjob.lifecycle.waits import MAX_CHILDREN_NAMED, MAX_WAITING
from asyncjob.models.base import (
    CategoryList,
    CategoryName,
    Count,
    CountFromZero,
    DelaySeconds,
    FreeJson,
    Model,
    Timestamp,
    Uid,
)

WorkerIdentity = Annotated[str, Field(max_length=320)]
StatusMessage = Annotated[str, Field(max_length=1024)]


class Lease(Model):
    """The worker that holds the running job, and when its hold expires unless renewed."""

    holder: Annotated[str, Field(max_length=253)]
    """Name of the worker's pod."""

    holder_uid: Annotated[Uid, Field(alias="holderUID")]
    """UID of the worker's pod."""

    worker: WorkerIdentity
    """Identity of this start of the worker process."""

    acquire_time: Timestamp
    """When the job was claimed."""

    renewals: Count = 0
    """Heartbeats since the claim."""

    renew_time: Timestamp
    """Last heartbeat, by the worker's clock."""

    duration_seconds: Annotated[int, Field(ge=5, le=600)]
    """The lease expires after this many seconds without a heartbeat."""


class Effective(Model):
    """The policy of the current or last attempt: of the job, else the queue, else the handler."""

    max_retries: Annotated[int, Field(ge=0, le=100_000)]
    """Retries after the first attempt."""

    backoff: Backoff
    """How the delay grows from retry to retry."""

    initial_delay_seconds: DelaySeconds
    """Delay before the first retry, in seconds."""

    max_delay_seconds: DelaySeconds
    """Upper bound of the delay, in seconds."""

    jitter: Annotated[float, Field(ge=0, le=1)]
    """Spread of the delay, 0 to 1."""

    retry_on: CategoryList
    """Categories retried; empty means all."""

    no_retry_on: CategoryList
    """Categories never retried."""

    max_crashes: Annotated[int, Field(ge=0, le=1000)]
    """Crashes after which the job is tried again; one more makes it a dead letter."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)]
    """Time limit of one attempt, in seconds."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)]
    """Duration of the lease, in seconds."""


class Progress(Model):
    """Progress as reported by the handler."""

    percent: Annotated[int, Field(ge=0, le=100)] = 0
    """0 to 100. Set to 100 on success, kept on failure."""

    message: StatusMessage | None = None
    """What the handler is doing, as free text."""


class JobError(Model):
    """The last failure."""

    type: Annotated[str, Field(max_length=256)]
    """Type of the exception, or the reason of the crash."""

    category: CategoryName
    """Category that retryOn and noRetryOn are matched against."""

    message: Annotated[str, Field(max_length=4096)]
    """Message of the exception or crash."""


class ResultReference(Model):
    """Where a result is stored that was too large for the job itself."""

    uri: Annotated[str, Field(max_length=2048)]
    """Address of the result."""

    size_bytes: Annotated[int, Field(ge=0)]
    """Size of the result, in bytes."""

    sha256: Annotated[str, Field(max_length=64)]
    """SHA-256 digest of the result, in hexadecimal."""


class StepRecord(Model):
    """A step of the handler that is done: no later attempt takes it again."""

    start_time: Timestamp
    """When the step was begun, by the worker's clock."""

    completion_time: Timestamp
    """When its result was stored, by the worker's clock."""

    attempt: Count
    """Number of the attempt that took the step."""

    size_bytes: Annotated[int, Field(ge=0)]
    """Size of the result as JSON, in bytes."""

    result: FreeJson | None = None
    """Result of the step: any JSON."""

    result_ref: ResultReference | None = None
    """Where the result is stored if it was too large for the job."""


WaitKindName = Annotated[str, Field(max_length=32)]
"""Sleep, Signal or Children. Open, so that an older reader takes what a newer worker waits for."""


class WaitRecord(Model):
    """A wait of the handler that is longer than it may hold its slot for."""

    kind: WaitKindName
    """What is waited for: Sleep, Signal or Children."""

    until: Timestamp
    """When it is over, by the API server's clock."""

    over: bool | None = None
    """True once its time was found over; a signal is refused from then on."""


class AwaitedChild(Model):
    """A child job, or an array, that a parked job waits for."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the child."""

    uid: Uid
    """UID of the child: another job of that name is not waited for."""

    kind: Annotated[str, Field(max_length=63)] | None = None
    """AsyncJob or AsyncArray. Default: AsyncJob."""


class Waiting(Model):
    """One thing that a parked job waits for."""

    kind: WaitKindName
    """What is waited for: Sleep, Signal or Children."""

    key: Annotated[str, Field(max_length=MAX_STEP_KEY_LENGTH)]
    """Key that the handler gave the wait: of a signal, its name; of children, which they are."""

    until: Timestamp | None = None
    """When it is over, by the API server's clock."""

    children: Annotated[list[AwaitedChild], Field(max_length=MAX_CHILDREN_NAMED)] | None = None
    """The children that have to finish, if it is for these; of more, the first."""

    payload_schema: FreeJson | None = None
    """JSON schema of the payload, if it is for a signal: what the handler takes. Left out if
    it has more than 4096 bytes, or the handler takes any JSON."""


class HistoryEntry(Model):
    """One change of phase."""

    time: Timestamp
    """When the phase changed."""

    phase: Phase
    """The new phase."""

    attempt: Count = 0
    """Number of attempts up to then."""

    reason: Reason | None = None
    """Reason of the change."""

    message: Annotated[str, Field(max_length=256)] | None = None
    """Explanation of the reason."""

    worker: WorkerIdentity | None = None
    """Worker of the attempt that this change ended."""

    start_time: Timestamp | None = None
    """When the attempt that this change ended was started."""


class Condition(Model):
    """A standard condition, e.g. for `kubectl wait --for=condition=Complete`."""

    type: Annotated[str, Field(max_length=64)]
    """Complete, Failed or Cancelled for a job, Drained for a queue."""

    status: Annotated[str, Field(max_length=8)]
    """True or False."""

    reason: Annotated[str, Field(max_length=64)] | None = None
    """Machine-readable reason."""

    message: StatusMessage | None = None
    """Human-readable message."""

    last_transition_time: Timestamp
    """When the condition last changed its status."""


class AsyncJobStatus(Model):
    """Observed state of the job."""

    phase: Phase = Phase.QUEUED
    """Phase of the job's life cycle."""

    reason: Reason | None = None
    """Reason of the current phase."""

    message: StatusMessage | None = None
    """Explanation of the reason."""

    attempt: Count = 0
    """Number of claims so far. Together with the UID a fencing token for handlers."""

    claim: Uid | None = None
    """Random id of the current or last claim."""

    retries: CountFromZero = 0
    """Retries after failures, since creation or the last redrive. Absent: 0."""

    crashes: CountFromZero = 0
    """Attempts whose worker or process died, since creation or the last redrive. Absent: 0."""

    releases: CountFromZero = 0
    """Attempts released unfinished, since creation or the last redrive. Absent: 0."""

    parks: CountFromZero = 0
    """Times the job has waited without a slot, since creation or the last redrive. Absent: 0."""

    redrives: CountFromZero = 0
    """The last value of spec.redrive acted on. Absent: 0."""

    reruns: CountFromZero = 0
    """The last value of spec.rerun acted on. Absent: 0."""

    next_attempt_time: Timestamp | None = None
    """Approximate time of the next attempt."""

    retry_delay_seconds: DelaySeconds | None = None
    """Delay before the next attempt, in seconds, counted from when the operator observes it."""

    admitted: bool | None = None
    """True once the operator has admitted a job that its spec or queue holds back from claims."""

    lease: Lease | None = None
    """The worker that holds the running job."""

    effective: Effective | None = None
    """The policy of the current or last attempt, written by the claim."""

    first_start_time: Timestamp | None = None
    """When the first attempt started."""

    start_time: Timestamp | None = None
    """When the current or last attempt started."""

    completion_time: Timestamp | None = None
    """When the job finished."""

    duration_seconds: DelaySeconds | None = None
    """From the first start to completion, waits between attempts included, in seconds."""

    last_transition_time: Timestamp | None = None
    """When the phase last changed."""

    last_update_time: Timestamp | None = None
    """When the status was last updated, including by heartbeats and progress."""

    progress: Progress | None = None
    """Progress as reported by the handler."""

    checkpoint: FreeJson | None = None
    """State that the handler saved to resume from: any JSON, replaced as a whole."""

    steps: Annotated[dict[str, StepRecord], Field(max_length=MAX_STEPS)] | None = None
    """Steps of the handler that are done, by key. They are only added, and never changed."""

    waits: Annotated[dict[str, WaitRecord], Field(max_length=MAX_STEPS)] | None = None
    """Waits of the handler, by key. They are only added, and marked once they are over."""

    waiting: Annotated[list[Waiting], Field(max_length=MAX_WAITING)] | None = None
    """What the job is parked for; any that is over wakes it. Absent unless it is parked."""

    result: FreeJson | None = None
    """Return value of the handler: any JSON."""

    result_ref: ResultReference | None = None
    """Where the result is stored if it was too large for the status."""

    error: JobError | None = None
    """The last failure."""

    history: Annotated[list[HistoryEntry], Field(max_length=20)] | None = None
    """The latest 20 changes of phase, oldest first."""

    history_omitted: Count | None = None
    """Number of older changes that are no longer in history."""

    conditions: Annotated[list[Condition], Field(max_length=8)] | None = None
    """Complete, Failed, Cancelled."""
