"""How a job depends on others: `spec.dependsOn`, its parent, and cycles of jobs.

All of it as far as the other jobs are known.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.job_view import DependencyView, JobView
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob_operator.core.retention import FinishedJob

MAX_EDGES_FOLLOWED: Final = 2000
"""So many dependencies are followed: about a millisecond."""


def find_cycle(
    start: str, waits_for: Callable[[str], Iterable[str]], limit: int = MAX_EDGES_FOLLOWED
) -> tuple[str, ...]:
    """Return the jobs of the cycle, `start` first, or nothing if there is none within the limit."""
    came_from: dict[str, str] = {}
    queue, followed = deque([start]), 0
    while queue and followed < limit:
        here = queue.popleft()
        for there in waits_for(here):
            followed += 1
            if there == start:
                return _path(start, here, came_from)
            if there not in came_from:
                came_from[there] = here
                queue.append(there)
    return ()


def _path(start: str, end: str, came_from: dict[str, str]) -> tuple[str, ...]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))


@dataclass(frozen=True, slots=True)
class RelatedJob:
    """Another job. `cascades_cancel`: what hangs on it is to be cancelled with it."""

    namespace: str
    name: str
    uid: str
    phase: Phase
    reason: str = ""
    cascades_cancel: bool = False

    @property
    def finished(self) -> bool:
        """Return whether nothing happens to it without a person."""
        return self.phase in FINISHED_PHASES

    @property
    def failed(self) -> bool:
        """Return whether it has finished without success."""
        return self.finished and self.phase is not Phase.SUCCEEDED

    @property
    def outcome(self) -> str:
        """Return in words how it failed."""
        how = "is a dead letter" if self.phase is Phase.DEAD_LETTER else "was cancelled"
        return f"{self.name} {how} ({self.reason})" if self.reason else f"{self.name} {how}"


def related_job(job: JobView | FinishedJob) -> RelatedJob:
    """Return a job as another is tied to it."""
    return RelatedJob(job.namespace, job.name, job.uid, job.phase, job.reason, job.cascades_cancel)


@dataclass(frozen=True, slots=True)
class DependencyState:
    """One entry of `dependsOn`; `job` is None where there is none of that name.

    `open_children` and `failed_child` are about the job's children, if these are waited for.
    """

    dependency: DependencyView
    job: RelatedJob | None = None
    open_children: bool = False
    failed_child: RelatedJob | None = None

    @property
    def failed_job(self) -> RelatedJob | None:
        """Return the job that ended as it must not, or None."""
        if self.dependency.any_outcome or self.job is None:
            return None
        return self.job if self.job.failed else self.failed_child

    @property
    def cascading_job(self) -> RelatedJob | None:
        """Return a job that has been, or is to be, cancelled together with who waits for it."""
        if self.dependency.any_outcome:
            return None
        return next(
            (one for one in (self.job, self.failed_child) if one and one.cascades_cancel), None
        )

    @property
    def met(self) -> bool:
        """Return whether what is waited for has come about."""
        done = self.job is not None and self.job.finished and not self.open_children
        return done and self.failed_job is None


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All of a job's. `states` are empty once it has started or has finished.

    `cycle` are the jobs that wait for one another, this one first.
    """

    states: tuple[DependencyState, ...] = ()
    parent: RelatedJob | None = None
    cycle: tuple[RelatedJob, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of the jobs that do not exist."""
        return tuple(need.dependency.name for need in self.states if need.job is None)

    @property
    def unmet(self) -> tuple[DependencyState, ...]:
        """Return what is still waited for, what does not exist first."""
        unmet = (need for need in self.states if not need.met)
        return tuple(sorted(unmet, key=lambda need: need.job is not None))

    @property
    def failed_job(self) -> RelatedJob | None:
        """Return a job that ended as it must not, or None."""
        return next((need.failed_job for need in self.states if need.failed_job), None)

    @property
    def with_children(self) -> tuple[DependencyState, ...]:
        """Return the needs that children have to meet, too."""
        return tuple(need for need in self.states if need.dependency.children)


NO_DEPENDENCIES: Final = Dependencies()
