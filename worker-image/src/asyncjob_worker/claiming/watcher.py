"""Keeps the backlog in step with the API server: a watch of the queue's queued jobs, or of a part.

It is requested as a Table, because the printer columns are all that choosing a job needs.
"""

import asyncio
from contextlib import aclosing

import structlog

from asyncjob.errors import ApiError, ExpiredError, ObjectNotFoundError
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import event_loop_pacer
from asyncjob.kube.watch import open_watch, read_events
from asyncjob.names import JOBS, collection_path
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.claiming.job_rows import RowReader
from asyncjob_worker.claiming.selection import JobSelection
from asyncjob_worker.metrics import JobWatchObserver

log = structlog.get_logger()


class QueuedJobWatcher:
    """Feeds the backlog with the queued jobs of one selection.

    Not `run_informer`: that hands on whole objects, and this needs columns of a Table, of a backlog
    that may be longer than what the worker keeps.
    """

    def __init__(self, session: KubeSession, feed: BacklogFeed, observer: JobWatchObserver) -> None:
        self._session = session
        self.feed = feed
        self._observer = observer
        self._resource_version = ""
        self._watch_task: asyncio.Task[ApiError | None] | None = None
        self.is_watching = False
        self.error: ApiError | None = None
        """What the last watch has failed with; None if it has not."""

        self.synced = asyncio.Event()
        """Set once all jobs that there are have been told."""

        self._resumed = asyncio.Event()
        self._resumed.set()

    @property
    def selection(self) -> JobSelection:
        """The jobs that are watched."""
        return self.feed.selection

    def relist(self) -> None:
        """Start again with all jobs that are queued now.

        Some were left out of a full backlog, or passed over while the queue had limits.
        """
        self._resource_version = ""
        self.feed.clear()
        if self._watch_task:
            self._watch_task.cancel()

    def suspend(self) -> None:
        """Watch nothing until resumed; the jobs that are known stay."""
        self._resumed.clear()
        self.synced.clear()
        self._resource_version = ""
        self.is_watching = False
        if self._watch_task:
            self._watch_task.cancel()

    def resume(self) -> None:
        """Watch again, from all jobs that are queued then."""
        self._resumed.set()

    async def run(self) -> None:
        """Watch until cancelled; after errors retry with a backoff of 1 to 10 s."""
        pacer = event_loop_pacer()
        while True:
            await self._resumed.wait()
            pacer.start_round()
            self._watch_task = asyncio.create_task(self._watch())
            try:
                await asyncio.wait({self._watch_task})
            finally:
                self._watch_task.cancel()
            if self._watch_task.cancelled():
                continue
            self.error = error = self._watch_task.result()
            pause = pacer.next_delay(error)
            if error is not None:
                self.is_watching = False
                wait = round(pause, 1)
                log.warning("watch of jobs interrupted", error=_explain(error), retry_in=wait)
            await asyncio.sleep(pause)

    async def _watch(self) -> ApiError | None:
        """Watch until the server ends it; return the error if it has failed."""
        try:
            await self._consume_events()
        except ExpiredError:
            self._resource_version = ""
        except ApiError as error:
            return error
        return None

    async def _consume_events(self) -> None:
        """Consume events, from the initial ones or from where the last watch has got to.

        The initial events come in no order of resource versions; only a bookmark says that they are
        complete. A watch that breaks off before it starts again from the beginning, or the jobs not
        received yet would be missed.
        """
        if not self._resource_version:
            self.feed.forget()
        reader = RowReader()
        params = {**self.selection.params(), "resourceVersion": self._resource_version}
        path = collection_path(self._session.access.namespace, JOBS)
        response = await open_watch(self._session, path, params, table=True)
        self.is_watching = True
        self._observer.watch_opened()
        async with aclosing(read_events(response)) as events:
            async for event in events:
                if event.type == "BOOKMARK" or self._resource_version:
                    self._resource_version = event.resource_version
                # Bookmarks are read too: if one comes first, it alone has the column definitions.
                candidate = reader.read(event.object, event.resource_version)
                if event.type == "BOOKMARK":
                    self.synced.set()
                else:
                    self._observer.job_event()
                    self.feed.update(candidate, deleted=event.type == "DELETED")


def _explain(error: Exception) -> str:
    if isinstance(error, ObjectNotFoundError):
        return "the API server does not know AsyncJobs: apply the CRDs (kubectl apply -f crds/)"
    return str(error)
