"""What a job is submitted with."""

from typing import Annotated

from pydantic import Field

from asyncjob.models.base import ObjectName
from asyncjob.models.job import JobOptions
from asyncjob.rest.base import RequestModel, ResponseModel

MAX_BATCH_JOBS: int = 1000
"""Most jobs in one batch."""

LabelValue = Annotated[str, Field(max_length=63)]


class Submission(JobOptions, RequestModel):  # the last base says that unknown fields are refused
    """A job to be created: what `spec` of an AsyncJob takes at creation, and a name and labels."""

    name: ObjectName | None = None
    """The job's id. Default: derived from the idempotencyKey, or else a UUID."""

    labels: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels of the job, for label selectors."""


class Submitted(ResponseModel):
    """Result of a submission."""

    id: str
    """The job's id, which is its name."""

    created: bool
    """True if this submission created the job, false if it existed already."""

    phase: str
    """The current phase of the job."""


class Refusal(ResponseModel):
    """Why one job of a batch was refused."""

    status: int
    """HTTP status of the same submission outside a batch."""

    title: str
    """Type of the problem."""

    detail: str
    """What is wrong and how to fix it."""

    code: str = ""
    """What `asyncjob explain` knows it by: the rule that refuses it, or the problem's type."""

    job_id: str | None = None
    """The existing job that conflicts with the submission, if any."""


class BatchItem(ResponseModel):
    """Result for one job of a batch. Exactly one of the two fields is set."""

    job: Submitted | None = None
    """The accepted job."""

    error: Refusal | None = None
    """Why the job was refused."""


class BatchReport(ResponseModel):
    """Results of a batch, in the order of its jobs."""

    items: list[BatchItem]
    """One result for each job of the batch."""

    accepted: int
    """Number of accepted jobs."""

    refused: int
    """Number of refused jobs."""
