"""How often workers get in each other's way: claims lost to another, over claims won."""

from collections.abc import Sequence

from asyncjob.names import API_VERSION, DEFAULT_QUEUE, QUEUE_KIND, QUEUES, collection_path
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness.generator import creation, generate
from asyncjob_bench.harness.handlers import STAMPS_VARIABLE
from asyncjob_bench.harness.space import ManagedWorker
from asyncjob_bench.parts.flow import PICKUP_WARM_UP, start_stack, submit_one_by_one
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_dev.api import Object

CLAIMS = "asyncjob_worker_claims_total"


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
