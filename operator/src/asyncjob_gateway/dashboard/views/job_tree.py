"""The tree that a job belongs to: its parents, its children and its reruns."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.rest.jobs import JobSummary
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.rows import JobRow, job_row

MAX_ANCESTORS: Final = 20
"""How many generations are looked for upwards."""

MAX_TREE_JOBS: Final = 100
"""How many jobs of a tree are shown."""

MAX_CHILDREN_PER_JOB: Final = 25
"""How many of one job's children are shown; a list has the others."""


@dataclass(frozen=True, slots=True)
class LinkedJob:
    """A job, and the name of the one that it was submitted by or runs again; empty for none."""

    job: JobSummary
    parent: str = ""
    rerun_of: str = ""

    @property
    def parent_in_tree(self) -> str:
        """The one that it hangs below."""
        return self.rerun_of or self.parent


@dataclass(frozen=True, slots=True)
class JobTreeRow:
    """A line of the tree; `more` children of it are not shown."""

    row: JobRow
    depth: int
    relation: str
    current: bool
    more: int = 0
    more_url: str = ""


_ChildrenByName = Mapping[str, Sequence[LinkedJob]]


def job_tree(
    name: str, linked_jobs: Iterable[LinkedJob], links: Links, now: datetime
) -> list[JobTreeRow]:
    """Return the tree around a job, parents first; empty where it stands alone.

    Of a large one, those above the job and those nearest to it.
    """
    by_name = {one.job.id: one for one in linked_jobs}
    below: dict[str, list[LinkedJob]] = defaultdict(list)
    for one in by_name.values():
        below[one.parent_in_tree].append(one)
    line = _ancestors(name, by_name)
    shown = _select_shown(line, below)
    members = [
        JobTreeRow(
            row=job_row(one.job, links, now),
            depth=depth,
            relation="rerun" if one.rerun_of else ("child" if depth else ""),
            current=one.job.id == name,
            more=more,
            more_url=links.jobs(parent=one.job.id) if more else "",
        )
        for one, depth, more in _walk_tree(line[-1], shown, by_name, below)
    ]
    return members if len(members) > 1 else []


def _ancestors(name: str, by_name: Mapping[str, LinkedJob]) -> list[str]:
    """Return the job and those above it, the uppermost last."""
    line = [name]
    while len(line) < MAX_ANCESTORS and (one := by_name.get(line[-1])):
        if one.parent_in_tree not in by_name or one.parent_in_tree in line:
            break
        line.append(one.parent_in_tree)
    return line


def _select_shown(ancestors: Sequence[str], children_by_name: _ChildrenByName) -> set[str]:
    """Return who is shown: the line, then generation by generation, from the job itself on."""
    chosen, waiting = set(ancestors), deque(ancestors)
    while waiting and len(chosen) < MAX_TREE_JOBS:
        children = [one.job.id for one in _by_age(children_by_name.get(waiting.popleft(), ()))]
        left = max(
            0,
            min(
                MAX_TREE_JOBS - len(chosen),
                MAX_CHILDREN_PER_JOB - len(chosen.intersection(children)),
            ),
        )
        added = [child for child in children if child not in chosen][:left]
        chosen.update(added)
        waiting.extend(added)
    return chosen


def _walk_tree(
    top: str, shown: set[str], by_name: Mapping[str, LinkedJob], children_by_name: _ChildrenByName
) -> Iterator[tuple[LinkedJob, int, int]]:
    """Yield each with its depth, and how many of its children are left out."""
    stack, seen = [(top, 0)], {top}
    while stack:
        name, depth = stack.pop()
        if name not in by_name:
            continue
        children = [
            one for one in _by_age(children_by_name.get(name, ())) if one.job.id not in seen
        ]
        kept = [one.job.id for one in children if one.job.id in shown]
        seen.update(kept)
        stack += [(child, depth + 1) for child in reversed(kept)]
        yield by_name[name], depth, len(children) - len(kept)


def _by_age(jobs: Iterable[LinkedJob]) -> list[LinkedJob]:
    return sorted(jobs, key=lambda one: (one.job.created_at, one.job.id))
