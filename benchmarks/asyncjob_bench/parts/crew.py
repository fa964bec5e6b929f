"""An operator and workers in a namespace, as real processes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.ground.served import ManagedWorker
from asyncjob_bench.ground.site import Site
from asyncjob_bench.ground.space import Space

FINISHED: Final = "asyncjob_worker_jobs_finished_total"
FINISH_TIMEOUT_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.5


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
    started = [
        space.start_worker(f"worker-{number}", f"--concurrency={slots}", *options, **env)
        for number in range(workers)
    ]
    for worker in started:
        worker.wait_ready()
    if running:
        running.wait_ready().wait_leading()
    yield RunningStack(site, space, started, running)
