"""How often workers get in each other's way, and what it costs to be many.

Each worker is a process. Those of a fleet that have nothing to do use the CPU as well, for their
Leases and looks; what they use is a figure of its own, and is not taken off.
"""

import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from asyncjob.names import API_VERSION, DEFAULT_QUEUE, QUEUE_KIND, QUEUES, collection_path
from asyncjob.shards import SHARDS
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness.generator import creation, generate
from asyncjob_bench.harness.handlers import STAMPS_VARIABLE
from asyncjob_bench.harness.space import ManagedWorker
from asyncjob_bench.parts.flow import (
    PICKUP_WARM_UP,
    RunningStack,
    run_flow,
    stack_in,
    start_stack,
    submit_one_by_one,
)
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_dev.api import Object
from asyncjob_dev.process import wait_until

CLAIMS = "asyncjob_worker_claims_total"
FEW: Final = 2
FLOWS: Final = 3
"""Of each: those of two workers before the many, the many, and those of two after them."""
TAKEOVERS: Final = "asyncjob_worker_takeovers_total"
JOB_EVENTS: Final = "asyncjob_worker_job_events_total"
SHARDS_WATCHED: Final = "asyncjob_worker_shards"
DEAL_SECONDS: Final = 180.0
IDLE_SECONDS: Final = 10.0
POLL_SECONDS: Final = 2.0


def measure(context: PartContext) -> Numbers:
    """Return the ratio with idle workers, with a full backlog, and the worse of both."""
    idle, backlog = _idle(context), _backlog(context)
    return {
        "conflict_ratio_idle": idle,
        "conflict_ratio_backlog": backlog,
        "conflict_ratio": max(idle, backlog),
    }


def ratio(workers: Sequence[ManagedWorker]) -> float:
    """Return conflicts over claims won since the workers began."""
    found = [worker.metrics() for worker in workers]
    told = [len(list(it.matching(CLAIMS, {"outcome": "conflict"}))) for it in found]
    won = sum(it.total(CLAIMS, outcome="won") for it in found)
    lost = sum(it.total(CLAIMS, outcome="conflict") for it in found)
    if not won or not all(told):
        raise WrongOutcomeError(f"{won:g} claims won; {told.count(0)} workers tell of no conflicts")
    return lost / won


def _idle(context: PartContext) -> float:
    scale = context.scale
    with context.site.space("idle") as space:
        stamps = str(space.folder / "stamps")
        env = {STAMPS_VARIABLE: stamps}
        running = start_stack(context.site, space, workers=scale.many_workers, slots=1, **env)
        with running as here:
            submit_one_by_one(space, stamps, scale.idle_claims)
            here.wait_finished(PICKUP_WARM_UP + scale.idle_claims)
            return ratio(here.workers)


def _backlog(context: PartContext) -> float:
    """Let all workers begin at once with a backlog that is there already."""
    scale = context.scale
    with context.site.space("backlog") as space:
        path = collection_path(space.name, QUEUES)
        space.api.create(path, _queue(paused=True))
        generate(space, creation(space), scale.backlog_claims)
        running = start_stack(context.site, space, workers=scale.many_workers, slots=1)
        with running as here:
            space.api.merge(f"{path}/{DEFAULT_QUEUE}", {"spec": {"paused": False}})
            here.wait_finished(scale.backlog_claims)
            return ratio(here.workers)


def _queue(*, paused: bool) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": QUEUE_KIND,
        "metadata": {"name": DEFAULT_QUEUE},
        "spec": {"paused": paused},
    }


def measure_fleet(context: PartContext) -> Numbers:
    """Return what jobs through many workers cost, and how fast they are beside two.

    The two run before and after them, and each several times: a machine has fast minutes and slow.
    """
    many = context.scale.fleet
    few_rates = _rates_of_few(context, "fleet-few-before")
    with stack_in(context.site, "fleet", workers=many, slots=1) as here:
        _until_assigned(here)
        context.site.settle()
        idle = _idle_cores(here)
        before = _counts(here)
        rates = _rates(context, here)
        counts = {name: now - before[name] for name, now in _counts(here).items()}
    few_rates += _rates_of_few(context, "fleet-few-after")
    jobs = counts["won"]
    return {
        "watch_events_per_job_64": counts["told"] / jobs,
        "flat_ratio_64": median(rates) / median(few_rates),
        "conflict_ratio_64": counts["lost"] / jobs,
        "takeovers_won_64": counts["takeovers won"] / jobs,
        "takeovers_lost_64": counts["takeovers lost"] / jobs,
        "fleet_idle_cores": idle,
    }


def _rates_of_few(context: PartContext, name: str) -> list[float]:
    slots = max(1, context.scale.fleet // FEW)
    with stack_in(context.site, name, workers=FEW, slots=slots) as here:
        return _rates(context, here)


def _rates(context: PartContext, here: RunningStack) -> list[float]:
    """Return jobs a second of one flow after the other."""
    scale = context.scale
    return [
        run_flow(here, scale.fleet_jobs, warm_up=scale.warm_up, prefix=f"job-{number}-").rate
        for number in range(FLOWS)
    ]


def _counts(here: RunningStack) -> dict[str, float]:
    return {
        "won": here.total(CLAIMS, outcome="won"),
        "lost": here.total(CLAIMS, outcome="conflict"),
        "told": here.total(JOB_EVENTS),
        "takeovers won": here.total(TAKEOVERS, outcome="won"),
        "takeovers lost": here.total(TAKEOVERS, outcome="lost"),
    }


def _idle_cores(here: RunningStack) -> float:
    """Return how many cores the workers use while there are no jobs."""
    before = here.site.usage(here.programs)
    time.sleep(IDLE_SECONDS)
    used = here.site.usage(here.programs) - before
    return used.programs["workers"] / IDLE_SECONDS


def _until_assigned(here: RunningStack) -> None:
    wait_until(
        lambda: here.total(SHARDS_WATCHED) == 2 * SHARDS,
        "an owner and a deputy of each shard",
        within=DEAL_SECONDS,
        every=POLL_SECONDS,
    )
