"""CPU by program: how much of it a job costs, and whose it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from asyncjob_bench.reckoning.results import OTHERS, Row

MILLISECONDS: Final = 1000.0
CLIENT: Final = "client"
PER_JOB: Final = "cpu_ms_per_job_"
"""What the names of figures begin with that hold a program's milliseconds per job."""


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds used since some moment: by each program, and by the whole machine.

    `available` is what all cores could have given. `own` is what the benchmark itself used, with
    its children that have ended: submitters, their start included.
    """

    programs: Mapping[str, float]
    busy: float
    available: float
    own: float = 0.0

    def __sub__(self, before: "Usage") -> "Usage":
        """Return what was used between two moments."""
        used = {
            name: seconds - before.programs.get(name, 0.0)
            for name, seconds in self.programs.items()
        }
        return Usage(
            used,
            self.busy - before.busy,
            self.available - before.available,
            self.own - before.own,
        )

    def with_client(self, seconds: float) -> "Usage":
        """Return the same with a client among the programs, a child that has ended."""
        return replace(self, programs={**self.programs, CLIENT: seconds})

    @property
    def utilisation(self) -> float:
        """The share of all cores' time that was used, by whomever."""
        return self.busy / self.available if self.available else 0.0

    @property
    def foreign(self) -> float:
        """The share of all cores' time that others than programs and benchmark used."""
        more = max(0.0, self.own - self.programs.get(CLIENT, 0.0))
        rest = self.busy - sum(self.programs.values()) - more
        return max(0.0, rest / self.available) if self.available else 0.0

    def share(self, program: str) -> float:
        """Return a program's share of all cores' time."""
        return self.programs.get(program, 0.0) / self.available if self.available else 0.0

    def per_job(self, jobs: int) -> dict[str, float]:
        """Return each program's milliseconds per job."""
        return {name: used / jobs * MILLISECONDS for name, used in self.programs.items()}

    def figures(self, jobs: int) -> dict[str, float]:
        """Return the same as figures of a run, each with a name of its own."""
        per_job = self.per_job(jobs).items()
        return {f"{PER_JOB}{name.replace('-', '_')}": value for name, value in per_job}


def cpu_row(what: str, used: Usage, jobs: int) -> Row:
    """Return a row of the table of CPU per job."""
    per_job = used.per_job(jobs)
    return {
        "what": what,
        **{name: round(value, 3) for name, value in per_job.items()},
        "all ms/job": round(sum(per_job.values()), 3),
        "cores busy": round(used.utilisation, 3),
        OTHERS: round(used.foreign, 3),
    }


def merge_rounds(rows: Sequence[Row]) -> list[Row]:
    """Return one row for all rounds of the same, with the medians of its columns."""
    groups: dict[float | str, list[Row]] = {}
    for found in rows:
        groups.setdefault(found["what"], []).append(found)
    return [
        {"what": what, **{name: _median(group, name) for name in group[0] if name != "what"}}
        for what, group in groups.items()
    ]


def _median(group: Sequence[Row], name: str) -> float:
    return median(float(row[name]) for row in group if name in row)
