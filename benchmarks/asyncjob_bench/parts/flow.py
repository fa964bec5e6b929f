"""An operator and workers as real processes in a namespace, and a flow of jobs through them.

Created, claimed, completed, counted, checked.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import JOBS, collection_path
from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.harness import templates
from asyncjob_bench.harness.handlers import STAMP
from asyncjob_bench.harness.programs import run_program
from asyncjob_bench.harness.site import Site
from asyncjob_bench.harness.space import ManagedWorker, Space
from asyncjob_bench.stats.usage import Usage

FINISHED: Final = "asyncjob_worker_jobs_finished_total"
FINISH_TIMEOUT_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.5
STARTING: Final = 16
"""Workers that start at a time. With 64 that import at once, the API server did not answer for ten
seconds."""


@dataclass(frozen=True, slots=True)
class RunningStack:
    """What runs in a namespace."""

    site: Site
    space: Space
    workers: Sequence[ManagedWorker]
    operator: ManagedWorker | None

    def stop(self) -> None:
        """Stop all of them before the namespace ends."""
        for served in [*self.workers, *([self.operator] if self.operator else [])]:
            served.worker.stop()

    @property
    def programs(self) -> dict[str, list[int]]:
        """Process ids by program, those of the submitter's children excepted."""
        operator = {"operator": [self.operator.pid]} if self.operator else {}
        return {**operator, "workers": [worker.pid for worker in self.workers]}

    def total(self, metric: str, **labels: str) -> float:
        """Return the sum of a metric of all workers."""
        return sum(worker.metrics().total(metric, **labels) for worker in self.workers)

    def finished(self) -> int:
        """Return how many outcomes the workers have stored."""
        return int(self.total(FINISHED, phase="Succeeded"))

    def wait_finished(self, count: int) -> None:
        """Wait for so many outcomes in all; raises WrongOutcomeError if there are more."""
        give_up_at = time.monotonic() + FINISH_TIMEOUT_SECONDS
        while (done := self.finished()) < count:
            if time.monotonic() > give_up_at:
                raise WrongOutcomeError(f"{done} of {count} jobs have finished in time")
            time.sleep(POLL_SECONDS)
        if done > count:
            raise WrongOutcomeError(f"{done} outcomes of {count} jobs")


@contextmanager
def start_stack(
    site: Site,
    space: Space,
    *,
    workers: int,
    slots: int,
    operator: Sequence[str] | None = (),
    options: Sequence[str] = (),
    **env: str,
) -> Iterator[RunningStack]:
    """Start an operator (None: none) and workers, and wait until all can work."""
    running = space.start_operator(*operator) if operator is not None else None
    started: list[ManagedWorker] = []
    for first in range(0, workers, STARTING):
        some = [
            space.start_worker(f"worker-{number}", f"--concurrency={slots}", *options, **env)
            for number in range(first, min(first + STARTING, workers))
        ]
        started += [worker.wait_ready() for worker in some]
    if running:
        running.wait_ready().wait_leading()
    yield RunningStack(site, space, started, running)


@contextmanager
def stack_in(site: Site, name: str, **options: Any) -> Iterator[RunningStack]:
    """Start them in a namespace of their own, with the options of `start_stack`."""
    with site.space(name) as space, start_stack(site, space, **options) as here:
        yield here


SUBMITTER_MODULE: Final = "asyncjob_bench.harness.submitter"
CONNECTIONS: Final = 32
"""Of the submitter, beside 64 slots with two writes a job: each kind of write gets its share."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What a flow took. `used` has the CPU of each program, the submitter among them."""

    jobs: int
    seconds: float
    used: Usage

    @property
    def rate(self) -> float:
        """Jobs per second, from the first create to the last completion."""
        return self.jobs / self.seconds


def submit(
    space: Space, asked: dict[str, Any], count: int, *, prefix: str, **more: Any
) -> dict[str, Any]:
    """Have a submitter's process carry out an order, and return its answer."""
    order = {
        "way": "burst",
        "kubeconfig": str(space.submitter_kubeconfig()),
        "asked": asked,
        "count": count,
        "connections": CONNECTIONS,
        "prefix": prefix,
        **more,
    }
    return run_program([sys.executable, "-m", SUBMITTER_MODULE], order, FINISH_TIMEOUT_SECONDS)


PICKUP_WARM_UP: Final = 10


def submit_one_by_one(space: Space, stamps: str, count: int) -> dict[str, Any]:
    """Submit jobs, each once the handler of the last was entered, which says so at `stamps`.

    Some more come before, for warmth. Returns what `harness.submitter` has timed.
    """
    return submit(
        space,
        templates.job(space.name, templates.submission(kind=STAMP)),
        count,
        prefix="job-",
        way="one-by-one",
        path=collection_path(space.name, JOBS),
        connections=1,
        warm_up=PICKUP_WARM_UP,
        stamps=stamps,
    )


def run_flow(
    here: RunningStack, count: int, *, warm_up: int, size: int = 100, prefix: str = "job-"
) -> Flow:
    """Send jobs through, some of them before anything is measured; check that each ran once."""
    asked, there = templates.submission(size), here.finished()
    submit(here.space, asked, warm_up, prefix=f"warm-up-{prefix}")
    here.wait_finished(there + warm_up)
    before = here.site.usage(here.programs)
    answer = submit(here.space, asked, count, prefix=prefix)
    here.wait_finished(there + warm_up + count)
    used = here.site.usage(here.programs) - before
    ended = _last_completion(here.space, count, prefix)
    return Flow(count, ended - answer["started"], used.with_client(answer["cpu"]))


def _last_completion(space: Space, count: int, prefix: str) -> float:
    """Return the Unix time of the last completion; raises WrongOutcomeError unless all ran once."""
    last, wrong, found = 0.0, [], 0
    for job in space.jobs():
        if not job["metadata"]["name"].startswith(prefix):
            continue
        found += 1
        status = job["status"]
        if (status["phase"], status["attempt"]) != ("Succeeded", 1):
            wrong.append(f"{job['metadata']['name']}: {status['phase']} {status['attempt']}")
        else:
            last = max(last, parse_timestamp(status["completionTime"]).timestamp())
    if wrong or found != count:
        raise WrongOutcomeError(
            f"{found} of {count} jobs are there; not as they should be: {wrong}"
        )
    return last
