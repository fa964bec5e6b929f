"""What a wait waits for, and how it ended: decided from the job as it is. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.job_rows import percent, why
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Job

FINISHED: Final = "finished"
FIRST_PAUSE: Final = 0.2

_ENDS: Final = {
    Phase.SUCCEEDED: ExitCode.OK,
    Phase.DEAD_LETTER: ExitCode.DEAD_LETTER,
    Phase.CANCELLED: ExitCode.CANCELLED,
}


class Come(StrEnum):
    """Whether what is waited for has come."""

    NOT_YET = "not yet"
    YES = "yes"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to go on waiting, and with which code to end."""

    come: Come
    code: ExitCode = ExitCode.OK

    @property
    def settled(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        return self.come is not Come.NOT_YET


NOT_YET: Final = Verdict(Come.NOT_YET)


def judge(job: Job, target: str) -> Verdict:
    """Return whether the job has come to `finished`, or to or through the phase named."""
    if target == FINISHED:
        return Verdict(Come.YES, _ENDS[job.phase]) if job.finished else NOT_YET
    if job.phase == target or target in _phases_of(job):
        return Verdict(Come.YES)
    if not job.finished:
        return NOT_YET
    code = _ENDS[job.phase]
    return Verdict(Come.NEVER, ExitCode.OTHER_END if code is ExitCode.OK else code)


def _phases_of(job: Job) -> set[str]:
    """Return the phases it has been in; a claim is told by the attempt, not by the history."""
    run = {Phase.RUNNING.value} if job.attempt else set()
    return {one.phase for one in job.history} | run


def pauses_of(longest: float) -> Iterator[float]:
    """Yield how long to pause between looks: short at first, since most jobs are."""
    pause = FIRST_PAUSE
    while True:
        yield min(pause, longest)
        pause = min(pause * 2, longest)


def line(job: Job) -> str:
    """Return how the job stands, in one line: `report-42 Running 40% rendering`."""
    return " ".join(filter(None, (job.id, job.phase.value, percent(job), why(job))))
