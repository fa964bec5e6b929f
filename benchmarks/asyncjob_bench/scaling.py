"""How it scales.

Each curve is measured on a control plane of its own, point by point, over the number of objects, of
workers, of long jobs, of items, the size of payloads, and the flow that retention has to keep up
with.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asyncjob_bench.harness import templates
from asyncjob_bench.harness.handlers import HOLD
from asyncjob_bench.harness.site import Site, site
from asyncjob_bench.harness.space import ManagedWorker
from asyncjob_bench.parts.arrays import array_requests, run_array, wait_no_chunks
from asyncjob_bench.parts.conflicts import ratio
from asyncjob_bench.parts.flow import (
    Flow,
    RunningStack,
    run_flow,
    stack_in,
    start_stack,
    submit,
)
from asyncjob_bench.parts.operator_load import park
from asyncjob_bench.stats.results import OTHERS, Row
from asyncjob_dev.process import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Points of all curves. `jobs` go through at each point, after a warm-up."""

    jobs: int
    warm_up: int
    objects: tuple[int, ...]
    workers: tuple[int, ...]
    payload_bytes: tuple[int, ...]
    long_jobs: tuple[int, ...]
    long_seconds: float
    retained: tuple[int, ...]
    items: tuple[int, ...]


FULL: Final = Ranges(
    jobs=1000,
    warm_up=200,
    objects=(1000, 10_000, 50_000, 100_000),
    workers=(1, 2, 4, 8, 16, 32, 64),
    payload_bytes=(100, 1024, 4096, 16_384, 102_400),
    long_jobs=(1, 10, 100, 300, 1000),
    long_seconds=30.0,
    retained=(200, 500),
    items=(10_000, 100_000, 1_000_000),
)

SMALL: Final = Ranges(
    jobs=100,
    warm_up=20,
    objects=(100, 500),
    workers=(1, 2, 4),
    payload_bytes=(100, 102_400),
    long_jobs=(1, 20),
    long_seconds=6.0,
    retained=(20, 50),
    items=(1000, 5000),
)

RANGES: Final = {"full": FULL, "small": SMALL}
"""By the name of the scale."""


SLOTS = 16
FLOW_SIZE: Final[Mapping[str, Any]] = {"workers": 2, "slots": SLOTS // 2}


def over_objects(site: Site, ranges: Ranges) -> list[Row]:
    """Let jobs flow beside more and more that wait in another queue of the namespace."""
    rows: list[Row] = []
    there = 0
    with site.space("objects") as space:
        for count in ranges.objects:
            park(space, there, count)
            there = count
            with start_stack(site, space, **FLOW_SIZE) as here:
                done = run_flow(here, ranges.jobs, warm_up=ranges.warm_up, prefix=f"of-{count}-")
                rows.append({"objects": float(count), **_flow_row(here, done)})
                here.stop()
    return rows


def over_workers(site: Site, ranges: Ranges) -> list[Row]:
    """Share 16 slots out among more and more processes; beyond 16 each has one."""
    rows: list[Row] = []
    for count in ranges.workers:
        slots = max(1, SLOTS // count)
        with stack_in(site, "workers", workers=count, slots=slots) as here:
            done = run_flow(here, ranges.jobs, warm_up=ranges.warm_up)
            conflicts = ratio(here.workers)
            rows.append({"workers": float(count), **_flow_row(here, done), "conflicts": conflicts})
    return rows


def over_payloads(site: Site, ranges: Ranges) -> list[Row]:
    """Let payloads grow."""
    rows: list[Row] = []
    for size in ranges.payload_bytes:
        with stack_in(site, "payload", **FLOW_SIZE) as here:
            done = run_flow(here, ranges.jobs, warm_up=ranges.warm_up, size=size)
            rows.append({"payload bytes": float(size), **_flow_row(here, done)})
    return rows


def _flow_row(here: RunningStack, done: Flow) -> Row:
    used = done.used
    return {
        "jobs/s": done.rate,
        "cores busy": used.utilisation,
        OTHERS: used.foreign,
        **memory(here),
    }


def memory(here: RunningStack) -> Row:
    """Return what each part occupies, the largest of the workers for all of them."""
    found: Row = {f"{name} MiB": mib for name, mib in here.site.memory().items()}
    if here.operator:
        found["operator MiB"] = here.operator.resident_mib
    if here.workers:
        found["a worker MiB"] = max(worker.resident_mib for worker in here.workers)
    return found


LEASE_SECONDS: Final = 15
"""A quarter of the default: four times the heartbeats, so that 1,000 jobs stand for 4,000."""

LONG_JOB_WORKERS: Final = 4
RUNNING: Final = "asyncjob_worker_running"
RENEWALS: Final = "asyncjob_worker_lease_renewals_total"
RECOVERED: Final = "asyncjob_operator_recovery_recovered_total"
START_SECONDS: Final = 180.0
START_POLL_SECONDS: Final = 0.2


def over_long_jobs(site: Site, ranges: Ranges) -> list[Row]:
    """Run more and more at once, and see what keeping them alive costs."""
    rows: list[Row] = []
    for count in ranges.long_jobs:
        slots = -(-count // LONG_JOB_WORKERS)
        with stack_in(
            site, "long", workers=LONG_JOB_WORKERS, slots=slots, options=["--grace=0"]
        ) as here:
            asked = templates.submission(kind=HOLD, leaseDurationSeconds=LEASE_SECONDS)
            submit(here.space, asked, count, prefix="job-")
            _until_running(here, count)
            rows.append({"jobs at once": float(count), **_watch(here, ranges.long_seconds)})
            here.stop()
    return rows


def _until_running(here: RunningStack, count: int) -> None:
    wait_until(
        lambda: here.total(RUNNING) >= count,
        f"the start of {count} long jobs",
        within=START_SECONDS,
        every=START_POLL_SECONDS,
    )


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
    with stack_in(site, "retention", operator=options, **FLOW_SIZE) as here:
        assert here.operator
        began = time.monotonic()
        submit(here.space, templates.submission(), jobs, prefix="job-")
        here.wait_finished(jobs)
        flowed = time.monotonic()
        left = sum(1 for _ in here.space.jobs())
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


STORED_BYTES: Final = "apiserver_storage_size_bytes"
MIB: Final = 2.0**20
ITEM_WORKERS: Final[Mapping[str, Any]] = {"workers": 2, "slots": 32}
"""As for the bars of arrays."""


def over_items(site: Site, ranges: Ranges) -> list[Row]:
    """Let an array have more and more items that do nothing."""
    rows: list[Row] = []
    for count in ranges.items:
        with stack_in(site, "items", **ITEM_WORKERS) as here:
            run_array(here, "warm-up", ranges.items[0])
            asked = array_requests(site)
            done = run_array(here, "array", count)
            wait_no_chunks(here.space)
            writes = array_requests(site) - asked
            rows.append(
                {
                    "items": float(count),
                    "s": done.seconds,
                    "items/s": done.rate,
                    "cores busy": done.used.utilisation,
                    OTHERS: done.used.foreign,
                    "writes": writes,
                    "writes per 1,000 items": writes * 1000 / count,
                    "etcd stores MiB": site.metrics().total(STORED_BYTES) / MIB,
                    **memory(here),
                }
            )
    return rows


Curve = Callable[[Site, Ranges], list[Row]]

CURVES: Final[Mapping[str, Curve]] = {
    "objects": over_objects,
    "workers": over_workers,
    "payload": over_payloads,
    "long-jobs": over_long_jobs,
    "retention": over_retained,
    "arrays": over_items,
}


def measure_curves(
    names: Sequence[str], scale: str, say: Callable[[str], None]
) -> dict[str, list[Row]]:
    """Measure all points; `say` takes a line for whoever waits."""
    curves: dict[str, list[Row]] = {}
    for name in names:
        began = time.monotonic()
        with site() as here:
            curves[name] = CURVES[name](here, RANGES[scale])
        say(f"{name}: {time.monotonic() - began:.0f} s")
    return curves
