"""CPU by program: how much of it a job costs, whose it was, and how many cores a rate takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median
from typing import Final

from asyncjob_bench.stats.results import OTHERS, Row

MILLISECONDS: Final = 1000.0
CLIENT: Final = "client"
API_SERVER: Final = "kube-apiserver"
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

    def jobs_per_core_second(self, jobs: int, program: str) -> float:
        """Return how many jobs one core of a program's carries in a second; 0 if it used nothing.

        That is a rate over the cores that the program used meanwhile.
        """
        used = self.programs.get(program, 0.0)
        return jobs / used if used else 0.0

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


SIZING_RATES: Final = (10, 100, 1000)
HEADROOM: Final = 0.6
"""No core is planned to be busier than this share: bursts, and the other things a cluster does."""

CLUSTER_RATES: Final = (1000, 3000, 10_000)
"""Rates at which one cluster becomes several."""

CLUSTER_CORES: Final = 3 * 16
"""Of all API servers of a large cluster; etcd has machines of its own."""

ETCD_WRITES: Final = 10_000
"""A second, of one etcd on a fast disk; its makers measured several times as many."""

WRITES_PER_JOB: Final = 3


def sizing(medians: Mapping[str, float]) -> list[Row]:
    """Return the cores that each program needs for each rate, from its CPU per plain job."""
    per_job = {
        key.removeprefix(PER_JOB): value
        for key, value in medians.items()
        if key.startswith(PER_JOB)
    }
    return [_sizing_row(rate, per_job) for rate in SIZING_RATES] if per_job else []


def _sizing_row(rate: int, per_job: Mapping[str, float]) -> Row:
    return {
        "jobs/s": float(rate),
        "writes/s": float(WRITES_PER_JOB * rate),
        **{f"{name} cores": cores(rate, ms) for name, ms in per_job.items()},
    }


def cluster_sizing(medians: Mapping[str, float]) -> list[Row]:
    """Return how many processes and clusters carry rates beyond one machine's."""
    api, operator, workers = (
        medians.get(f"{PER_JOB}{name}") for name in ("kube_apiserver", "operator", "workers")
    )
    if api is None or operator is None or workers is None:
        return []
    return [_cluster_row(rate, api, operator, workers) for rate in CLUSTER_RATES]


def _cluster_row(rate: int, api: float, operator: float, workers: float) -> Row:
    """Return one row; a process in Python has one core, an operator may serve some namespaces."""
    writes = WRITES_PER_JOB * rate
    clusters = max(ceil(cores(rate, api) / CLUSTER_CORES), ceil(writes / ETCD_WRITES))
    return {
        "jobs/s": float(rate),
        "writes/s": float(writes),
        "API server cores": float(ceil(cores(rate, api))),
        "operators": float(ceil(cores(rate, operator))),
        "worker processes": float(ceil(cores(rate, workers))),
        "clusters": float(clusters),
    }


def cores(rate: float, ms_per_job: float) -> float:
    """Return cores for a rate, with headroom."""
    return round(rate * ms_per_job / MILLISECONDS / HEADROOM, 2)
