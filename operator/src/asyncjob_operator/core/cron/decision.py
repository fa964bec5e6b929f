"""What a decision about a schedule may ask for: at most one effect, and when to look again."""

from dataclasses import dataclass

from asyncjob.json_types import Json
from asyncjob.lifecycle.schedules import CronReason
from asyncjob_operator.core.cron.child import ScheduledJob
from asyncjob_operator.core.cron.view import Run

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
