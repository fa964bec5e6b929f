"""Keeps the backlog in step with the API server: a watch of queued jobs, as a table."""

import asyncio
from collections.abc import Callable, Container

import structlog

from asyncjob.errors import ApiError, ExpiredError, NotFoundError
from asyncjob.kube import KubeSession, WatchEvent, watch
from asyncjob.kube.backoff import Backoff
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOBS, collection
from asyncjob_worker.backlog import Backlog
from asyncjob_worker.rows import RowReader

log = structlog.get_logger()


class Feed:
    """Feeds one queue's claimable jobs of known types into a backlog; `on_work` is called then."""

    def __init__(
        self,
        session: KubeSession,
        backlog: Backlog,
        *,
        queue: str,
        types: Container[str],
        clock: Callable[[], float],
        on_work: Callable[[], None],
    ) -> None:
        self._session = session
        self._backlog = backlog
        self._selector = f"status.phase={Phase.QUEUED},spec.queue={queue}"
        self._types = types
        self._clock = clock
        self._on_work = on_work
        self._version = ""
        self._watching: asyncio.Task[None] | None = None

    def look_again(self) -> None:
        """Start from what is queued now, because the backlog could not hold it all before."""
        self._version = ""
        if self._watching:
            self._watching.cancel()

    async def run(self) -> None:
        """Watch until cancelled; outages are waited out, 1 to 60 s apart."""
        backoff = Backoff()
        while True:
            try:
                async with asyncio.TaskGroup() as group:
                    self._watching = group.create_task(self._watch(backoff))
            except* ExpiredError:
                self._version = ""
            except* ApiError as errors:
                error = errors.exceptions[0]
                pause = backoff.pause()
                log.warning("watch of jobs interrupted", error=_explain(error), retry_in=pause)
                await asyncio.sleep(pause)

    async def _watch(self, backoff: Backoff) -> None:
        if not self._version:
            self._backlog.clear()
        reader = RowReader()
        params = {"fieldSelector": self._selector, "resourceVersion": self._version}
        path = collection(self._session.access.namespace, JOBS)
        async for event in watch(self._session, path, params, table=True):
            backoff.reset()
            self._take(event, reader)
            self._version = event.resource_version or self._version

    def _take(self, event: WatchEvent, reader: RowReader) -> None:
        candidate = reader.read(event.object, event.resource_version)
        if candidate is None or event.type == "BOOKMARK":
            return
        if event.type == "DELETED":
            self._backlog.drop(candidate.name)
        elif candidate.type in self._types and (candidate.admitted or not candidate.gated):
            self._backlog.put(candidate, self._clock())
            self._on_work()


def _explain(error: Exception) -> str:
    if isinstance(error, NotFoundError):
        return "the API server does not know AsyncJobs: apply the CRDs (kubectl apply -f crds/)"
    return str(error)
