"""Keeps the backlog in step with the API server: a watch of queued jobs, as a table."""

import asyncio
from collections.abc import Callable, Container

import structlog

from asyncjob.errors import ApiError, ExpiredError, NotFoundError
from asyncjob.kube import KubeSession, WatchEvent, watch
from asyncjob.kube.pace import loop_pace
from asyncjob.lifecycle.claim import Candidate
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
        on_watch: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._backlog = backlog
        self._selector = f"status.phase={Phase.QUEUED},spec.queue={queue}"
        self._types = types
        self._clock = clock
        self._on_work = on_work
        self._on_watch = on_watch
        self._version = ""
        self._watching: asyncio.Task[ApiError | None] | None = None
        self.watched = False

    def look_again(self) -> None:
        """Start from what is queued now, because not everything was kept in mind before."""
        self._version = ""
        self._backlog.clear()
        if self._watching:
            self._watching.cancel()

    async def run(self) -> None:
        """Watch until cancelled; outages are waited out, 1 to 60 s apart."""
        pace = loop_pace()
        while True:
            pace.begin()
            self._watching = asyncio.create_task(self._watch())
            try:
                await asyncio.wait({self._watching})
            finally:
                self._watching.cancel()
            if self._watching.cancelled():
                continue
            error = self._watching.result()
            pause = pace.pause(failed=error is not None)
            if error is not None:
                self.watched = False
                wait = round(pause, 1)
                log.warning("watch of jobs interrupted", error=_explain(error), retry_in=wait)
            await asyncio.sleep(pause)

    async def _watch(self) -> ApiError | None:
        """Watch until the server ends it; returns what went wrong."""
        try:
            await self._take_all()
        except ExpiredError:
            self._version = ""
        except ApiError as error:
            return error
        return None

    async def _take_all(self) -> None:
        """Take events, from all there is or from where an earlier watch has got to.

        What there is comes in no order of versions; only a bookmark says that it is complete. A
        watch that breaks off before is begun anew, or the jobs not yet seen would be lost.
        """
        if not self._version:
            self._backlog.clear()
        reader = RowReader()
        params = {"fieldSelector": self._selector, "resourceVersion": self._version}
        path = collection(self._session.access.namespace, JOBS)
        async for event in watch(self._session, path, params, table=True, on_open=self._begun):
            if event.type == "BOOKMARK" or self._version:
                self._version = event.resource_version
            # A bookmark is read, too: if it comes first, it is what says which column is which.
            candidate = reader.read(event.object, event.resource_version)
            if event.type != "BOOKMARK":
                self._take(event, candidate)

    def _begun(self) -> None:
        self.watched = True
        self._on_watch()

    def _take(self, event: WatchEvent, candidate: Candidate | None) -> None:
        if candidate is None or candidate.type not in self._types:
            return
        if event.type == "DELETED" or (candidate.gated and not candidate.admitted):
            self._backlog.drop(candidate.name)
        else:
            self._backlog.put(candidate, self._clock())
            self._on_work()


def _explain(error: Exception) -> str:
    if isinstance(error, NotFoundError):
        return "the API server does not know AsyncJobs: apply the CRDs (kubectl apply -f crds/)"
    return str(error)
