"""Many jobs that take long, kept alive by heartbeats."""

import time
from typing import Final

from asyncjob_bench.curves.flows import memory
from asyncjob_bench.curves.ranges import Ranges
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.ground import templates
from asyncjob_bench.ground.handlers import SLEEP
from asyncjob_bench.ground.site import Site
from asyncjob_bench.parts.flow import Crew, crew, submit
from asyncjob_bench.reckoning.results import Row

LEASE_SECONDS: Final = 15
"""A quarter of the default: four times the heartbeats, so that 1,000 jobs stand for 4,000."""

HANDLER_SECONDS: Final = 3600
WORKERS: Final = 4
RUNNING: Final = "asyncjob_worker_running"
RENEWALS: Final = "asyncjob_worker_lease_renewals_total"
RECOVERED: Final = "asyncjob_operator_recovery_recovered_total"
START_SECONDS: Final = 180.0


def over_long_jobs(site: Site, ranges: Ranges) -> list[Row]:
    """Run more and more at once, and see what keeping them alive costs."""
    rows: list[Row] = []
    for count in ranges.long_jobs:
        slots = -(-count // WORKERS)
        with (
            site.space("long") as space,
            crew(site, space, workers=WORKERS, slots=slots, options=["--grace=0"]) as here,
        ):
            submit(space, _job(), count, prefix="job-")
            _until_running(here, count)
            rows.append({"jobs at once": float(count), **_watch(here, ranges.long_seconds)})
            here.stop()
    return rows


def _job() -> dict[str, object]:
    body = templates.job("", kind=SLEEP, leaseDurationSeconds=LEASE_SECONDS)
    return {**body, "spec": {**body["spec"], "payload": HANDLER_SECONDS}}


def _until_running(here: Crew, count: int) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while _total(here, RUNNING) < count:
        if time.monotonic() > give_up_at:
            raise WrongOutcomeError(f"{count} long jobs have not begun in time")
        time.sleep(0.2)


def _watch(here: Crew, seconds: float) -> Row:
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


def _renewals(here: Crew) -> tuple[float, float]:
    return _total(here, RENEWALS, outcome="stored"), _total(here, RENEWALS, outcome="failed")


def _total(here: Crew, name: str, **labels: str) -> float:
    return sum(worker.metrics().total(name, **labels) for worker in here.workers)
