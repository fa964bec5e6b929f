"""Rates and memory over the number of objects, of workers, and over the size of payloads."""

from asyncjob_bench.curves.ranges import Ranges
from asyncjob_bench.ground.site import Site
from asyncjob_bench.parts.conflicts import ratio
from asyncjob_bench.parts.crew import RunningStack, start_stack
from asyncjob_bench.parts.flow import Flow, run_flow
from asyncjob_bench.parts.operator_load import park
from asyncjob_bench.reckoning.results import OTHERS, Row

SLOTS = 16
FLOW_WORKERS = 2


def over_objects(site: Site, ranges: Ranges) -> list[Row]:
    """Let jobs flow beside more and more that wait in another queue of the namespace."""
    rows: list[Row] = []
    there = 0
    with site.space("objects") as space:
        for count in ranges.objects:
            park(space, there, count)
            there = count
            running = start_stack(site, space, workers=FLOW_WORKERS, slots=SLOTS // FLOW_WORKERS)
            with running as here:
                done = run_flow(here, ranges.jobs, warm_up=ranges.warm_up, prefix=f"of-{count}-")
                rows.append({"objects": float(count), **_flow_row(here, done)})
                here.stop()
    return rows


def over_workers(site: Site, ranges: Ranges) -> list[Row]:
    """Share 16 slots out among more and more processes; beyond 16 each has one."""
    rows: list[Row] = []
    for count in ranges.workers:
        slots = max(1, SLOTS // count)
        with (
            site.space("workers") as space,
            start_stack(site, space, workers=count, slots=slots) as here,
        ):
            done = run_flow(here, ranges.jobs, warm_up=ranges.warm_up)
            conflicts = ratio(here.workers)
            rows.append({"workers": float(count), **_flow_row(here, done), "conflicts": conflicts})
    return rows


def over_payloads(site: Site, ranges: Ranges) -> list[Row]:
    """Let payloads grow."""
    rows: list[Row] = []
    for size in ranges.payload_bytes:
        with (
            site.space("payload") as space,
            start_stack(site, space, workers=FLOW_WORKERS, slots=SLOTS // FLOW_WORKERS) as here,
        ):
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
