"""What jobs and arrays of the fake cluster depend on: which rules it breaks, and whether it is met.

What does not exist is waited for without end, as are those that wait for one another.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject, as_object, flag, items, text
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase
from asyncjob.lifecycle.arrays.state import ArrayView
from asyncjob.lifecycle.job_view import DependencyView, JobView, called
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import ARRAY_KIND
from asyncjob.rules import job_spec
from asyncjob.rules.rule import Rule

_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class DependencyEnd:
    """How far something is that others depend on; `failure` says how it ended without success."""

    finished: bool
    failure: str = ""


def end_of_job(job: JobView) -> DependencyEnd:
    """Return how far a job is."""
    if not job.finished or job.phase is Phase.SUCCEEDED:
        return DependencyEnd(job.finished)
    how = "is a dead letter" if job.phase is Phase.DEAD_LETTER else "was cancelled"
    return DependencyEnd(finished=True, failure=_failure(job.name, how, job.reason))


def end_of_array(array: ArrayView) -> DependencyEnd:
    """Return how far an array is."""
    state = array.state
    ended = state.phase in ENDED_ARRAY_PHASES
    if not ended or state.phase is ArrayPhase.SUCCEEDED:
        return DependencyEnd(ended)
    how = "has failed" if state.phase is ArrayPhase.FAILED else "was cancelled"
    return DependencyEnd(
        finished=True, failure=_failure(called(ARRAY_KIND, array.name), how, state.reason or "")
    )


def _failure(name: str, how: str, reason: str) -> str:
    return f"{name} {how} ({reason})" if reason else f"{name} {how}"


DependencyLookup = Callable[[DependencyView], DependencyEnd | None]
"""Finds what a dependency names, None if there is no such thing."""


@dataclass(frozen=True, slots=True)
class DependencyCheck:
    """Why something may not start yet, or never will; both empty if it may."""

    waiting: str = ""
    failed: str = ""


def check_dependencies(
    depends_on: Sequence[DependencyView], find: DependencyLookup
) -> DependencyCheck:
    """Return whether all dependencies are met, in the operator's words."""
    missing, unfinished = list[str](), list[str]()
    for one in depends_on:
        end = find(one)
        if end is not None and end.failure and not one.any_outcome:
            return DependencyCheck(failed=f"cannot start: {end.failure}")
        if end is None:
            missing.append(f"{one.called} (does not exist)")
        elif not end.finished:
            unfinished.append(one.called)
    names = [*missing, *unfinished]
    return DependencyCheck(f"waiting for {_join(names)}") if names else DependencyCheck()


def _join(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    if more > 0:
        return f"{', '.join(names[:_MAX_NAMED])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def broken_dependency_rules(spec: JsonObject, twice: Rule) -> Iterator[Rule]:
    """Yield the rules that a `dependsOn` breaks; `twice` is the one that none is named twice."""
    entries = [as_object(one) for one in items(spec, "dependsOn")]
    for entry in entries:
        one = ("name" in entry) != ("array" in entry)
        if not one or ("array" in entry and flag(entry, "children")):
            yield job_spec.SHAPE_DEPENDENCY
    names = [(text(entry, "name"), text(entry, "array")) for entry in entries]
    if len(set(names)) < len(names):
        yield twice


def depends_on_itself(spec: JsonObject, name: str, field: str) -> bool:
    """Return whether an object of this name is in its own `dependsOn`; `field`: name or array."""
    return any(text(as_object(one), field) == name for one in items(spec, "dependsOn"))
