"""The tree that a job belongs to: who submitted it, whom it submitted, and what ran again."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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

    @property
    def above(self) -> str:
        """The one that it hangs below."""
        return self.rerun_of or self.parent


@dataclass(frozen=True, slots=True)
class Member:
    """A line of the tree; `more` children of it are not shown."""

    row: Row
    depth: int
    relation: str
    current: bool
    more: int = 0
    more_url: str = ""


_Below = Mapping[str, Sequence[Relative]]


def family(name: str, relatives: Iterable[Relative], links: Links, now: datetime) -> list[Member]:
    """Return the tree around a job, parents first; empty where it stands alone.

    Of a large one, those above the job and those nearest to it.
    """
    by_name = {one.job.id: one for one in relatives}
    below: dict[str, list[Relative]] = defaultdict(list)
    for one in by_name.values():
        below[one.above].append(one)
    line = _line(name, by_name)
    shown = _chosen(line, below)
    members = [
        Member(
            row=row(one.job, links, now),
            depth=depth,
            relation="rerun" if one.rerun_of else ("child" if depth else ""),
            current=one.job.id == name,
            more=more,
            more_url=links.jobs(parent=one.job.id) if more else "",
        )
        for one, depth, more in _walk(line[-1], shown, by_name, below)
    ]
    return members if len(members) > 1 else []


def _line(name: str, by_name: Mapping[str, Relative]) -> list[str]:
    """Return the job and those above it, the uppermost last."""
    line = [name]
    while len(line) < UP and (one := by_name.get(line[-1])):
        if one.above not in by_name or one.above in line:
            break
        line.append(one.above)
    return line


def _chosen(line: Sequence[str], below: _Below) -> set[str]:
    """Return who is shown: the line, then generation by generation, from the job itself on."""
    chosen, waiting = set(line), deque(line)
    while waiting and len(chosen) < SHOWN:
        children = [one.job.id for one in _by_age(below.get(waiting.popleft(), ()))]
        room = max(0, min(SHOWN - len(chosen), PER_JOB - len(chosen.intersection(children))))
        added = [child for child in children if child not in chosen][:room]
        chosen.update(added)
        waiting.extend(added)
    return chosen


def _walk(
    top: str, shown: set[str], by_name: Mapping[str, Relative], below: _Below
) -> Iterator[tuple[Relative, int, int]]:
    """Yield each with its depth, and how many of its children are left out."""
    stack, seen = [(top, 0)], {top}
    while stack:
        name, depth = stack.pop()
        if name not in by_name:
            continue
        children = [one for one in _by_age(below.get(name, ())) if one.job.id not in seen]
        kept = [one.job.id for one in children if one.job.id in shown]
        seen.update(kept)
        stack += [(child, depth + 1) for child in reversed(kept)]
        yield by_name[name], depth, len(children) - len(kept)


def _by_age(jobs: Iterable[Relative]) -> list[Relative]:
    return sorted(jobs, key=lambda one: (one.job.created_at, one.job.id))
