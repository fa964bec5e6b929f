"""What there is in all namespaces at once, which the API server shows and a gateway does not."""

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from asyncjob.cli.straight import Cluster
from asyncjob.client.errors import NotAllowedError
from asyncjob.client.following import changes
from asyncjob.client.interface import ALL
from asyncjob.client.on_kubernetes import cron_jobs, listing, queues, workers
from asyncjob.client.on_kubernetes.following import ManyJobs
from asyncjob.client.steps import Steps
from asyncjob.rest.job import JobSummary
from asyncjob.rest.selection import Selection
from asyncjob.rest.surroundings import CronJobInfo, QueueInfo, WorkerInfo

T = TypeVar("T")


class Overview(Protocol):
    """What can be listed. A client lists one namespace, `Everywhere` all of them."""

    def list(self, selection: Selection = ALL) -> Iterator[JobSummary]:
        """Yield the jobs that match, newest first."""

    def watch(self, selection: Selection = ALL) -> Iterator[JobSummary]:
        """Yield each job that matches whenever it changes, for ever."""

    def queues(self) -> builtins.list[QueueInfo]:
        """Return the queues."""

    def cron_jobs(self) -> builtins.list[CronJobInfo]:
        """Return the schedules."""

    def workers(self) -> builtins.list[WorkerInfo]:
        """Return the live workers."""


@dataclass(frozen=True, slots=True)
class Everywhere:
    """All namespaces of a cluster; it takes the right to list across them."""

    cluster: Cluster
    clock: Callable[[], datetime]

    def list(self, selection: Selection = ALL) -> Iterator[JobSummary]:
        """Yield the jobs that match, newest first."""
        yield from self._run(listing.chosen(None, selection, self.clock(), self.cluster.patience))

    def watch(self, selection: Selection = ALL) -> Iterator[JobSummary]:
        """Yield each job that matches whenever it changes, for ever."""
        with _with_way_out():
            yield from self.cluster.iterate(changes(ManyJobs(None, selection, self.clock)))

    def queues(self) -> builtins.list[QueueInfo]:
        """Return the queues."""
        return self._run(queues.queues(None, self.clock(), self.cluster.patience))

    def cron_jobs(self) -> builtins.list[CronJobInfo]:
        """Return the schedules."""
        return self._run(cron_jobs.cron_jobs(None, self.cluster.patience))

    def workers(self) -> builtins.list[WorkerInfo]:
        """Return the live workers."""
        return self._run(workers.workers(None, self.clock(), self.cluster.patience))

    def _run(self, steps: Steps[T]) -> T:
        with _with_way_out():
            return self.cluster.run(steps)


@contextmanager
def _with_way_out() -> Iterator[None]:
    try:
        yield
    except NotAllowedError as error:
        raise NotAllowedError(f"{error}; -n NAME in place of -A asks for one namespace") from error
