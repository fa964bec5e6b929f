"""The tree that a job belongs to: who submitted it, whom it submitted, and what ran again."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from asyncjob.rest.job import JobSummary
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.rows import Row, row

UP: Final = 20
"""So many generations are looked for upwards."""

SHOWN: Final = 100
"""So many jobs of a tree are shown."""

PER_JOB: Final = 25
"""So many of one job's children are shown; a list has the others."""


@dataclass(frozen=True, slots=True)
class Relative:
    """A job, and the name of the one that it was submitted by or runs again; empty for none."""

    job: JobSummary
    parent: str = ""
    rerun_of: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A line of the tree; `more` children of it are not shown."""

    row: Row
    depth: int
    relation: str
    current: bool
    more: int = 0
    more_url: str = ""


def family(name: str, relatives: Iterable[Relative], links: Links, now: datetime) -> list[Member]:
    """Return the whole tree around a job, parents first; empty where it stands alone."""
    by_name = {one.job.id: one for one in relatives}
    below: dict[str, list[Relative]] = defaultdict(list)
    for one in by_name.values():
        below[one.rerun_of or one.parent].append(one)
    below.pop("", None)
    line = _line(name, by_name)
    members = [
        Member(
            row=row(one.job, links, now),
            depth=depth,
            relation="rerun" if one.rerun_of else ("child" if depth else ""),
            current=one.job.id == name,
            more=more,
            more_url=links.jobs(parent=one.job.id) if more else "",
        )
        for one, depth, more in islice(_walk(line, by_name, below), SHOWN)
    ]
    return members if len(members) > 1 else []


def _line(name: str, by_name: Mapping[str, Relative]) -> list[str]:
    """Return the job and those above it, the uppermost last."""
    line = [name]
    while len(line) < UP and (one := by_name.get(line[-1])):
        above = one.rerun_of or one.parent
        if above not in by_name or above in line:
            break
        line.append(above)
    return line


def _walk(
    line: list[str], by_name: Mapping[str, Relative], below: Mapping[str, list[Relative]]
) -> Iterator[tuple[Relative, int, int]]:
    """Yield each with its depth, and how many of its children are left out."""
    stack, seen = [(line[-1], 0)], {line[-1]}
    while stack:
        name, depth = stack.pop()
        if name not in by_name:
            continue
        children = [one for one in below.get(name, ()) if one.job.id not in seen]
        children.sort(key=lambda one: (one.job.created_at, one.job.id))
        late = [one for one in children[PER_JOB:] if one.job.id in line]
        kept = children[:PER_JOB] + late
        seen |= {one.job.id for one in kept}
        stack += [(one.job.id, depth + 1) for one in reversed(kept)]
        yield by_name[name], depth, len(children) - len(kept)
