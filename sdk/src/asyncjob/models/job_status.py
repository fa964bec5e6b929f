"""The status of an AsyncJob: written by its worker and the operator, read by everyone."""

from typing import Annotated

from pydantic import Field

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import Backoff
from asyncjob.models.base import (
    CategoryList,
    CategoryName,
    Count,
    DelaySeconds,
    FreeJson,
    Model,
    Timestamp,
    Uid,
)

WorkerIdentity = Annotated[str, Field(max_length=320)]
StatusMessage = Annotated[str, Field(max_length=1024)]


class Lease(Model):
    """Who holds the running job, and until when unless renewed."""

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
    """The lease ends when no heartbeat comes for so long."""


class Effective(Model):
    """The policy in force for the current or last attempt: job over queue over handler."""

    max_retries: Annotated[int, Field(ge=0, le=100_000)]
    """Retries after the first attempt."""

    backoff: Backoff
    """How the delay grows."""

    initial_delay_seconds: DelaySeconds
    """Delay before the first retry, in seconds."""

    max_delay_seconds: DelaySeconds
    """Cap of the delay, in seconds."""

    jitter: Annotated[float, Field(ge=0, le=1)]
    """Spread of the delay, 0 to 1."""

    retry_on: CategoryList
    """Categories retried; empty means all."""

    no_retry_on: CategoryList
    """Categories never retried."""

    max_crashes: Annotated[int, Field(ge=0, le=1000)]
    """Crashes survived."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)]
    """Time limit of one attempt, in seconds."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)]
    """Duration of the lease, in seconds."""


class Progress(Model):
    """How far the handler has come."""

    percent: Annotated[int, Field(ge=0, le=100)] = 0
    """0 to 100; 100 on success, kept on failure."""

    message: StatusMessage | None = None
    """What it is doing, in the handler's words."""


class JobError(Model):
    """The last failure."""

    type: Annotated[str, Field(max_length=256)]
    """Type of the exception, or the reason of the crash."""

    category: CategoryName
    """Category that retryOn and noRetryOn look at."""

    message: Annotated[str, Field(max_length=4096)]
    """Its message."""


class ResultReference(Model):
    """Where a result lies that was too large for the job itself."""

    uri: Annotated[str, Field(max_length=2048)]
    """Its address."""

    size_bytes: Annotated[int, Field(ge=0)]
    """Its size."""

    sha256: Annotated[str, Field(max_length=64)]
    """Its digest, in hexadecimal."""


class HistoryEntry(Model):
    """One change of phase."""

    time: Timestamp
    """When."""

    phase: Phase
    """Into which phase."""

    attempt: Count = 0
    """Attempts made so far."""

    reason: Reason | None = None
    """Why."""

    message: Annotated[str, Field(max_length=256)] | None = None
    """Why, in words."""

    worker: WorkerIdentity | None = None
    """Who ran the attempt that ended here."""

    start_time: Timestamp | None = None
    """When the attempt that ended here had started."""


class Condition(Model):
    """A standard condition; `kubectl wait --for=condition=Complete` looks at these."""

    type: Annotated[str, Field(max_length=64)]
    """Complete, Failed or Cancelled for a job, Drained for a queue."""

    status: Annotated[str, Field(max_length=8)]
    """True or False."""

    reason: Annotated[str, Field(max_length=64)] | None = None
    """Machine word."""

    message: StatusMessage | None = None
    """For people."""

    last_transition_time: Timestamp
    """When it came to hold."""


class AsyncJobStatus(Model):
    """What has become of the job."""

    phase: Phase = Phase.QUEUED
    """Where the job is in its life."""

    reason: Reason | None = None
    """Why it is there."""

    message: StatusMessage | None = None
    """Why it is there, in words."""

    attempt: Count = 0
    """Claims so far; with the UID a fencing token for handlers."""

    claim: Uid | None = None
    """Random id of the current or last claim."""

    retries: Count = 0
    """Retries granted after failures, since creation or redrive."""

    crashes: Count = 0
    """Attempts whose worker or process died, since creation or redrive."""

    releases: Count = 0
    """Attempts given back unfinished, since creation or redrive."""

    redrives: Count = 0
    """The last redrive wish acted on."""

    reruns: Count = 0
    """The last rerun wish acted on."""

    next_attempt_time: Timestamp | None = None
    """About when the next attempt is due."""

    retry_delay_seconds: DelaySeconds | None = None
    """Wait before the next attempt, counted from when the operator sees it."""

    admitted: bool | None = None
    """The operator has opened the gate that the spec or the queue puts before a claim."""

    lease: Lease | None = None
    """Who holds the running job."""

    effective: Effective | None = None
    """The policy in force, written by the claim."""

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
    """Last report of any kind, heartbeats and progress included."""

    progress: Progress | None = None
    """How far the handler has come."""

    checkpoint: FreeJson | None = None
    """What the handler saved to resume from. Any JSON, replaced whole."""

    result: FreeJson | None = None
    """What the handler returned. Any JSON."""

    result_ref: ResultReference | None = None
    """Where the result lies, if it was too large to be kept here."""

    error: JobError | None = None
    """The last failure."""

    history: Annotated[list[HistoryEntry], Field(max_length=20)] | None = None
    """Changes of phase, oldest first; the newest 20 are kept."""

    history_omitted: Count | None = None
    """Older changes that are no longer in history."""

    conditions: Annotated[list[Condition], Field(max_length=8)] | None = None
    """Complete, Failed, Cancelled."""
