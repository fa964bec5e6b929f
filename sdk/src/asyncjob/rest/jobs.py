"""A job as REST, the clients and the command line show it, and the small public contract.

`JobSummary` is what lists carry, `Job` the whole. Payload, result, checkpoint and request are
given only to those who may read them (the verb `read-payload`), and never in lists. The `Public`
models are the contract of `POST /jobs` and `GET /jobs/{id}`, which shows nothing of the internals.
"""

from enum import StrEnum
from typing import Final, Self

from pydantic import Field

from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.models.base import FreeJson, JobType, Key
from asyncjob.models.job import Dependency, PayloadSource, RequestData
from asyncjob.models.job_status import Effective, JobError, Progress, ResultReference, Waiting
from asyncjob.rest.base import RequestModel, ResponseModel
from asyncjob.rest.job_records import SignalInfo, StepInfo, WaitInfo


class Link(ResponseModel):
    """Another job, or a cron job."""

    name: str
    """Its name."""

    uid: str | None = None
    """Its UID, if known."""


class HistoryEvent(ResponseModel):
    """One change of phase. The first entry is the creation, which is not stored in the history."""

    time: str
    """When the phase changed, RFC 3339."""

    phase: str
    """The new phase; `Created` in the first entry."""

    attempt: int = 0
    """Number of attempts up to then."""

    reason: str | None = None
    """Reason of the change, from the closed list of reasons."""

    message: str | None = None
    """Explanation of the reason."""

    worker: str | None = None
    """Worker of the attempt that this change ended."""

    start_time: str | None = None
    """When the attempt that this change ended was started."""


class JobSummary(ResponseModel):
    """A job in a list. Times are RFC 3339 text."""

    id: str
    """Its name, unique in its namespace while it exists."""

    namespace: str
    """Its namespace."""

    uid: str
    """Its UID, never used again."""

    type: str
    """Which handler runs it."""

    queue: str
    """Name of its queue."""

    phase: Phase
    """Phase of its life cycle."""

    reason: str | None = None
    """Reason of the phase, or what the job waits for, from the closed list of reasons."""

    message: str | None = None
    """Explanation of the reason."""

    priority: int = 0
    """Jobs with a higher priority start first."""

    attempt: int = 0
    """Number of attempts started."""

    retries: int = 0
    """Retries after failures, since creation or the last redrive."""

    max_retries: int | None = None
    """Maximum number of retries; unknown before the first claim unless the job sets it."""

    progress: Progress | None = None
    """Progress as reported by the handler."""

    worker: str | None = None
    """Pod that runs it."""

    error: JobError | None = None
    """The last failure."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Its labels."""

    created_at: str
    """When it was created."""

    started_at: str | None = None
    """When the current or last attempt started."""

    completed_at: str | None = None
    """When it finished."""

    updated_at: str | None = None
    """When its status was last updated, including by heartbeats and progress."""

    next_attempt_at: str | None = None
    """Approximate time of the next attempt."""

    duration_seconds: float | None = None
    """From the first start to completion, in seconds."""

    deadline_at: str | None = None
    """It is cancelled if it has not finished by this time."""

    cancelling: bool = False
    """True if a cancel was requested and the job is not finished yet."""

    @property
    def finished(self) -> bool:
        """Return whether nothing happens to it without a person."""
        return self.phase in FINISHED_PHASES

    @property
    def succeeded(self) -> bool:
        """Return whether it succeeded."""
        return self.phase is Phase.SUCCEEDED


class Job(JobSummary):
    """A job with all details."""

    resource_version: str
    """Version of the object; changes with every write."""

    first_started_at: str | None = None
    """When the first attempt started."""

    failed_at: str | None = None
    """When it became a dead letter."""

    cancelled_at: str | None = None
    """When it was cancelled."""

    crashes: int = 0
    """Attempts whose worker or process died, since creation or the last redrive."""

    releases: int = 0
    """Attempts released unfinished, since creation or the last redrive."""

    parks: int = 0
    """Times it has waited without a slot, since creation or the last redrive."""

    redrives: int = 0
    """Number of redrives."""

    reruns: int = 0
    """Number of the last rerun created of it."""

    not_before: str | None = None
    """It does not start before this time."""

    not_after: str | None = None
    """It is cancelled if it has not started by this time."""

    depends_on: list[Dependency] = Field(default_factory=list)
    """Jobs that must finish first."""

    suspended: bool = False
    """While true, it is not claimed."""

    idempotency_key: str | None = None
    """Key that it was submitted under."""

    deduplication_id: str | None = None
    """Id that only one unfinished job may have."""

    concurrency_key: str | None = None
    """Key of the queue's maxConcurrencyPerKey."""

    traceparent: str | None = None
    """W3C trace context of its submitter."""

    parent: Link | None = None
    """The job whose handler submitted it."""

    rerun_of: Link | None = None
    """The job that it is a rerun of."""

    cron_job: Link | None = None
    """The cron job that created it."""

    effective: Effective | None = None
    """The policy of the current or last attempt."""

    history: list[HistoryEvent] = Field(default_factory=list)
    """Its changes of phase, oldest first, including the creation."""

    history_omitted: int = 0
    """Number of older changes that are no longer kept."""

    steps: list[StepInfo] = Field(default_factory=list)
    """Steps of its handler that are done, in the order in which they were."""

    waits: list[WaitInfo] = Field(default_factory=list)
    """Sleeps and waits with a time limit that its handler has begun, by their ends."""

    waiting: list[Waiting] = Field(default_factory=list)
    """What it is parked for; any that is over wakes it. Empty unless it is parked."""

    signals: list[SignalInfo] = Field(default_factory=list)
    """Signals that it has been sent, in the order of their names."""

    has_result: bool = False
    """True if the job has a result to fetch."""

    payload: FreeJson | None = None
    """Its input. Only with the permission `read-payload`."""

    payload_from: PayloadSource | None = None
    """Where its payload comes from."""

    request: RequestData | None = None
    """Parts of the submitting HTTP request. Only with the permission `read-payload`."""

    checkpoint: FreeJson | None = None
    """State saved by the handler to resume from. Only with the permission `read-payload`."""

    result: FreeJson | None = None
    """Return value of the handler. Only with the permission `read-payload`."""

    result_ref: ResultReference | None = None
    """Where a large result is stored. Only with the permission `read-payload`."""

    def without_payload(self) -> Self:
        """Return the same without what only `read-payload` shows."""
        hidden: dict[str, Json] = dict.fromkeys(
            ("payload", "request", "checkpoint", "result", "result_ref")
        )
        steps = [step.without_result() for step in self.steps]
        signals = [signal.without_payload() for signal in self.signals]
        return self.model_copy(update={**hidden, "steps": steps, "signals": signals})


class Page(ResponseModel):
    """A page of a list, newest job first."""

    items: list[JobSummary]
    """The jobs."""

    next: str | None = None
    """Cursor of the next page; None on the last one. Opaque."""

    total: int | None = None
    """Number of jobs that match the filters, if known without reading them all."""


class PublicStatus(StrEnum):
    """State of a job in the public contract."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


PUBLIC_STATUS_BY_PHASE: Final = {
    Phase.PENDING: PublicStatus.PENDING,
    Phase.SCHEDULED: PublicStatus.PENDING,
    Phase.QUEUED: PublicStatus.PENDING,
    Phase.RETRYING: PublicStatus.PENDING,
    Phase.RUNNING: PublicStatus.RUNNING,
    Phase.SUCCEEDED: PublicStatus.COMPLETED,
    Phase.DEAD_LETTER: PublicStatus.FAILED,
    Phase.CANCELLED: PublicStatus.CANCELLED,
}


class PublicSubmission(RequestModel):
    """A job to create."""

    job_type: JobType
    """Which handler runs it."""

    payload: FreeJson | None = None
    """Its input: any JSON."""

    idempotency_key: Key | None = None
    """The same key with the same request returns the same job."""


class PublicAccepted(ResponseModel):
    """The job was accepted."""

    job_id: str
    """Its id."""

    status: PublicStatus
    """Where it is."""


class PublicJob(ResponseModel):
    """The public view of a job, without payload, counters, worker, lease and trace."""

    job_id: str
    """Its id."""

    job_type: str
    """Which handler runs it."""

    status: PublicStatus
    """Where it is."""

    created_at: str
    """When it was created, RFC 3339."""

    updated_at: str
    """When it last changed, RFC 3339."""


class Result(ResponseModel):
    """The result of a job. Exactly one of the two fields is set."""

    result: FreeJson | None = None
    """Return value of the handler: any JSON."""

    result_ref: ResultReference | None = None
    """Where the result is stored if it was too large for the job itself."""
