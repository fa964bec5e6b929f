"""What is printed: a table of scenarios and parts, and the story of each case that failed. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncjob_perturbation.case import Outcome
from asyncjob_perturbation.plan import At, Case, When

_MOST_STORY_LINES: Final = 80

_MOST_UNSAID: Final = 0.1
"""Share of all cases whose request may not have come, and of a command's that may not be judged."""

_MOST_UNSAID_OF_A_KIND: Final = 0.5
"""Share of the cases of one kind whose request may not have come, in whichever piece.

An interference that is not carried out misses all of them. A piece may well miss more than a tenth:
in the run that the page shows, reads missed 12 %, and so did the scenario `cron`; all cases, 5 %.
"""

_UNSAID_OF: Final = 20
"""Cases from which on such a share says something."""

_BUSY: Final = 0.25
"""Share of the machine that other programs take where it is they who leave our parts too little."""


@dataclass
class Row:
    """One part of one scenario."""

    scenario: str
    part: str
    calls: int = 0
    events: int = 0
    cases: int = 0
    missed: int = 0
    """Cases in which the request did not come: it depends on what is quicker."""

    open: int = 0
    """Cases that have not been run, as far as a journal knows."""

    failed: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def count(self, *, reached: bool, failed: bool, seconds: float) -> None:
        """Count a case by what came of it."""
        self.cases += 1
        self.missed += not reached
        self.failed += failed
        self.seconds += seconds
        self.longest = max(self.longest, seconds)

    def include(self, other: "Row") -> None:
        """Count what another row has counted."""
        self.calls += other.calls
        self.events += other.events
        self.cases += other.cases
        self.missed += other.missed
        self.open += other.open
        self.failed += other.failed
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)


@dataclass
class Spent:
    """What scenarios have taken: whole pieces of a run, each shared by the cases in it."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)

    def add(self, wall: float, cpu: float, cases: Mapping[str, int]) -> None:
        """Share what a piece took among the scenarios of its cases."""
        total = sum(cases.values())
        for scenario, count in cases.items():
            self.wall[scenario] = self.wall.get(scenario, 0) + wall * count / total
            self.cpu[scenario] = self.cpu.get(scenario, 0) + cpu * count / total


@dataclass
class Table:
    """All rows, in the order in which they were begun."""

    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    kinds: dict[tuple[str, str], Row] = field(
        default_factory=lambda: {(when, at): Row("", "") for when in When for at in At}
    )
    """A row for each way of interfering and what it is tied to."""

    unjudged: int = 0
    """Cases that could not be judged, because the machine was too busy."""

    def row(self, scenario: str, part: str) -> Row:
        """Return the row of a part of a scenario."""
        return self.rows.setdefault((scenario, part), Row(scenario, part))

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count a case."""
        self.count(case, reached=outcome.reached, failed=outcome.failed, seconds=outcome.seconds)

    def count(self, case: Case, *, reached: bool, failed: bool, seconds: float) -> None:
        """Count a case by what came of it."""
        for row in self._rows_of(case):
            row.count(reached=reached, failed=failed, seconds=seconds)

    def count_open(self, case: Case) -> None:
        """Count a case that has not been run."""
        for row in self._rows_of(case):
            row.open += 1

    def _rows_of(self, case: Case) -> tuple[Row, Row]:
        return self.row(case.scenario, case.part), self.kinds[case.when, case.at]

    def total(self) -> Row:
        """Return the sum."""
        total = Row("all", "")
        for row in self.rows.values():
            total.include(row)
        return total

    def by_scenario(self) -> dict[str, Row]:
        """Return one row for each scenario."""
        found: dict[str, Row] = {}
        for row in self.rows.values():
            found.setdefault(row.scenario, Row(row.scenario, "")).include(row)
        return found

    def lines(self) -> list[str]:
        """Return the table as text."""
        head = (
            "scenario",
            "part",
            "calls",
            "events",
            "cases",
            "missed",
            "failed",
            "s/case",
            "longest",
        )
        form = "{:<11} {:<9} {:>6} {:>7} {:>6} {:>7} {:>7} {:>7} {:>8}"
        rows = [*self.rows.values(), self.total()]
        return [form.format(*head), *(form.format(*_cells(row)) for row in rows)]


def complaint(table: Table, cut_off: int, others: float, whole: Table | None = None) -> str:
    """Return why a run has failed, or nothing.

    `whole` counts all cases, or a sample of all; None if what was run is a piece. `others` is the
    share of the machine that other programs took. Where that is much, cases that could not be
    judged, and those that did not end in time, are no failure. Where it is not, they are: it may be
    a part that keeps the API server busy.
    """
    total = table.total()
    if total.failed:
        return f"{total.failed} did not end as undisturbed"
    if why := _not_carried_out(table, whole):
        return why
    if others >= _BUSY:
        return ""
    if cut_off and not total.cases:
        return "no case has ended: give it more --minutes"
    begun = total.cases + table.unjudged
    allowed = _MOST_UNSAID * begun if begun >= _UNSAID_OF else max(0, begun - 1)
    if table.unjudged > allowed:
        return f"{table.unjudged} of {begun} not judged, and no other program kept the machine busy"
    return ""


def _not_carried_out(table: Table, whole: Table | None) -> str:
    """Return what was interfered with too rarely for a run to have tested anything, or nothing."""
    for (when, at), row in table.kinds.items():
        if row.cases >= _UNSAID_OF and row.missed > _MOST_UNSAID_OF_A_KIND * row.cases:
            return (
                f"in {row.missed} of {row.cases} cases of `{when}` at {at} the request or event"
                " did not come"
            )
    total = whole.total() if whole else Row("", "")
    if total.cases >= _UNSAID_OF and total.missed > _MOST_UNSAID * total.cases:
        return f"in {total.missed} of all {total.cases} cases the request or event did not come"
    return ""


def summary(table: Table, spent: Spent) -> list[str]:
    """Return a table in Markdown: one line for each scenario, as the page has it."""
    rows = table.by_scenario()
    lines = [
        "| Scenario | Requests | Events | Cases run | Open | Differences | Missed | Wall time |"
        " CPU time |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in sorted(rows.items()):
        lines.append(
            _summary_line(f"`{name}`", row, spent.wall.get(name, 0), spent.cpu.get(name, 0))
        )
    wall, cpu = (sum(one.get(name, 0) for name in rows) for one in (spent.wall, spent.cpu))
    return [*lines, _summary_line("all", table.total(), wall, cpu)]


def _summary_line(name: str, row: Row, wall: float, cpu: float) -> str:
    numbers = (row.calls, row.events, row.cases, row.open, row.failed, row.missed)
    cells = [name, *map(str, numbers), f"{wall:.0f} s", f"{cpu:.0f} s"]
    return f"| {' | '.join(cells)} |"


def by_kind(table: Table) -> list[str]:
    """Return a table in Markdown: one line for each `WHEN` and what it is tied to."""
    lines = [
        "| `WHEN` | At | Cases run | Open | Differences | Missed |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for (when, at), row in table.kinds.items():
        if not row.cases and not row.open:
            continue
        numbers = (row.cases, row.open, row.failed, row.missed)
        lines.append(f"| {' | '.join([f'`{when}`', at, *map(str, numbers)])} |")
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    mean = row.seconds / max(row.cases, 1)
    numbers = (row.calls, row.events, row.cases, row.missed, row.failed)
    return (row.scenario, row.part, *map(str, numbers), f"{mean:.1f}", f"{row.longest:.1f}")


def failure(case: Case | None, outcome: Outcome) -> list[str]:
    """Return the story of a case that failed, or of an undisturbed run."""
    where = f"{outcome.scenario.name}, {outcome.part}"
    head = f"{where}: undisturbed"
    if case:
        head = f"{where}: {case.when} call {case.number}, {case.call}"
    return [
        head,
        *_indented(map(str, outcome.differences)),
        *_indented(outcome.broken),
        *_indented(outcome.told[-_MOST_STORY_LINES:]),
        *([f"again: {case.command()}"] if case else []),
    ]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
