"""What arrays are held to: items a second, writes, objects, memory, and what a death has run again.

Items a second stand beside plain jobs and the peer of the same round. The others are about one
array each: its writes and objects from the audit log, the operator's memory beside a million items,
the items that run again after a kill of their worker, and how soon plain jobs begin beside it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncjob.lifecycle.arrays.chunks import chunk_slots
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import ARRAY_LABEL, ARRAYS, JOBS, array_path, collection_path
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness import templates
from asyncjob_bench.harness.handlers import (
    ITEM,
    LONG_ITEM,
    NOTED_ITEM,
    NOTES_VARIABLE,
    STAMPS_VARIABLE,
)
from asyncjob_bench.harness.site import Site
from asyncjob_bench.harness.space import Space
from asyncjob_bench.parts.end_to_end import NANOSECONDS_PER_MS
from asyncjob_bench.parts.flow import RunningStack, stack_in, start_stack, submit_one_by_one
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.parts.writes import QUIET_SECONDS, REQUESTS, WRITING, audit_lines
from asyncjob_bench.stats import audit
from asyncjob_bench.stats.item_notes import (
    NANOSECONDS,
    ItemNote,
    read_notes,
    repeated_seconds,
)
from asyncjob_bench.stats.results import quantile
from asyncjob_bench.stats.usage import Usage, cpu_row
from asyncjob_dev.process import wait_until

CHUNK_SIZE: Final = 500
PARALLELISM: Final = 20
END_SECONDS: Final = 3600.0
POLL_SECONDS: Final = 0.2
RUNNING: Final = "asyncjob_worker_running"


@dataclass(frozen=True, slots=True)
class ArrayRun:
    """What an array took, from its creation to its end, and the CPU of each program meanwhile."""

    items: int
    seconds: float
    used: Usage

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.items / self.seconds


def create_array(space: Space, name: str, kind: str, count: int, **spec: Any) -> None:
    """Create an array of numbers."""
    body = templates.array(name, kind, count, **{"chunkSize": CHUNK_SIZE, **spec})
    space.api.create(collection_path(space.name, ARRAYS), body)


def wait_array(space: Space, name: str, count: int) -> float:
    """Wait for the end; its Unix time. Raises WrongOutcomeError unless each item is done."""
    status: Any = {}

    def is_over() -> bool:
        nonlocal status
        status = space.api.get(array_path(space.name, name))["status"]
        return "completionTime" in status

    wait_until(is_over, f"the end of {count} items", within=END_SECONDS, every=POLL_SECONDS)
    if (status["phase"], status["succeeded"], status["failed"]) != ("Succeeded", count, 0):
        raise WrongOutcomeError(
            f"{status['phase']}: {status['succeeded']} of {count} items are done and "
            f"{status['failed']} have failed"
        )
    return parse_timestamp(status["completionTime"]).timestamp()


def run_array(here: RunningStack, name: str, count: int) -> ArrayRun:
    """Run an array of items that do nothing, on workers and operator that are at work."""
    before, began = here.site.usage(here.programs), time.time()
    create_array(here.space, name, ITEM, count, parallelism=PARALLELISM)
    ended = wait_array(here.space, name, count)
    return ArrayRun(count, ended - began, here.site.usage(here.programs) - before)


def wait_no_chunks(space: Space) -> None:
    """Wait until the chunks of ended arrays are deleted."""
    path = collection_path(space.name, JOBS)
    wait_until(
        lambda: not space.api.get(path, labelSelector=ARRAY_LABEL, limit="1")["items"],
        "the deletion of chunks",
        within=120.0,
        every=POLL_SECONDS,
    )


def array_requests(site: Site) -> float:
    """Return the requests so far that were to write an AsyncArray or AsyncJob, by whomever."""
    scrape = site.metrics()
    return sum(
        scrape.total(REQUESTS, resource=resource, verb=verb, dry_run="")
        for resource in (ARRAYS, JOBS)
        for verb in WRITING
    )


def measure_throughput(context: PartContext) -> Numbers:
    """Return items a second, of which the handler does nothing."""
    scale = context.scale
    with stack_in(context.site, "items", workers=scale.workers, slots=scale.slots) as here:
        run_array(here, "warm-up", scale.array_items // 10)
        done = run_array(here, "array", scale.array_items)
    context.results.cpu.append(cpu_row("items of an array", done.used, scale.array_items))
    return {"array_items_s": done.rate}


def measure_writes(context: PartContext) -> Numbers:
    """Return writes per 1,000 items, and the most objects; on an audited control plane."""
    scale = context.scale
    with stack_in(context.site, "items", workers=scale.workers, slots=scale.slots) as here:
        run_array(here, "warm-up", scale.array_items // 10)
        wait_no_chunks(here.space)
        time.sleep(QUIET_SECONDS)
        before = len(audit_lines(context.site))
        run_array(here, "array", scale.array_items)
        wait_no_chunks(here.space)
        time.sleep(QUIET_SECONDS)
        lines = audit_lines(context.site)[before:]
    made = audit.total_of_arrays(audit.count_writes(lines))
    return {
        "array_writes_per_1000": made * 1000 / scale.array_items,
        "array_live_objects": audit.most_objects(lines),
    }


def measure_memory(context: PartContext) -> Numbers:
    """Return what the operator occupies at most beside a million items, over the same before."""
    scale = context.scale
    with stack_in(context.site, "million", workers=scale.workers, slots=scale.slots) as here:
        assert here.operator
        run_array(here, "warm-up", scale.array_items // 10)
        wait_no_chunks(here.space)
        context.site.settle()
        without = here.operator.resident_mib
        done = run_array(here, "array", scale.million_items)
        most = max(here.operator.peak_mib, here.operator.resident_mib)
    return {
        "array_operator_rss_ratio": most / without,
        "array_operator_peak_mib": most,
        "array_million_s": done.seconds,
    }


BESIDE_SLOTS: Final = 8
"""Of each worker beside plain jobs: twelve chunks run, and of a parallelism of 20 eight wait."""

ENDLESS: Final = 10_000_000
"""Items that do not come to an end meanwhile."""

FULL_SECONDS: Final = 120.0


def measure_pickup(context: PartContext) -> Numbers:
    """Return how soon a plain job begins while an array has all the slots that chunks may take."""
    scale = context.scale
    with context.site.space("array-pickup") as space:
        stamps = str(space.folder / "stamps")
        stack = start_stack(
            context.site,
            space,
            workers=scale.workers,
            slots=BESIDE_SLOTS,
            options=["--grace=0"],
            **{STAMPS_VARIABLE: stamps},
        )
        with stack as here:
            create_array(space, "array", LONG_ITEM, ENDLESS, parallelism=PARALLELISM)
            taken = scale.workers * chunk_slots(BESIDE_SLOTS)
            wait_until(
                lambda: here.total(RUNNING) >= taken,
                f"{taken} chunks that run",
                within=FULL_SECONDS,
                every=POLL_SECONDS,
            )
            context.site.settle()
            answer = submit_one_by_one(space, stamps, scale.pickups)
            here.stop()
    return {
        "array_write_round_trip_ms": quantile(answer["round_trips"], 0.5) / NANOSECONDS_PER_MS,
        "array_pickup_p50_ms": quantile(answer["pickups"], 0.5) / NANOSECONDS_PER_MS,
        "array_pickup_p99_ms": quantile(answer["pickups"], 0.99) / NANOSECONDS_PER_MS,
    }


KILLED_ITEMS: Final = 12_000
KILLED_SLOTS: Final = 8
KILLED_SPEC: Final = {"chunkSize": 1000, "parallelism": PARALLELISM}
"""A worker runs six chunks of eight items at a time: 960 items a second."""

WORK_SECONDS: Final = 4.0
"""Of work before the kill, so that the first checkpoint of each chunk is long past."""

RATE_SECONDS: Final = 2.0


def measure_kills(context: PartContext) -> Numbers:
    """Return the items that were run again after a kill, in seconds of that worker's work."""
    found = [_kill(context) for _ in range(context.scale.item_kills)]
    return {"array_repeated_s": max(found)}


def _kill(context: PartContext) -> float:
    with context.site.space("kills") as space:
        notes = space.folder / "notes"
        env = {NOTES_VARIABLE: str(notes)}
        with start_stack(context.site, space, workers=2, slots=KILLED_SLOTS, **env) as here:
            victim, pid = here.workers[0].worker, here.workers[0].pid
            create_array(space, "array", NOTED_ITEM, KILLED_ITEMS, **KILLED_SPEC)
            wait_until(
                lambda: _has_worked(read_notes(_text(notes)), pid),
                "the first items of the worker to be killed",
                within=FULL_SECONDS,
                every=POLL_SECONDS,
            )
            killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            victim.kill()
            wait_array(space, "array", KILLED_ITEMS)
        found = read_notes(_text(notes))
    if len({note.item for note in found}) != KILLED_ITEMS:
        raise WrongOutcomeError(f"not all of {KILLED_ITEMS} items were run")
    return repeated_seconds(found, pid, killed, RATE_SECONDS)


def _has_worked(notes: Sequence[ItemNote], pid: int) -> bool:
    began = [note.began for note in notes if note.pid == pid]
    return bool(began) and began[-1] - began[0] > WORK_SECONDS * NANOSECONDS


def _text(notes: Path) -> str:
    return notes.read_text(encoding="utf-8") if notes.exists() else ""
