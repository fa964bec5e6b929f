"""What may be done to a job, by whoever reads its page."""

from dataclasses import dataclass

from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.rest.job import Job
from asyncjob_gateway.dashboard.allowed import Permissions


@dataclass(frozen=True, slots=True)
class JobActions:
    """What may be done to the job now, by whoever reads the page."""

    cancel: bool = False
    rerun: bool = False
    redrive: bool = False
    dismiss: bool = False
    suspend: bool = False
    resume: bool = False
    priority: bool = False

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        return any(getattr(self, name) for name in self.__slots__)


def available_actions(job: Job, allowed: Permissions) -> JobActions:
    """Return what the operator would do something about, and the reader may ask for."""
    if not allowed.control:
        return JobActions()
    dead, ended = job.phase is Phase.DEAD_LETTER, job.phase in FINISHED_PHASES
    waits = not ended and job.phase is not Phase.RUNNING
    return JobActions(
        cancel=not ended and not job.cancelling,
        rerun=ended,
        redrive=dead and not job.cancelling,
        dismiss=dead and not job.cancelling,
        suspend=waits and not job.suspended,
        resume=waits and job.suspended,
        priority=waits,
    )
