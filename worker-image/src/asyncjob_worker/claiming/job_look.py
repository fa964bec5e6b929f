"""A look at queued jobs that others watch, by one list after the other.

Not by a watch: an API server ends one only by its connection, and to open another for the next look
costs both sides more than the look.
"""

from typing import Final

from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import TimeSlice
from asyncjob.kube.transport import KubeRequest
from asyncjob.kube.watch import TABLE_TYPE
from asyncjob.names import JOBS, collection_path
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.claiming.job_rows import RowReader
from asyncjob_worker.metrics import JobWatchObserver

MAX_BYTES: Final = 2**18
"""Some two hundred jobs. An API server that answers from its cache does so in one page."""


class JobLook:
    """Feeds the backlog with the queued jobs of one selection."""

    def __init__(self, session: KubeSession, feed: BacklogFeed, observer: JobWatchObserver) -> None:
        self._session = session
        self.feed = feed
        self._observer = observer
        self._versions: dict[str, str] = {}
        self._relisted = False

    async def refresh(self) -> None:
        """List the jobs from the API server's cache.

        Raises PageTooLargeError if they are many, and what a request raises.
        """
        params = {**self.feed.selection.params(), "resourceVersion": "0"}
        path = collection_path(self._session.access.namespace, JOBS)
        table = await self._session.send(
            KubeRequest("GET", path, params, accept=TABLE_TYPE, max_bytes=MAX_BYTES)
        )
        self._relisted = False
        versions: dict[str, str] = {}
        turns = TimeSlice()
        for candidate in RowReader().read_list(table):
            self._observer.job_event()
            if candidate is not None:
                versions[candidate.name] = candidate.resource_version
            # One that has not changed may be just being claimed here.
            if candidate is None or self._versions.get(candidate.name) != versions[candidate.name]:
                self.feed.update(candidate)
            await turns.yield_if_due()
        for name in self._versions.keys() - versions.keys():
            self.feed.drop(name)
        self._versions = {} if self._relisted else versions

    def relist(self) -> None:
        """Bring in all jobs the next time: the backlog has forgotten them."""
        self._versions.clear()
        self._relisted = True
