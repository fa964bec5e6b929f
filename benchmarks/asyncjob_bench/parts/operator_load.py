"""What a watch event costs the operator, with few jobs and with many; memory with many.

The jobs that are there wait in a queue without workers: of those the operator keeps most. Events
are those of real status writes, of jobs that go through their whole life beside them.
"""

import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness.generator import creation, generate, whole_life
from asyncjob_bench.harness.handlers import HOLD
from asyncjob_bench.harness.space import BY_KOPF, ManagedWorker, PodToken, Space
from asyncjob_bench.parts.ceiling import pod_tokens
from asyncjob_bench.parts.flow import CONNECTIONS
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.stats.results import Row
from asyncjob_dev.process import wait_until

PARKED: Final = "parked"
MILLISECONDS: Final = 1000.0
TAKEN_IN: Final = "asyncjob_operator_watch_events_total"

JOBS_METRIC: Final = "asyncjob_jobs"
EVENTS_PER_JOB: Final = 3
REPEATS: Final = 3
UNEXPECTED: Final = 0.01
"""The share of events that may be missing or too many: a watch begun again, a resync."""

CATCH_UP_SECONDS: Final = 300.0
IDLE_SECONDS: Final = 3.0
BACKLOG: Final = "asyncjob_worker_backlog"


def measure(context: PartContext) -> Numbers:
    """Return CPU per event at both sizes, its growth, and memory at the larger one."""
    with context.site.space("load") as space:
        few, many = _at_both_sizes(context, space)
        worker = _worker_mib(space, context.scale.many_jobs)
    context.results.curves["operator-by-jobs"] = [few, many]
    growth = float(many["ms/event"]) / float(few["ms/event"])
    return {
        "operator_ms_per_event": float(many["ms/event"]),
        "operator_ms_per_event_few": float(few["ms/event"]),
        "operator_growth_ratio": growth,
        "operator_rss_mib": float(many["resident MiB"]),
        "operator_peak_mib": float(many["peak MiB"]),
        "operator_start_cpu_s": float(many["start CPU s"]),
        "worker_rss_mib": worker,
    }


def measure_by_kopf(context: PartContext) -> Numbers:
    """Return CPU per event and memory where kopf watches the jobs."""
    with context.site.space("load-kopf") as space:
        few, many = _at_both_sizes(context, space, *BY_KOPF)
    context.results.curves["operator-by-jobs-kopf"] = [few, many]
    return {
        "kopf_operator_ms_per_event": float(many["ms/event"]),
        "kopf_operator_ms_per_event_few": float(few["ms/event"]),
        "kopf_operator_rss_mib": float(many["resident MiB"]),
        "kopf_operator_peak_mib": float(many["peak MiB"]),
    }


def _at_both_sizes(context: PartContext, space: Space, *options: str) -> tuple[Row, Row]:
    """Return what an operator with these options costs with few jobs, and with many."""
    pods, there, found = pod_tokens(space, context.scale.workers), 0, []
    for size in (context.scale.few_jobs, context.scale.many_jobs):
        park(space, there, size)
        there = size
        found.append(_at(context, space, pods, size, options))
    few, many = found
    return few, many


def park(space: Space, there: int, wanted: int) -> None:
    """Bring the number of waiting jobs to what is wanted."""
    generate(
        space,
        creation(space, queue=PARKED, kind=HOLD, executionTimeoutSeconds=86_400),
        wanted - there,
        connections=CONNECTIONS,
        prefix="parked-",
        first=there,
    )


def _at(
    context: PartContext, space: Space, pods: list[PodToken], size: int, options: Sequence[str]
) -> Row:
    operator = space.start_operator(*options).wait_ready().wait_leading()
    start = _cpu(context, operator)
    _lives(space, pods, operator, context.scale.warm_up, f"warm-{size}-")
    context.site.settle()
    idle = _idle(context, operator)
    costs = [_cost(context, space, pods, operator, f"job-{size}-{it}-") for it in range(REPEATS)]
    row: Row = {
        "jobs": float(size),
        "events": float(REPEATS * EVENTS_PER_JOB * context.scale.operator_jobs),
        "ms/event": median(costs),
        "least": min(costs),
        "most": max(costs),
        "resident MiB": operator.resident_mib,
        "peak MiB": operator.peak_mib,
        "idle ms/s": idle,
        "start CPU s": start,
    }
    operator.worker.stop()
    return row


def _cost(
    context: PartContext, space: Space, pods: list[PodToken], operator: ManagedWorker, prefix: str
) -> float:
    """Return the CPU per event, in ms, while jobs live from creation to end."""
    jobs = context.scale.operator_jobs
    taken, before = operator.metrics().total(TAKEN_IN), _cpu(context, operator)
    _lives(space, pods, operator, jobs, prefix)
    used, events = _cpu(context, operator) - before, operator.metrics().total(TAKEN_IN) - taken
    _demand(events, EVENTS_PER_JOB * jobs)
    return used / events * MILLISECONDS


def _demand(events: float, expected: int) -> None:
    if abs(events - expected) > UNEXPECTED * expected:
        raise WrongOutcomeError(f"the operator took in {events:g} events of {expected}")


def _idle(context: PartContext, operator: ManagedWorker) -> float:
    """Return the CPU it uses, in ms per second, while nothing happens."""
    before = _cpu(context, operator)
    time.sleep(IDLE_SECONDS)
    return (_cpu(context, operator) - before) / IDLE_SECONDS * MILLISECONDS


def _cpu(context: PartContext, operator: ManagedWorker) -> float:
    return context.site.usage({"operator": [operator.pid]}).programs["operator"]


def _lives(
    space: Space, pods: list[PodToken], operator: ManagedWorker, count: int, prefix: str
) -> None:
    """Let jobs live beside those that wait, until the operator has seen each to its end."""
    before = operator.metrics().total(JOBS_METRIC, phase="Succeeded")
    generate(space, whole_life(space), count, workers=pods, prefix=prefix)
    wait_until(
        lambda: operator.metrics().total(JOBS_METRIC, phase="Succeeded") >= before + count,
        f"the operator's knowledge of {count} jobs' ends",
        within=CATCH_UP_SECONDS,
    )


def _worker_mib(space: Space, backlog: int) -> float:
    """Return what a worker occupies that keeps them all in mind, but for the one it runs."""
    options = (f"--queue={PARKED}", "--concurrency=1", "--stop-wait=0", "--grace=0")
    worker = space.start_worker("full", *options).wait_ready()
    wait_until(
        lambda: worker.metrics().total(BACKLOG) >= backlog - 1,
        f"a backlog of {backlog} jobs",
        within=CATCH_UP_SECONDS,
    )
    return worker.resident_mib
