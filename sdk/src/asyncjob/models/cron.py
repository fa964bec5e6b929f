"""AsyncCronJob: creates jobs on a schedule."""

from typing import Annotated, Literal

from pydantic import Field

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason, MisfirePolicy
from asyncjob.models.base import Count, Model, ObjectMeta, ObjectName, Seconds, Timestamp
from asyncjob.models.job import AsyncJobSpec, JobReference


class TemplateMetadata(Model):
    """Labels and annotations of the created jobs."""

    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32)] = (
        Field(default_factory=dict)
    )
    """Labels of each job."""

    annotations: Annotated[
        dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=32)
    ] = Field(default_factory=dict)
    """Annotations of each job."""


class JobTemplate(Model):
    """The job to create for each run."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the job."""

    spec: AsyncJobSpec
    """Spec of the job."""


ZONE_PATTERN = r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"
MAX_RUNS = 1000
"""The most that one misfire or backfill creates."""

MAX_ACTIVE_RUNS = 100
"""The most runs of a backfill at once."""


class Backfill(Model):
    """Creates the runs of a past range of time. Each distinct range is processed once."""

    from_: Annotated[Timestamp, Field(alias="from")]
    """Start of the range, inclusive."""

    to: Timestamp
    """End of the range, inclusive. Times in the future are left to the schedule."""

    limit: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 100
    """Maximum number of runs; a range with more is rejected as a whole."""

    max_active: Annotated[int, Field(ge=1, le=MAX_ACTIVE_RUNS)] = 1
    """Maximum number of unfinished runs of the backfill. With Forbid and Replace: one run of the
    cron job in all."""


class AsyncCronJobSpec(Model):
    """The schedule and the job that it creates."""

    schedule: Annotated[str, Field(min_length=1, max_length=256)]
    """Five fields (minute hour day month weekday), or @hourly, @daily, @weekly, @monthly, @yearly.
    H stands for a number derived from namespace and name: H, H/15, H(0-29), H(0-29)/10.
    """

    time_zone: Annotated[str, Field(min_length=1, max_length=64, pattern=ZONE_PATTERN)] = "UTC"
    """IANA name of the time zone of the schedule."""

    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] = 0
    """Maximum delay of a run after its scheduled time, in seconds. The delay is derived from the
    scheduled time."""

    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
    """What to do while an earlier run is unfinished. Allow: start the run. Forbid: skip the run.
    Replace: cancel the earlier run and start when it has ended.
    """

    starting_deadline_seconds: Seconds | None = None
    """A run that could not start within this many seconds counts as missed. Built in: 60; values
    below 5 count as 5."""

    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE
    """What to do about missed runs. Skip: nothing. FireOnce: create one run for all of them.
    FireAll: create each, up to misfireLimit."""

    misfire_limit: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 100
    """Maximum number of missed runs to create; the newest are chosen."""

    suspend: bool = False
    """While true, jobs are created only by trigger and backfill. Scheduled times that pass
    meanwhile do not count as missed."""

    trigger: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Increase it to n to create one job <name>-t<n> now."""

    backfill: Backfill | None = None
    """Creates the runs of a past range of time, once. Remove it to stop."""

    successful_jobs_history_limit: Annotated[int, Field(ge=0, le=1000)] = 3
    """Maximum number of succeeded jobs to keep."""

    failed_jobs_history_limit: Annotated[int, Field(ge=0, le=1000)] = 3
    """Maximum number of dead-lettered or cancelled jobs to keep."""

    job_template: JobTemplate
    """The job to create for each run."""


class ReservedRun(Model):
    """A run that is about to be created."""

    name: ObjectName
    """Name of the job."""

    time: Timestamp
    """Scheduled time of the run."""

    trigger: Count | None = None
    """Value of spec.trigger that requested the run."""

    backfill: bool | None = None
    """True if a backfill requested the run."""


class RunReservation(Model):
    """Runs reserved by one operator. Only its holder creates them, so that each is created once."""

    by: Annotated[str, Field(max_length=256)]
    """Identity of the operator that holds the reservation."""

    runs: Annotated[list[ReservedRun], Field(max_length=2 * MAX_RUNS)]
    """Runs to create, in this order."""


class Observed(Model):
    """The part of the spec that settledTime was computed from."""

    schedule: Annotated[str, Field(max_length=256)]
    """The schedule."""

    time_zone: Annotated[str, Field(max_length=64)]
    """The time zone."""

    suspend: bool = False
    """Whether it was suspended."""


class BackfillStatus(Model):
    """Progress of a backfill."""

    from_: Annotated[Timestamp, Field(alias="from")]
    """Start of the range."""

    to: Timestamp
    """End of the range."""

    through: Timestamp | None = None
    """The last scheduled time processed."""

    total: Count = 0
    """Number of runs in the range."""

    created: Count = 0
    """Number of runs processed, including those whose job already existed."""

    completed: bool = False
    """True once all runs are processed."""


class AsyncCronJobStatus(Model):
    """Observed state of the cron job."""

    active: Annotated[list[JobReference], Field(max_length=100)] | None = None
    """The newest unfinished jobs of the cron job."""

    active_count: Count | None = None
    """Number of unfinished jobs."""

    last_schedule_time: Timestamp | None = None
    """The last scheduled time that a run was created for. Times up to it are not processed again.
    """

    last_successful_time: Timestamp | None = None
    """When a job of the cron job last succeeded."""

    next_schedule_time: Timestamp | None = None
    """The next scheduled time, without jitter."""

    missed: Count | None = None
    """Scheduled times without a run since creation, not counting times of suspension."""

    reason: CronReason | None = None
    """What the cron job did last, or why it does nothing."""

    message: Annotated[str, Field(max_length=1024)] | None = None
    """Explanation of the reason."""

    settled_time: Timestamp | None = None
    """All scheduled times up to this time are processed: run or skipped. It never moves back, even
    if a clock does."""

    observed: Observed | None = None
    """The schedule that settledTime was computed from."""

    triggers: Count | None = None
    """The last value of spec.trigger acted on."""

    backfill: BackfillStatus | None = None
    """Progress of the last backfill."""

    claims: Count | None = None
    """Number of reservations made and renewed so far."""

    reserved: RunReservation | None = None
    """Runs that are about to be created."""


class AsyncCronJob(Model):
    """Creates jobs on a schedule."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncCronJob"] = "AsyncCronJob"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncCronJobSpec
    """The schedule and the job that it creates."""

    status: AsyncCronJobStatus = Field(default_factory=AsyncCronJobStatus)
    """Observed state of the cron job."""
