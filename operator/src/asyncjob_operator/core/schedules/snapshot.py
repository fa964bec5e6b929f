"""What a decision about one schedule may look at, and what it may ask for.

It asks for at most one effect, and says when to evaluate the schedule again.
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
    """What people are told in an Event once a write has gone through."""

    reason: CronReason
    message: str


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Change the status, exact on the version decided on.

    `reserves`: it takes or renews the reservation. `needs_fresh_list`: it rests on which jobs are
    unfinished, which live reads have to show.
    """

    policy: str
    fields: CronStatusFields
    reserves: bool = False
    needs_fresh_list: bool = False
    event: EventToRecord | None = None


@dataclass(frozen=True, slots=True)
class CreateRuns:
    """Create these runs, as long as the reservation holds."""

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
    """Do nothing yet: reads have to show first who is in the way of a run."""

    policy: str
    needs_fresh_list: bool = True


@dataclass(frozen=True, slots=True)
class DropRuns:
    """Take these reserved runs off the list, unless they turn out to exist."""

    policy: str
    runs: tuple[Run, ...]
    needs_fresh_list: bool = False


CronJobEffect = WriteStatus | CreateRuns | CancelJobs | DeleteJobs | VerifyUnfinished | DropRuns


@dataclass(frozen=True, slots=True)
class CronJobWait:
    """Nothing to do before this time on the monotonic clock."""

    until: float


@dataclass(frozen=True, slots=True)
class CronJobHold:
    """Nothing at all is to be done before this time on the monotonic clock."""

    until: float


StepResult = CronJobEffect | CronJobWait | CronJobHold | None


@dataclass(frozen=True, slots=True)
class CronJobDecision:
    """The one effect due now, if any, and when time alone may bring the next."""

    effect: CronJobEffect | None = None
    requeue_at: float | None = None


@dataclass(frozen=True, slots=True)
class ScheduleProblem:
    """Why a schedule has no times."""

    reason: CronReason
    message: str


ScheduleOrProblem = Schedule | ScheduleProblem


def schedule_or_problem(cron: CronJobView) -> ScheduleOrProblem:
    """Return the schedule, or what is wrong with it."""
    try:
        return parse_schedule(cron.schedule, cron.time_zone, cron.key)
    except (BadScheduleError, BadTimeZoneError, NeverFiresError) as error:
        return ScheduleProblem(_PROBLEM_REASONS[type(error)], str(error))


_PROBLEM_REASONS: Final = {
    BadScheduleError: CronReason.BAD_SCHEDULE,
    BadTimeZoneError: CronReason.BAD_TIME_ZONE,
    NeverFiresError: CronReason.NEVER_FIRES,
}


@dataclass(frozen=True, slots=True)
class CronJobSnapshot:
    """`identity` is the identity of this operator. Times are monotonic seconds of this replica.

    `reserved_at`: when it sent the write that gave it the reservation as it is now; None if the
    reservation is not its own. `reservation_observed_at`: when it first saw the reservation as it
    is now. `created`: names of reserved runs that are known to have been created.
    `verified_unfinished`: UIDs of the jobs that the last live reads have shown to be unfinished.
    `dedup_window`: seconds for which a finished run with a key is kept, whatever the history limits
    say.
    """

    cron: CronJobView
    schedule: ScheduleOrProblem
    jobs: tuple[ScheduledJob, ...]
    identity: str
    reserved_at: float | None
    reservation_observed_at: float
    created: frozenset[str]
    verified_unfinished: frozenset[str] = frozenset()
    prunes_history: bool = True
    dedup_window: float = DAY

    @property
    def unfinished(self) -> list[ScheduledJob]:
        """Return the unfinished jobs, the oldest first."""
        live = [one for one in self.jobs if not one.finished]
        return sorted(live, key=lambda one: (one.created, one.name))

    @property
    def pending_runs(self) -> tuple[Run, ...]:
        """Return the reserved runs that are still to be created."""
        return tuple(run for run in self.cron.runs if run.name not in self.created)

    @property
    def exclusive(self) -> bool:
        """Return whether its runs must not overlap."""
        return self.cron.concurrency_policy is not ConcurrencyPolicy.ALLOW

    @property
    def busy(self) -> bool:
        """Return whether a run is unfinished, or about to be created."""
        return bool(self.pending_runs or self.unfinished)


CronJobStep: TypeAlias = Callable[[CronJobSnapshot, Now], StepResult]


def recheck_at(time: float, now: Now) -> float:
    """Return when on the monotonic clock to look again for a calendar time."""
    return now.monotonic + min(max(time - now.wall, 0.0), MAX_WALL_CLOCK_WAIT)
