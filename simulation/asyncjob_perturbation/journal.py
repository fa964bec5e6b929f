"""What was run so far, in a file: a run of all cases may be done in pieces, and go on after an end.

Each line is a JSON object: an undisturbed run with all that cases are compared with, a case, or the
end of a piece with the CPU time that it took. Of a case that was run twice the last counts. What
was run of another product, other scenarios or other interferences does not count.
"""

import hashlib
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome
from asyncjob_perturbation.plan import Case, Part, When, all_cases
from asyncjob_perturbation.proxy import Recording
from asyncjob_perturbation.report import Spent, Table
from asyncjob_perturbation.scenarios import SCENARIOS

Pair = tuple[str, Part]
_DIGITS: Final = 12
_CASE_KEY: Final = ("scenario", "part", "call", "when")

ROOT: Final = Path(__file__).parents[2]
_OWN: Final = (
    *("calls", "end_state", "handlers", "interferences", "judge", "lagging", "people", "plan"),
    "scenarios",
)
RUN: Final = (
    *("sdk/src", "operator/src", "worker-image/src", "crds", "dev/manifests"),
    *(f"simulation/asyncjob_perturbation/{name}.py" for name in _OWN),
)
"""What decides what comes of a case: product, rules and roles, what is played and how it is judged.
Not how cases are begun, told and kept."""


@dataclass
class Journal:
    """The lines of one file, or of none: then nothing is kept beyond this run."""

    path: Path | None = None
    commit: str = ""
    content: str = ""
    """Tells what is run from what was run before something changed."""

    undisturbed: dict[Pair, Outcome] = field(default_factory=dict)
    cases: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    passes_over: bool = False
    """Whether it had cases when it was opened, which are not run again if they ended well."""

    @classmethod
    def open(cls, path: Path | None, *, whatever_was_run: bool = False) -> "Journal":
        """Read what a file has of what is run now, if there is one; or all that it has."""
        journal = cls(path, *((_commit(), content_of(ROOT)) if path else ()))
        lines = path.read_bytes().splitlines() if path and path.exists() else []
        for line in map(orjson.loads, lines):
            if whatever_was_run or line["content"] == journal.content:
                journal._take(line)
        journal.passes_over = bool(journal.cases)
        return journal

    @property
    def contents(self) -> Mapping[str, int]:
        """How many of the cases are of which content and commit."""
        return Counter(f"{line['content']}, {line['commit']}" for line in self.cases.values())

    def ended_well(self, case: Case) -> bool:
        """Return whether this case was run and ended as it should."""
        line = self.cases.get(_key(_case_line(case)))
        return line is not None and not line["differences"]

    def add_undisturbed(self, pair: Pair, outcome: Outcome) -> None:
        """Keep an undisturbed run that went well."""
        recording = outcome.recording
        self._write(
            {
                "scenario": pair[0],
                "part": pair[1],
                "state": outcome.state,
                "calls": [[call.what, call.ordinal] for call in recording.calls],
                "events": [[call.what, call.ordinal] for call in recording.events],
                "seconds": round(outcome.seconds, 1),
                **self._made_of,
            }
        )

    def add_case(self, case: Case, outcome: Outcome) -> None:
        """Keep what came of a case."""
        self._write(
            {
                **_case_line(case),
                "reached": outcome.reached,
                "differences": [*map(str, outcome.differences), *outcome.broken],
                "seconds": round(outcome.seconds, 1),
                **self._made_of,
            }
        )

    def add_spent(self, wall: float, cpu: float, cases: Mapping[str, int]) -> None:
        """Keep what a piece took, in which there were so many cases of each scenario."""
        self._write(
            {
                "wall": round(wall, 1),
                "cpu": round(cpu, 1),
                "cases": dict(cases),
                **self._made_of,
            }
        )

    @property
    def _made_of(self) -> dict[str, str]:
        return {"commit": self.commit, "content": self.content}

    def table(self) -> Table:
        """Return the table of all that was read and added."""
        table = Table()
        for (scenario, part), outcome in self.undisturbed.items():
            row = table.row(scenario, part)
            row.calls, row.events = len(outcome.recording.calls), len(outcome.recording.events)
        for line in self.cases.values():
            case = Case(line["scenario"], line["part"], 0, _call(line["call"]), When(line["when"]))
            table.count(
                case,
                reached=line["reached"],
                failed=bool(line["differences"]),
                seconds=line["seconds"],
            )
        for case in self._open_cases():
            table.count_open(case)
        return table

    def whole(self, *, chosen: bool) -> Table | None:
        """Return the table of all cases, or of a sample of all; None if it has a piece of them.

        `chosen`: scenarios, parts, requests or ways of interfering were chosen for this run.
        """
        is_sample = not chosen and not self.passes_over
        return self.table() if is_sample or self._has_all() else None

    def _has_all(self) -> bool:
        every = {(scenario, part) for scenario in SCENARIOS for part in Part}
        return every <= self.undisturbed.keys() and next(self._open_cases(), None) is None

    def _open_cases(self) -> Iterator[Case]:
        for pair, outcome in self.undisturbed.items():
            recording = outcome.recording
            for case in all_cases(*pair, recording.calls, recording.events):
                if _key(_case_line(case)) not in self.cases:
                    yield case

    def _write(self, line: dict[str, Any]) -> None:
        self._take(line)
        if self.path:
            with self.path.open("ab") as file:
                file.write(orjson.dumps(line) + b"\n")

    def _take(self, line: dict[str, Any]) -> None:
        if "cpu" in line:
            self.spent.add(line["wall"], line["cpu"], line["cases"])
        elif "call" in line:
            self.cases[_key(line)] = line
        else:
            pair = (line["scenario"], Part(line["part"]))
            recording = Recording([Call(*call) for call in line["calls"]])
            recording.events = [Call(*call) for call in line["events"]]
            self.undisturbed[pair] = Outcome(
                SCENARIOS[pair[0]], pair[1], line["state"], recording, line["seconds"]
            )


def _case_line(case: Case) -> dict[str, Any]:
    return {
        "scenario": case.scenario,
        "part": case.part,
        "call": str(case.call),
        "when": case.when,
    }


def _key(line: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(line[name]) for name in _CASE_KEY)


def _call(text: str) -> Call:
    what, _, ordinal = text.rpartition(" #")
    return Call(what, int(ordinal))


def content_of(root: Path) -> str:
    """Return a digest of all files that are run."""
    digest = hashlib.sha256()
    for path in map(root.joinpath, RUN):
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:_DIGITS]


def _commit() -> str:
    """Return the commit that is run, with a sign if something was changed since."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    return done.stdout.strip()
