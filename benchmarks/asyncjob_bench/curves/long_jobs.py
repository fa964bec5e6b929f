"""Many jobs that take long, kept alive by heartbeats."""

import time
from typing import Final

from asyncjob_bench.curves.flows import memory
from asyncjob_bench.curves.ranges import Ranges
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.ground import templates
from asyncjob_bench.ground.handlers import HOLD
from asyncjob_bench.ground.site import Site
from asyncjob_bench.parts.crew import RunningStack, start_stack
from asyncjob_bench.parts.flow import submit
from asyncjob_bench.reckoning.results import Row

LEASE_SECONDS: Final = 15
"""A quarter of the default: four times the heartbeats, so that 1,000 jobs stand for 4,000."""

LONG_JOB_WORKERS: Final = 4
RUNNING: Final = "asyncjob_worker_running"
RENEWALS: Final = "asyncjob_worker_lease_renewals_total"
RECOVERED: Final = "asyncjob_operator_recovery_recovered_total"
START_SECONDS: Final = 180.0


def over_long_jobs(site: Site, ranges: Ranges) -> list[Row]:
    """Run more and more at once, and see what keeping them alive costs."""
    rows: list[Row] = []
    for count in ranges.long_jobs:
        slots = -(-count // LONG_JOB_WORKERS)
        with (
            site.space("long") as space,
            start_stack(
                site, space, workers=LONG_JOB_WORKERS, slots=slots, options=["--grace=0"]
            ) as here,
        ):
            asked = templates.submission(kind=HOLD, leaseDurationSeconds=LEASE_SECONDS)
            submit(space, asked, count, prefix="job-")
            _until_running(here, count)
            rows.append({"jobs at once": float(count), **_watch(here, ranges.long_seconds)})
            here.stop()
    return rows


def _until_running(here: RunningStack, count: int) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while here.total(RUNNING) < count:
        if time.monotonic() > give_up_at:
            raise WrongOutcomeError(f"{count} long jobs have not begun in time")
        time.sleep(0.2)


def _watch(here: RunningStack, seconds: float) -> Row:
    renewals, failed = _renewals(here)
    before = here.site.usage(here.programs)
    time.sleep(seconds)
    used = here.site.usage(here.programs) - before
    stored, not_stored = _renewals(here)
    assert here.operator
    return {
        "heartbeats/s": (stored - renewals) / seconds,
        "failed": not_stored - failed,
        "recovered": here.operator.metrics().total(RECOVERED),
        **{f"{name} cores": value / seconds for name, value in used.programs.items()},
        **memory(here),
    }


def _renewals(here: RunningStack) -> tuple[float, float]:
    return here.total(RENEWALS, outcome="stored"), here.total(RENEWALS, outcome="failed")
