"""What a decision about one cron job depends on, and what it consists of.

It consists of at most one effect, and of when to evaluate the cron job again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from asyncjob.json_types import Json
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.now import MAX_WALL_CLOCK_WAIT, Now
from asyncjob_operator.core.options import DAY
from asyncjob_operator.core.schedules.calendar import (
    BadScheduleError,
    BadTimeZoneError,
    NeverFiresError,
    Schedule,
    parse_schedule,
)
from asyncjob_operator.core.schedules.jobs import ScheduledJob
from asyncjob_operator.core.schedules.view import CronJobView, Run

CronStatusFields = dict[str, Json]


@dataclass(frozen=True, slots=True)
class EventToRecord:
    """An Event to record once the write has succeeded."""

    reason: CronReason
    message: str


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Change the status, conditional on the version that was decided on."""

    policy: str
    fields: CronStatusFields
    reserves: bool = False
    """Whether the write takes or renews the reservation."""

    needs_fresh_list: bool = False
    """Whether it depends on which jobs are unfinished, so that these have to be read live first."""

    event: EventToRecord | None = None


@dataclass(frozen=True, slots=True)
class CreateRuns:
    """Create these runs, as long as the reservation lasts."""

    policy: str
    runs: tuple[Run, ...]
    needs_fresh_list: bool = False


@dataclass(frozen=True, slots=True)
class CancelJobs:
    """Set `cancel` on these jobs."""

    policy: str
    jobs: tuple[ScheduledJob, ...]
    needs_fresh_list: bool = True


@dataclass(frozen=True, slots=True)
class DeleteJobs:
    """Delete these finished jobs."""

    policy: str
    jobs: tuple[ScheduledJob, ...]
    needs_fresh_list: bool = False


@dataclass(frozen=True, slots=True)
class VerifyUnfinished:
    """Write nothing yet: live reads first have to show which unfinished jobs block a run."""

    policy: str
    needs_fresh_list: bool = True


@dataclass(frozen=True, slots=True)
class DropRuns:
    """Remove these runs from the reservation, unless they turn out to exist."""

    policy: str
    runs: tuple[Run, ...]
    needs_fresh_list: bool = False


CronJobEffect = WriteStatus | CreateRuns | CancelJobs | DeleteJobs | VerifyUnfinished | DropRuns


@dataclass(frozen=True, slots=True)
class CronJobWait:
    """This step has nothing to do before this monotonic time."""

    until: float


@dataclass(frozen=True, slots=True)
class CronJobHold:
    """Neither this step nor a later one may do anything before this monotonic time."""

    until: float


StepResult = CronJobEffect | CronJobWait | CronJobHold | None


@dataclass(frozen=True, slots=True)
class CronJobDecision:
    """The one effect due now, if any, and when to decide again if nothing changes."""

    effect: CronJobEffect | None = None
    requeue_at: float | None = None


@dataclass(frozen=True, slots=True)
class ScheduleProblem:
    """Why the times of a cron job cannot be computed."""

    reason: CronReason
    message: str


ScheduleOrProblem = Schedule | ScheduleProblem
_PROBLEM_REASONS: Final = {
    BadScheduleError: CronReason.BAD_SCHEDULE,
    BadTimeZoneError: CronReason.BAD_TIME_ZONE,
    NeverFiresError: CronReason.NEVER_FIRES,
}


def schedule_or_problem(cron: CronJobView) -> ScheduleOrProblem:
    """Return the schedule, or the problem with it."""
    try:
        return parse_schedule(cron.schedule, cron.time_zone, cron.key)
    except (BadScheduleError, BadTimeZoneError, NeverFiresError) as error:
        return ScheduleProblem(_PROBLEM_REASONS[type(error)], str(error))


@dataclass(frozen=True, slots=True)
class CronJobSnapshot:
    """What a decision about a cron job depends on; times are this replica's monotonic seconds."""

    cron: CronJobView
    schedule: ScheduleOrProblem
    jobs: tuple[ScheduledJob, ...]
    identity: str
    """Identity of this operator, as it reserves runs."""

    reserved_at: float | None
    """When it sent the write that gave it the current reservation; None if it is not its own."""

    reservation_observed_at: float
    """When it first saw the current reservation."""

    created: frozenset[str]
    """Names of the reserved runs that are known to have been created."""

    verified_unfinished: frozenset[str] = frozenset()
    """UIDs of the jobs that the last live reads have shown to be unfinished."""

    prunes_history: bool = True
    """Whether finished jobs beyond the history limits are deleted."""

    dedup_window: float = DAY
    """Seconds for which a finished run with a deduplication key is kept in any case."""

    @property
    def unfinished(self) -> list[ScheduledJob]:
        """Return the unfinished jobs, the oldest first."""
        unfinished = [job for job in self.jobs if not job.finished]
        return sorted(unfinished, key=lambda job: (job.created, job.name))

    @property
    def pending_runs(self) -> tuple[Run, ...]:
        """Return the reserved runs that are still to be created."""
        return tuple(run for run in self.cron.runs if run.name not in self.created)

    @property
    def exclusive(self) -> bool:
        """Return whether runs must not overlap."""
        return self.cron.concurrency_policy is not ConcurrencyPolicy.ALLOW

    @property
    def busy(self) -> bool:
        """Return whether a run is unfinished, or about to be created."""
        return bool(self.pending_runs or self.unfinished)


CronJobStep: TypeAlias = Callable[[CronJobSnapshot, Now], StepResult]


def recheck_at(time: float, now: Now) -> float:
    """Return when, in monotonic seconds, to compare a calendar time with `wall` again."""
    return now.monotonic + min(max(time - now.wall, 0.0), MAX_WALL_CLOCK_WAIT)
