"""What a decision about a schedule may ask for: at most one effect, and when to look again."""

from dataclasses import dataclass

from asyncjob.json_types import Json
from asyncjob.lifecycle.schedules import CronReason
from asyncjob_operator.core.cron.child import Child
from asyncjob_operator.core.cron.view import Run

Fields = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Told:
    """What people are told in an Event once a write has gone through."""

    reason: CronReason
    message: str


@dataclass(frozen=True, slots=True)
class Write:
    """Change the status, exact on the version decided on.

    `claims`: it takes or renews the reservation. `rests`: it rests on which jobs are unfinished,
    which live reads have to show.
    """

    policy: str
    fields: Fields
    claims: bool = False
    rests: bool = False
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Create these runs, as long as the reservation holds."""

    policy: str
    runs: tuple[Run, ...]
    rests: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """Set `cancel` on these jobs."""

    policy: str
    children: tuple[Child, ...]
    rests: bool = True


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete these finished jobs."""

    policy: str
    children: tuple[Child, ...]
    rests: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Do nothing yet: reads have to show first who is in the way of a run."""

    policy: str
    rests: bool = True


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Take these reserved runs off the list, unless they turn out to exist."""

    policy: str
    runs: tuple[Run, ...]
    rests: bool = False


Effect = Write | Create | Cancel | Remove | Ask | GiveUp


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this time on the monotonic clock."""

    until: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing at all is to be done before this time on the monotonic clock."""

    until: float


Verdict = Effect | Wait | Hold | None


@dataclass(frozen=True, slots=True)
class CronDecision:
    """The one effect due now, if any, and when time alone may bring the next."""

    effect: Effect | None = None
    look_again_at: float | None = None
