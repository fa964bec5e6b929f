"""From milliseconds per job to cores for a rate: the arithmetic behind the sizing table."""

from collections.abc import Mapping
from typing import Final

from asyncjob_bench.reckoning.results import Row

RATES: Final = (10, 100, 1000)
HEADROOM: Final = 0.6
"""No core is planned to be busier than this share: bursts, and the other things a cluster does."""

MILLISECONDS: Final = 1000.0
PREFIX: Final = "cpu_ms_per_job_"


def sizing(medians: Mapping[str, float]) -> list[Row]:
    """Return the cores that each program needs for each rate, from its CPU per plain job."""
    per_job = {
        key.removeprefix(PREFIX): value for key, value in medians.items() if key.startswith(PREFIX)
    }
    return [_for(rate, per_job) for rate in RATES] if per_job else []


def _for(rate: int, per_job: Mapping[str, float]) -> Row:
    return {
        "jobs/s": float(rate),
        "writes/s": 3.0 * rate,
        **{f"{name} cores": cores(rate, ms) for name, ms in per_job.items()},
    }


def cores(rate: float, ms_per_job: float) -> float:
    """Return cores for a rate, with headroom."""
    return round(rate * ms_per_job / MILLISECONDS / HEADROOM, 2)
