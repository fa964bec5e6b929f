"""Whether jobs are stuck, and how many dead letters there are. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.cli.doctor.findings import DoctorCode, Finding, join_some, ok, problem, warning
from asyncjob.cli.durations import human_duration, parse_time
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import JobSummary

STUCK_JOBS_CHECK: Final = "Stuck jobs"

MAX_SILENCE_SECONDS: Final = 660.0
"""The longest lease and a minute: no worker may be silent for longer."""
MAX_OVERDUE_SECONDS: Final = 120.0
"""The operator looks at start times every minute at the latest."""
MAX_CANCELLING_SECONDS: Final = 3_660.0
"""The longest grace period and a minute."""

CHECK_OPERATOR: Final = "the operator should have handled it: see its check above, and its log"


@dataclass(frozen=True, slots=True)
class StuckSymptom:
    """A way of standing still: which jobs show it, and for how long they may."""

    code: DoctorCode
    description: str
    since: Callable[[JobSummary], str | None]
    limit_seconds: float


def _silent_since(job: JobSummary) -> str | None:
    return job.updated_at if job.phase is Phase.RUNNING else None


def _due_at(job: JobSummary) -> str | None:
    return job.next_attempt_at if job.phase in {Phase.RETRYING, Phase.SCHEDULED} else None


def _past_deadline_since(job: JobSummary) -> str | None:
    """Return the deadline of a job that no worker holds."""
    held = job.phase in {Phase.RUNNING, Phase.DEAD_LETTER}
    return None if held else job.deadline_at


def _running_past_deadline_since(job: JobSummary) -> str | None:
    """Return the deadline of a running job, whose handler has its grace period besides."""
    return job.deadline_at if job.phase is Phase.RUNNING else None


def _cancelling_since(job: JobSummary) -> str | None:
    return job.updated_at if job.cancelling and job.phase is not Phase.DEAD_LETTER else None


SYMPTOMS: Final = (
    StuckSymptom(
        DoctorCode.SILENT_WORKERS,
        "Running, but their workers are silent",
        _silent_since,
        MAX_SILENCE_SECONDS,
    ),
    StuckSymptom(DoctorCode.OVERDUE, "overdue", _due_at, MAX_OVERDUE_SECONDS),
    StuckSymptom(
        DoctorCode.OVERDUE,
        "past their deadline, and still there",
        _past_deadline_since,
        MAX_OVERDUE_SECONDS,
    ),
    StuckSymptom(
        DoctorCode.OVERDUE,
        "Running past their deadline",
        _running_past_deadline_since,
        MAX_CANCELLING_SECONDS,
    ),
    StuckSymptom(
        DoctorCode.NOT_CANCELLED,
        "to be cancelled, and still there",
        _cancelling_since,
        MAX_CANCELLING_SECONDS,
    ),
)


def check_stuck_jobs(
    unfinished: Sequence[JobSummary], now: datetime, *, complete: bool = True
) -> list[Finding]:
    """Return which jobs stand still; `now` is by the API server's clock.

    `complete` says that these are all unfinished jobs, not the newest of them.
    """
    found = [*_stuck_findings(unfinished, now)]
    number = f"{len(unfinished)}" if complete else f"the newest {len(unfinished)}"
    return found or [ok(STUCK_JOBS_CHECK, f"none of {number} unfinished jobs")]


def _stuck_findings(unfinished: Sequence[JobSummary], now: datetime) -> Iterator[Finding]:
    for sign in SYMPTOMS:
        times = {job.id: sign.since(job) for job in unfinished}
        late = {
            name: past
            for name, time in times.items()
            if (past := _seconds_since(time, now)) > sign.limit_seconds
        }
        if late:
            worst = human_duration(max(late.values()))
            message = f"{len(late)} {sign.description} (up to {worst}): {join_some(late, 3)}"
            yield problem(STUCK_JOBS_CHECK, sign.code, message, CHECK_OPERATOR)


def _seconds_since(time: str | None, now: datetime) -> float:
    then = parse_time(time)
    return (now - then).total_seconds() if then else 0.0


def check_dead_letters(count: int, *, complete: bool) -> list[Finding]:
    """Return that there are dead letters, which wait for a person."""
    if not count:
        return []
    number = str(count) if complete else f"{count} and more"
    word = "dead letter waits" if count == 1 else "dead letters wait"
    way = "asyncjob list --phase DeadLetter, then redrive or dismiss"
    message = f"{number} {word} for a person"
    return [warning("Dead letters", DoctorCode.DEAD_LETTERS, message, way)]
