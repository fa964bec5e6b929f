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
from asyncjob.models.job_status import Effective, JobError, Progress, ResultReference
from asyncjob.rest.base import RequestModel, ResponseModel


class Link(ResponseModel):
    """Another job, or a cron job."""

    name: str
    """Its name."""

    uid: str | None = None
    """Its UID, where it is known."""


class Happening(ResponseModel):
    """One change of phase. Creation is the first; it is added on reading, not stored."""

    time: str
    """When, RFC 3339."""

    phase: str
    """Into which phase; `Created` for the first."""

    attempt: int = 0
    """Attempts made so far."""

    reason: str | None = None
    """Why: one of the closed list of reasons."""

    message: str | None = None
    """Why, in words."""

    worker: str | None = None
    """Who ran the attempt that ended here."""

    start_time: str | None = None
    """When the attempt that ended here had started."""


class JobSummary(ResponseModel):
    """A job in a list. Times are RFC 3339 text."""

    id: str
    """Its name, unique in its namespace for as long as it exists."""

    namespace: str
    """Its namespace."""

    uid: str
    """Its UID: unique for ever."""

    type: str
    """Which handler runs it."""

    queue: str
    """Queue that it waits in."""

    phase: Phase
    """Where it is in its life."""

    reason: str | None = None
    """Why it is there, or what it waits for: one of the closed list."""

    message: str | None = None
    """The same in words."""

    priority: int = 0
    """Higher starts first."""

    attempt: int = 0
    """Attempts begun."""

    retries: int = 0
    """Retries granted after failures, since creation or redrive."""

    max_retries: int | None = None
    """Retries that the policy in force allows; unknown before the first claim unless set."""

    progress: Progress | None = None
    """How far the handler has come."""

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
    """Last report of any kind, heartbeats and progress included."""

    next_attempt_at: str | None = None
    """About when the next attempt is due."""

    duration_seconds: float | None = None
    """From the first start to completion, in seconds."""

    cancelling: bool = False
    """Its cancellation was asked for and has not come about yet."""

    @property
    def finished(self) -> bool:
        """Return whether nothing happens to it without a person."""
        return self.phase in FINISHED_PHASES

    @property
    def succeeded(self) -> bool:
        """Return whether it succeeded."""
        return self.phase is Phase.SUCCEEDED


class Job(JobSummary):
    """A job with all that is known of it."""

    resource_version: str
    """Changes with every write."""

    first_started_at: str | None = None
    """When the first attempt started."""

    failed_at: str | None = None
    """When it became a dead letter."""

    cancelled_at: str | None = None
    """When it was cancelled."""

    crashes: int = 0
    """Attempts whose worker or process died, since creation or redrive."""

    releases: int = 0
    """Attempts given back unfinished, since creation or redrive."""

    redrives: int = 0
    """How often it was redriven."""

    reruns: int = 0
    """The last rerun created of it."""

    not_before: str | None = None
    """It does not start before this time."""

    not_after: str | None = None
    """It is cancelled if it has not started by this time."""

    depends_on: list[Dependency] = Field(default_factory=list)
    """Jobs that have to finish first."""

    suspended: bool = False
    """It is not claimed for as long as this is so."""

    idempotency_key: str | None = None
    """Key that it was submitted under."""

    deduplication_id: str | None = None
    """Id that only one live job may have."""

    concurrency_key: str | None = None
    """Key of the queue's maxConcurrencyPerKey."""

    traceparent: str | None = None
    """W3C trace context of its submitter."""

    parent: Link | None = None
    """The job whose handler submitted it."""

    rerun_of: Link | None = None
    """The job that it runs again."""

    cron_job: Link | None = None
    """The schedule that created it."""

    effective: Effective | None = None
    """The policy in force for the current or last attempt."""

    history: list[Happening] = Field(default_factory=list)
    """What happened to it, oldest first, creation included."""

    history_omitted: int = 0
    """Older changes that are no longer kept."""

    has_result: bool = False
    """Whether there is a result to be fetched."""

    payload: FreeJson | None = None
    """Its input, for those who may read it."""

    payload_from: PayloadSource | None = None
    """Where its input comes from."""

    request: RequestData | None = None
    """What its HTTP submitter handed on, for those who may read the payload."""

    checkpoint: FreeJson | None = None
    """What the handler saved to resume from, for those who may read the payload."""

    result: FreeJson | None = None
    """What the handler returned, for those who may read the payload."""

    result_ref: ResultReference | None = None
    """Where a large result lies, for those who may read the payload."""

    def without_payload(self) -> Self:
        """Return the same without what only `read-payload` shows."""
        hidden: dict[str, Json] = dict.fromkeys(
            ("payload", "request", "checkpoint", "result", "result_ref")
        )
        return self.model_copy(update=hidden)


class Page(ResponseModel):
    """A part of a list, newest job first."""

    items: list[JobSummary]
    """The jobs."""

    next: str | None = None
    """Cursor of the next page; None on the last one. Opaque."""

    total: int | None = None
    """How many jobs the filters select, where that is known without reading them all."""


class PublicStatus(StrEnum):
    """Where a job is, in the words of the public contract."""

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
    """A job to be done."""

    job_type: JobType
    """Which handler runs it."""

    payload: FreeJson | None = None
    """Its input: any JSON."""

    idempotency_key: Key | None = None
    """The same key with the same request is the same job."""


class PublicAccepted(ResponseModel):
    """The job was accepted."""

    job_id: str
    """Its id."""

    status: PublicStatus
    """Where it is."""


class PublicJob(ResponseModel):
    """A job as the public sees it; nothing of payload, counters, workers, leases or traces."""

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
    """One of the two: the result itself, or where a large one lies."""

    result: FreeJson | None = None
    """What the handler returned: any JSON."""

    result_ref: ResultReference | None = None
    """Where it lies, if it was too large to be kept in the job."""
