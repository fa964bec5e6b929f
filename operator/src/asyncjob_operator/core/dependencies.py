"""What a job or an array depends on, as far as it is known: `dependsOn`, its parent, and cycles."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.job_view import DependencyView, JobView, called
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.waits import WaitedChild
from asyncjob.names import ARRAY_KIND, JOB_KIND
from asyncjob_operator.core.retention import FinishedJob

MAX_EDGES_FOLLOWED: Final = 2000
"""Dependencies that one search for a cycle follows: about a millisecond."""


DependencyKey = tuple[str, str, str]
"""Namespace, kind and name of what something depends on."""

MAX_DEPENDENCIES_NAMED: Final = 3
"""Unmet dependencies that a message names."""

PHASE_OF_ARRAY: Final[Mapping[str, Phase]] = {
    ArrayPhase.PENDING: Phase.PENDING,
    ArrayPhase.RUNNING: Phase.RUNNING,
    ArrayPhase.SUCCEEDED: Phase.SUCCEEDED,
    ArrayPhase.FAILED: Phase.DEAD_LETTER,
    ArrayPhase.CANCELLED: Phase.CANCELLED,
}
"""To what depends on it an array is as a job in this phase: one that has failed may be redriven."""


@dataclass(frozen=True, slots=True)
class RelatedJob:
    """Another job, as far as it matters to jobs and arrays that are related to it; or an array."""

    namespace: str
    name: str
    uid: str
    phase: Phase
    reason: str = ""
    cascades_cancel: bool = False
    """Whether its children and dependents are to be cancelled with it."""

    kind: str = JOB_KIND

    @property
    def called(self) -> str:
        """Return what people call it: its name, behind the word array if it is one."""
        return called(self.kind, self.name)

    @property
    def finished(self) -> bool:
        """Return whether it has finished; only a request by a person changes it then."""
        return self.phase in FINISHED_PHASES

    @property
    def failed(self) -> bool:
        """Return whether it has finished without success."""
        return self.finished and self.phase is not Phase.SUCCEEDED

    @property
    def outcome(self) -> str:
        """Return how it failed, for a message."""
        dead = "has failed" if self.kind == ARRAY_KIND else "is a dead letter"
        how = dead if self.phase is Phase.DEAD_LETTER else "was cancelled"
        return f"{self.called} {how} ({self.reason})" if self.reason else f"{self.called} {how}"


@dataclass(frozen=True, slots=True)
class DependencyState:
    """One entry of `dependsOn`, and the job or array that it names."""

    dependency: DependencyView
    job: RelatedJob | None = None
    """The job or array, None if none of this name exists."""

    open_children: bool = False
    """Whether a child of the job is unfinished, if the entry waits for children as well."""

    failed_child: RelatedJob | None = None
    """A child of the job that failed, if the entry waits for children as well."""

    unlisted: bool = False
    """Whether it is an array that may exist: they have not been listed yet, or may not be."""

    @property
    def missing(self) -> bool:
        """Return whether it is known not to exist."""
        return self.job is None and not self.unlisted

    @property
    def failed_job(self) -> RelatedJob | None:
        """Return the job or child whose failure makes the dependency impossible, or None."""
        if self.dependency.any_outcome or self.job is None:
            return None
        return self.job if self.job.failed else self.failed_child

    @property
    def cascading_job(self) -> RelatedJob | None:
        """Return the job or child whose cancellation cascades to the dependent job, or None."""
        if self.dependency.any_outcome:
            return None
        return next(
            (job for job in (self.job, self.failed_child) if job and job.cascades_cancel), None
        )

    @property
    def met(self) -> bool:
        """Return whether the dependency is met."""
        done = self.job is not None and self.job.finished and not self.open_children
        return done and self.failed_job is None


@dataclass(frozen=True, slots=True)
class AwaitedChildren:
    """The children that a parked job waits for, as far as they are known."""

    open: frozenset[str] = frozenset()
    """UIDs of those that have not finished."""

    absent: frozenset[str] = frozenset()
    """UIDs of those that are not known, not even as deleted: they may not be seen yet, as an array
    may not though all jobs are: its watch is another one."""


def awaited_children(job: JobView) -> Iterator[WaitedChild]:
    """Yield the children that a job is parked for."""
    for wait in job.waiting:
        yield from wait.children


NO_AWAITED_CHILDREN: Final = AwaitedChildren()


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All dependencies of a job or an array, and the parent of a job."""

    states: tuple[DependencyState, ...] = ()
    """The entries of `dependsOn`; empty once it has started or has finished."""

    parent: RelatedJob | None = None
    cycle: tuple[RelatedJob, ...] = ()
    """Those that wait for one another, this one first; empty if it is in no cycle."""

    awaited: AwaitedChildren = NO_AWAITED_CHILDREN
    """The children that it is parked for."""

    @property
    def missing(self) -> tuple[DependencyView, ...]:
        """Return the dependencies that do not exist."""
        return tuple(state.dependency for state in self.states if state.missing)

    @property
    def unmet(self) -> tuple[DependencyState, ...]:
        """Return the unmet dependencies, those that do not exist first."""
        unmet = (state for state in self.states if not state.met)
        return tuple(sorted(unmet, key=lambda state: state.job is not None))

    @property
    def failed_job(self) -> RelatedJob | None:
        """Return a job whose failure makes a dependency impossible, or None."""
        return next((state.failed_job for state in self.states if state.failed_job), None)

    @property
    def cascading_job(self) -> RelatedJob | None:
        """Return a dependency whose cancellation cascades to what depends on it, or None."""
        if not self.states:
            return None  # most jobs, and each is asked at each change
        return next((state.cascading_job for state in self.states if state.cascading_job), None)

    @property
    def with_children(self) -> tuple[DependencyState, ...]:
        """Return the dependencies that wait for children as well."""
        return tuple(state for state in self.states if state.dependency.children)


NO_DEPENDENCIES: Final = Dependencies()


def dependency_key(namespace: str, dependency: DependencyView) -> DependencyKey:
    """Return by what the dependents of a job or an array are found."""
    return (namespace, dependency.kind, dependency.name)


def waiting_message(unmet: Sequence[DependencyState]) -> str:
    """Return which dependencies are waited for."""
    names = [_dependency_text(state) for state in unmet[:MAX_DEPENDENCIES_NAMED]]
    more = len(unmet) - MAX_DEPENDENCIES_NAMED
    if more > 0:
        return f"waiting for {', '.join(names)} and {more} more"
    return f"waiting for {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def _dependency_text(state: DependencyState) -> str:
    name = state.dependency.called
    if state.missing:
        return f"{name} (does not exist)"
    if state.job is not None and state.job.finished and state.open_children:
        return f"children of {name}"
    return name


def related_job(job: JobView | FinishedJob) -> RelatedJob:
    """Return what matters of a job to related jobs."""
    return RelatedJob(job.namespace, job.name, job.uid, job.phase, job.reason, job.cascades_cancel)


def find_cycle(
    start: str, waits_for: Callable[[str], Iterable[str]], limit: int = MAX_EDGES_FOLLOWED
) -> tuple[str, ...]:
    """Return the jobs of a cycle through `start`, which comes first; empty if none is found.

    The search gives up after following `limit` dependencies.
    """
    came_from: dict[str, str] = {}
    queue, followed = deque([start]), 0
    while queue:
        current = queue.popleft()
        for dependency in waits_for(current):
            followed += 1
            if followed > limit:
                return ()
            if dependency == start:
                return _path(start, current, came_from)
            if dependency not in came_from:
                came_from[dependency] = current
                queue.append(dependency)
    return ()


def _path(start: str, end: str, came_from: dict[str, str]) -> tuple[str, ...]:
    path = [end]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))
