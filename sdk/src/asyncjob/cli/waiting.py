"""What a wait waits for, and how it ended: decided from the job as it is. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.job_rows import progress_percent, status_detail
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Job

FINISHED: Final = "finished"
FIRST_POLL_SECONDS: Final = 0.2

_PHASE_EXIT_CODES: Final = {
    Phase.SUCCEEDED: ExitCode.OK,
    Phase.DEAD_LETTER: ExitCode.DEAD_LETTER,
    Phase.CANCELLED: ExitCode.CANCELLED,
}


class TargetState(StrEnum):
    """Whether what is waited for has come."""

    NOT_YET = "not yet"
    REACHED = "yes"
    UNREACHABLE = "never"


@dataclass(frozen=True, slots=True)
class WaitStatus:
    """Whether to go on waiting, and with which code to end."""

    state: TargetState
    code: ExitCode = ExitCode.OK

    @property
    def decided(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        return self.state is not TargetState.NOT_YET


STILL_WAITING: Final = WaitStatus(TargetState.NOT_YET)


def evaluate_wait(job: Job, target: str) -> WaitStatus:
    """Return whether the job has come to `finished`, or to or through the phase named."""
    if target == FINISHED:
        return (
            WaitStatus(TargetState.REACHED, _PHASE_EXIT_CODES[job.phase])
            if job.finished
            else STILL_WAITING
        )
    if job.phase == target or target in _phases_passed(job):
        return WaitStatus(TargetState.REACHED)
    if not job.finished:
        return STILL_WAITING
    code = _PHASE_EXIT_CODES[job.phase]
    return WaitStatus(TargetState.UNREACHABLE, ExitCode.OTHER_END if code is ExitCode.OK else code)


def _phases_passed(job: Job) -> set[str]:
    """Return the phases it has been in; a claim is told by the attempt, not by the history."""
    run = {Phase.RUNNING.value} if job.attempt else set()
    return {one.phase for one in job.history} | run


def poll_intervals(longest: float) -> Iterator[float]:
    """Yield how long to pause between looks: short at first, since most jobs are."""
    pause = FIRST_POLL_SECONDS
    while True:
        yield min(pause, longest)
        pause = min(pause * 2, longest)


def status_line(job: Job) -> str:
    """Return how the job stands, in one line: `report-42 Running 40% rendering`."""
    return " ".join(
        filter(None, (job.id, job.phase.value, progress_percent(job), status_detail(job)))
    )
