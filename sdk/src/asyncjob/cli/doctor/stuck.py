"""Whether jobs stand still that should not. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.cli.doctor.finding import Finding, listed, ok, problem, warning
from asyncjob.cli.durations import age, moment
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import JobSummary

CHECK: Final = "Stuck jobs"

SILENT: Final = 660.0
"""The longest lease and a minute: no worker may be silent for longer."""
OVERDUE: Final = 120.0
"""The operator looks at start times every minute at the latest."""
CANCELLING: Final = 3_660.0
"""The longest grace period and a minute."""

OPERATOR: Final = "the operator should have seen to it: look at its check above, and its log"


@dataclass(frozen=True, slots=True)
class Sign:
    """A way of standing still: which jobs show it, and for how long they may."""

    what: str
    shown: Callable[[JobSummary], str | None]
    bound: float


def _silent(job: JobSummary) -> str | None:
    return job.updated_at if job.phase is Phase.RUNNING else None


def _overdue(job: JobSummary) -> str | None:
    return job.next_attempt_at if job.phase in {Phase.RETRYING, Phase.SCHEDULED} else None


def _cancelling(job: JobSummary) -> str | None:
    return job.updated_at if job.cancelling and job.phase is not Phase.DEAD_LETTER else None


SIGNS: Final = (
    Sign("Running, but their workers are silent", _silent, SILENT),
    Sign("overdue", _overdue, OVERDUE),
    Sign("to be cancelled, and still there", _cancelling, CANCELLING),
)


def judge(unfinished: Sequence[JobSummary], now: datetime, *, whole: bool = True) -> list[Finding]:
    """Return which jobs stand still; `now` by the API server's clock. `whole`: these are all."""
    found = [*_signs(unfinished, now)]
    number = f"{len(unfinished)}" if whole else f"the newest {len(unfinished)}"
    return found or [ok(CHECK, f"none of {number} unfinished jobs")]


def _signs(unfinished: Sequence[JobSummary], now: datetime) -> Iterator[Finding]:
    for sign in SIGNS:
        times = {job.id: sign.shown(job) for job in unfinished}
        late = {
            name: past for name, time in times.items() if (past := _past(time, now)) > sign.bound
        }
        if late:
            worst = age(max(late.values()))
            said = f"{len(late)} {sign.what} (up to {worst}): {listed(late, 3)}"
            yield problem(CHECK, said, OPERATOR)


def _past(time: str | None, now: datetime) -> float:
    then = moment(time)
    return (now - then).total_seconds() if then else 0.0


def judge_dead(count: int, *, whole: bool) -> list[Finding]:
    """Return that there are dead letters, which wait for a person."""
    if not count:
        return []
    number = str(count) if whole else f"{count} and more"
    word = "dead letter waits" if count == 1 else "dead letters wait"
    way = "asyncjob list --phase DeadLetter, then redrive or dismiss"
    return [warning("Dead letters", f"{number} {word} for a person", way)]
