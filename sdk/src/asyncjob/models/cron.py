"""AsyncCronJob: creates jobs on a schedule."""

from typing import Annotated, Literal

from pydantic import Field

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason, MisfirePolicy
from asyncjob.models.base import Count, Model, ObjectMeta, ObjectName, Seconds, Timestamp
from asyncjob.models.job import AsyncJobSpec, JobReference


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


ZONE_PATTERN = r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"
MAX_RUNS = 1000
"""The most that one misfire or backfill creates."""

MAX_ACTIVE_RUNS = 100
"""The most runs of a backfill at once."""


class Backfill(Model):
    """Runs for times gone by; each distinct range is acted on once."""

    from_: Annotated[Timestamp, Field(alias="from")]
    """From this time on, itself included."""

    to: Timestamp
    """Up to this time, itself included; what lies ahead is left to the schedule."""

    limit: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 100
    """A range that holds more runs is refused whole."""

    max_active: Annotated[int, Field(ge=1, le=MAX_ACTIVE_RUNS)] = 1
    """So many of its runs may be unfinished at once. Under Forbid and Replace one of all runs."""


class AsyncCronJobSpec(Model):
    """When which job is created."""

    schedule: Annotated[str, Field(min_length=1, max_length=256)]
    """Five fields (minute hour day month weekday), or @hourly, @daily, @weekly, @monthly, @yearly.
    H stands for a number that follows from namespace and name: H, H/15, H(0-29), H(0-29)/10.
    """

    time_zone: Annotated[str, Field(min_length=1, max_length=64, pattern=ZONE_PATTERN)] = "UTC"
    """IANA name of the zone that the schedule is meant in."""

    jitter_seconds: Annotated[int, Field(ge=0, le=86_400)] = 0
    """Each run is created up to so many seconds after its time; how many follows from the time."""

    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
    """If an earlier run is unfinished. Allow: start all the same. Forbid: leave this run out.
    Replace: cancel the earlier one and start when it has ended.
    """

    starting_deadline_seconds: Seconds | None = None
    """A run that could not start within so many seconds counts as missed. Built in: 60; less than 5
    counts as 5."""

    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE
    """Skip: missed runs are left out. FireOnce: one run for all. FireAll: each, up to the limit."""

    misfire_limit: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 100
    """At most so many missed runs are made up for, the newest ones."""

    suspend: bool = False
    """While true no job is created but by trigger and backfill; times that pass are not missed."""

    trigger: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Raise it to n to create one job <name>-t<n> now."""

    backfill: Backfill | None = None
    """Creates the runs of a range of time gone by, once. Take it away to stop."""

    successful_jobs_history_limit: Annotated[int, Field(ge=0, le=1000)] = 3
    """So many succeeded jobs are kept."""

    failed_jobs_history_limit: Annotated[int, Field(ge=0, le=1000)] = 3
    """So many dead-lettered or cancelled jobs are kept."""

    job_template: JobTemplate
    """The job that is created each time."""


class ReservedRun(Model):
    """A run that is decided on and about to be created."""

    name: ObjectName
    """Name of its job."""

    time: Timestamp
    """The time it is for."""

    trigger: Count | None = None
    """Number of the trigger that asked for it."""

    backfill: bool | None = None
    """A backfill asked for it."""


class Reservation(Model):
    """What makes each run be created once, whoever decides: only its holder creates them."""

    by: Annotated[str, Field(max_length=256)]
    """Identity of the operator that holds it."""

    runs: Annotated[list[ReservedRun], Field(max_length=2 * MAX_RUNS)]
    """Runs to create, in this order."""


class Observed(Model):
    """The part of the spec that settledTime was judged by."""

    schedule: Annotated[str, Field(max_length=256)]
    """The schedule."""

    time_zone: Annotated[str, Field(max_length=64)]
    """The zone."""

    suspend: bool = False
    """Whether it was suspended."""


class BackfillStatus(Model):
    """How far a backfill has come."""

    from_: Annotated[Timestamp, Field(alias="from")]
    """Where it began."""

    to: Timestamp
    """Where it ends."""

    through: Timestamp | None = None
    """The last time acted on."""

    total: Count = 0
    """Runs that its range holds."""

    created: Count = 0
    """Runs acted on; one whose job existed already is among them."""

    completed: bool = False
    """Nothing is left to do."""


class AsyncCronJobStatus(Model):
    """What the schedule has done."""

    active: Annotated[list[JobReference], Field(max_length=100)] | None = None
    """Unfinished jobs of this schedule, the newest ones."""

    active_count: Count | None = None
    """How many unfinished jobs there are."""

    last_schedule_time: Timestamp | None = None
    """The last scheduled time that a run was created for; none at or before it is acted on again.
    """

    last_successful_time: Timestamp | None = None
    """When a job of this schedule last succeeded."""

    next_schedule_time: Timestamp | None = None
    """The next scheduled time; jitter comes on top."""

    missed: Count | None = None
    """Scheduled times left without a run since creation, whatever the cause; suspension apart."""

    reason: CronReason | None = None
    """What it did last, or what keeps it from doing anything."""

    message: Annotated[str, Field(max_length=1024)] | None = None
    """The same in words."""

    settled_time: Timestamp | None = None
    """All scheduled times up to here are done with: run, left out, or not to be run. It never goes
    back, whatever the clocks do."""

    observed: Observed | None = None
    """The schedule that settledTime was judged by."""

    triggers: Count | None = None
    """The last trigger acted on."""

    backfill: BackfillStatus | None = None
    """How far the last backfill has come."""

    claims: Count | None = None
    """Reservations and renewals of them so far."""

    reserved: Reservation | None = None
    """Runs decided on and about to be created."""


class AsyncCronJob(Model):
    """Creates jobs on a schedule."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncCronJob"] = "AsyncCronJob"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncCronJobSpec
    """When which job is created."""

    status: AsyncCronJobStatus = Field(default_factory=AsyncCronJobStatus)
    """What it has done."""
