"""What was run so far, in a file: a run of all cases may be done in pieces, and go on after an end.

Each line is a JSON object: an undisturbed run with all that cases are compared with, a case, or the
end of a piece with the CPU time that it took. Of a case that was run twice the last counts.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome
from asyncjob_perturbation.plan import Case, Part
from asyncjob_perturbation.proxy import Recording
from asyncjob_perturbation.report import Spent, Table
from asyncjob_perturbation.scenarios import SCENARIOS

Pair = tuple[str, Part]
_CASE_KEY: Final = ("scenario", "part", "call", "when")


@dataclass
class Journal:
    """The lines of one file, or of none: then nothing is kept beyond this run."""

    path: Path | None = None
    commit: str = ""
    undisturbed: dict[Pair, Outcome] = field(default_factory=dict)
    cases: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)

    @classmethod
    def open(cls, path: Path | None) -> "Journal":
        """Read what a file has, if there is one."""
        journal = cls(path, _commit() if path else "")
        if path and path.exists():
            for line in path.read_bytes().splitlines():
                journal._take(orjson.loads(line))
        return journal

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
                "commit": self.commit,
            }
        )

    def add_spent(self, wall: float, cpu: float, cases: Mapping[str, int]) -> None:
        """Keep what a piece took, in which there were so many cases of each scenario."""
        self._write(
            {
                "wall": round(wall, 1),
                "cpu": round(cpu, 1),
                "cases": dict(cases),
                "commit": self.commit,
            }
        )

    def table(self) -> Table:
        """Return the table of all that the file has."""
        table = Table()
        for (scenario, part), outcome in self.undisturbed.items():
            row = table.row(scenario, part)
            row.calls, row.events = len(outcome.recording.calls), len(outcome.recording.events)
        for line in self.cases.values():
            table.row(line["scenario"], line["part"]).count(
                reached=line["reached"], failed=bool(line["differences"]), seconds=line["seconds"]
            )
        return table

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
