"""Whether retention keeps up with the flow: finished jobs beyond those that are to be kept."""

import time
from typing import Final

from asyncjob_bench.curves.flows import FLOW_WORKERS, SLOTS, memory
from asyncjob_bench.curves.ranges import Ranges
from asyncjob_bench.ground import templates
from asyncjob_bench.ground.served import ManagedWorker
from asyncjob_bench.ground.site import Site
from asyncjob_bench.parts.crew import start_stack
from asyncjob_bench.parts.flow import submit
from asyncjob_bench.reckoning.results import Row
from asyncjob_dev.readiness import wait_until

RETENTION_OPTIONS: Final = ("--retention-min-age=0", "--retention-interval=1")
RETENTION_RATES: Final = (100, 1000)
"""Removals a second: the default, and one that no flow here exceeds."""

CATCH_UP_SECONDS: Final = 180.0
REMOVED: Final = "asyncjob_operator_retention_removed_total"


def over_retained(site: Site, ranges: Ranges) -> list[Row]:
    """Keep so many of the jobs that flow, and count what is left over at the flow's end."""
    points = [(kept, rate) for kept in ranges.retained for rate in RETENTION_RATES]
    return [_keeping(site, kept, rate, ranges.jobs) for kept, rate in points]


def _keeping(site: Site, kept: int, rate: int, jobs: int) -> Row:
    options = [*RETENTION_OPTIONS, f"--retention-rate={rate}", f"--retention-max-finished={kept}"]
    with (
        site.space("retention") as space,
        start_stack(
            site, space, workers=FLOW_WORKERS, slots=SLOTS // FLOW_WORKERS, operator=options
        ) as here,
    ):
        assert here.operator
        began = time.monotonic()
        submit(space, templates.submission(), jobs, prefix="job-")
        here.wait_finished(jobs)
        flowed = time.monotonic()
        left = sum(1 for _ in space.jobs())
        _until_removed(here.operator, jobs - kept)
        row: Row = {
            "kept": float(kept),
            "at most/s": float(rate),
            "jobs/s": jobs / (flowed - began),
        }
        row["beyond at the end"] = float(max(0, left - kept))
        return {**row, "caught up after s": time.monotonic() - flowed, **memory(here)}


def _until_removed(operator: ManagedWorker, removed: int) -> None:
    wait_until(
        lambda: operator.metrics().total(REMOVED) >= removed,
        f"the removal of {removed} finished jobs",
        within=CATCH_UP_SECONDS,
    )
