"""AsyncCronJob: creates jobs on a schedule."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from asyncjob.models.base import Counter, Model, Seconds, Timestamp
from asyncjob.models.meta import ObjectMeta
from asyncjob.models.spec import AsyncJobSpec, JobReference


class ConcurrencyPolicy(StrEnum):
    """What happens when a run is due while an earlier one is unfinished."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


class MisfirePolicy(StrEnum):
    """What happens to runs that were missed while nobody could start them."""

    SKIP = "Skip"
    FIRE_ONCE = "FireOnce"
    FIRE_ALL = "FireAll"


class TemplateMetadata(Model):
    """Labels and annotations of the jobs created."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32)] = (
        Field(default_factory=dict)
    )
    """Labels of each job."""

    annotations: Annotated[
        dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=32)
    ] = Field(default_factory=dict)
    """Annotations of each job."""


class JobTemplate(Model):
    """The job that is created each time."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the job."""

    spec: AsyncJobSpec
    """Spec of the job."""


class AsyncCronJobSpec(Model):
    """When which job is created."""

    schedule: Annotated[str, Field(min_length=1, max_length=256)]
    """Five fields (minute hour day month weekday), or @hourly, @daily, @weekly, @monthly, @yearly.
    """

    time_zone: Annotated[str, Field(min_length=1, max_length=64)] = "UTC"
    """IANA name of the zone that the schedule is meant in."""

    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
    """Allow: start all the same. Forbid: leave this run out. Replace: cancel the earlier one."""

    starting_deadline_seconds: Seconds | None = None
    """A run that could not start within so many seconds counts as missed."""

    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE
    """Skip: missed runs are left out. FireOnce: one run for all. FireAll: each, up to the limit."""

    misfire_limit: Annotated[int, Field(ge=1, le=1000)] = 100
    """At most so many missed runs are made up for, the newest ones."""

    suspend: bool = False
    """While true no job is created."""

    successful_jobs_history_limit: Annotated[int, Field(ge=0, le=1000)] = 3
    """So many succeeded jobs are kept."""

    failed_jobs_history_limit: Annotated[int, Field(ge=0, le=1000)] = 3
    """So many dead-lettered or cancelled jobs are kept."""

    job_template: JobTemplate
    """The job that is created each time."""


class AsyncCronJobStatus(Model):
    """What the schedule has done."""

    active: Annotated[list[JobReference], Field(max_length=100)] | None = None
    """Unfinished jobs of this schedule."""

    last_schedule_time: Timestamp | None = None
    """The last scheduled time acted on; none at or before it is acted on again."""

    last_successful_time: Timestamp | None = None
    """When a job of this schedule last succeeded."""

    next_schedule_time: Timestamp | None = None
    """When the next job is due."""

    missed: Counter | None = None
    """Runs left out since creation."""


class AsyncCronJob(Model):
    """Creates jobs on a schedule."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncCronJob"] = "AsyncCronJob"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncCronJobSpec
    """When which job is created."""

    status: AsyncCronJobStatus = Field(default_factory=AsyncCronJobStatus)
    """What it has done."""
