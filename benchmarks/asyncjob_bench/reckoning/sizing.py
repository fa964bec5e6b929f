"""From milliseconds per job to cores for a rate: the arithmetic behind the sizing table."""

from collections.abc import Mapping
from math import ceil
from typing import Final

from asyncjob_bench.reckoning.budget import PER_JOB
from asyncjob_bench.reckoning.results import Row

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

MILLISECONDS: Final = 1000.0


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
