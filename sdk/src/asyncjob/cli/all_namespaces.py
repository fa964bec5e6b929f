"""Lists and watches all namespaces at once, which the API server offers and a gateway does not."""

import builtins
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from asyncjob.cli.direct import DirectCluster
from asyncjob.client.api import ALL_ARRAYS, ALL_JOBS
from asyncjob.client.errors import NotAllowedError
from asyncjob.client.following import watch_jobs
from asyncjob.client.kubernetes import arrays, cron_jobs, jobs, queues
from asyncjob.client.kubernetes.jobs import KubernetesJobStream
from asyncjob.rest.arrays import ArrayInfo, ArraySelection
from asyncjob.rest.jobs import JobSummary
from asyncjob.rest.listing import Selection
from asyncjob.rest.resources import CronJobInfo, QueueInfo, WorkerInfo

T = TypeVar("T")


class Lister(Protocol):
    """What can be listed. A client lists one namespace, `AllNamespaces` all of them."""

    def list(self, selection: Selection = ALL_JOBS) -> Iterator[JobSummary]:
        """Yield the jobs that match, newest first."""

    def watch(self, selection: Selection = ALL_JOBS) -> Iterator[JobSummary]:
        """Yield each job that matches whenever it changes, without end."""

    def queues(self) -> builtins.list[QueueInfo]:
        """Return the queues."""

    def cron_jobs(self) -> builtins.list[CronJobInfo]:
        """Return the cron jobs."""

    def arrays(self, selection: ArraySelection = ALL_ARRAYS) -> Iterator[ArrayInfo]:
        """Yield the arrays that match, newest first."""

    def workers(self) -> builtins.list[WorkerInfo]:
        """Return the live workers."""


@dataclass(frozen=True, slots=True)
class AllNamespaces:
    """All namespaces of a cluster; it takes the right to list across them."""

    cluster: DirectCluster
    clock: Callable[[], datetime]

    def list(self, selection: Selection = ALL_JOBS) -> Iterator[JobSummary]:
        """Yield the jobs that match, newest first."""
        yield from self._run(jobs.list_jobs(self.cluster.api, None, selection, self.clock()))

    def watch(self, selection: Selection = ALL_JOBS) -> Iterator[JobSummary]:
        """Yield each job that matches whenever it changes, without end."""
        api = self.cluster.api
        stream = KubernetesJobStream(api, None, selection, self.clock)
        with _suggest_one_namespace():
            yield from self.cluster.iterate(watch_jobs(api.connection, stream))

    def queues(self) -> builtins.list[QueueInfo]:
        """Return the queues."""
        return self._run(queues.list_queues(self.cluster.api, None, self.clock()))

    def cron_jobs(self) -> builtins.list[CronJobInfo]:
        """Return the cron jobs."""
        return self._run(cron_jobs.list_cron_jobs(self.cluster.api, None))

    def arrays(self, selection: ArraySelection = ALL_ARRAYS) -> Iterator[ArrayInfo]:
        """Yield the arrays that match, newest first."""
        yield from self._run(arrays.list_arrays(self.cluster.api, None, selection))

    def workers(self) -> builtins.list[WorkerInfo]:
        """Return the live workers."""
        return self._run(queues.list_workers(self.cluster.api, None, self.clock()))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with _suggest_one_namespace():
            return self.cluster.run(work)


@contextmanager
def _suggest_one_namespace() -> Iterator[None]:
    try:
        yield
    except NotAllowedError as error:
        raise NotAllowedError(f"{error}; -n NAME in place of -A asks for one namespace") from error
