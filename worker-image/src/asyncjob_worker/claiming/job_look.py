"""A look at queued jobs that others watch: a list, and again for as long as there are any.

Not a watch: an API server ends one only by its connection, and to open another for the next look
costs both sides more than the look.
"""

from collections.abc import Callable, Container

from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import TimeSlice
from asyncjob.kube.transport import KubeRequest
from asyncjob.kube.watch import TABLE_TYPE
from asyncjob.names import JOBS, collection_path
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.claiming.job_rows import RowReader
from asyncjob_worker.claiming.selection import JobSelection
from asyncjob_worker.metrics import JobWatchObserver


class JobLook:
    """Brings the queued jobs of known types in one selection into a backlog, until it ends.

    `on_candidate` is called after each.
    """

    def __init__(
        self,
        session: KubeSession,
        backlog: Backlog,
        *,
        selection: JobSelection,
        types: Container[str],
        clock: Callable[[], float],
        on_candidate: Callable[[], None],
        observer: JobWatchObserver,
    ) -> None:
        self._session = session
        self._backlog = backlog
        self._selection = selection
        self._feed = BacklogFeed(backlog, selection, types, clock, on_candidate)
        self._observer = observer
        self._versions: dict[str, str] = {}

    @property
    def knows_jobs(self) -> bool:
        """Whether there are jobs left that this worker may take over."""
        return self._backlog.holds(self._selection)

    @property
    def passed_over(self) -> int:
        """How many jobs there were, if they were all of other types; else 0."""
        return 0 if self._feed.has_told else self._feed.passed_over

    async def refresh(self) -> None:
        """List the jobs from the API server's cache. Raises what a request raises."""
        params = {**self._selection.params(), "resourceVersion": "0"}
        path = collection_path(self._session.access.namespace, JOBS)
        table = await self._session.send(KubeRequest("GET", path, params, accept=TABLE_TYPE))
        before, self._versions = self._versions, {}
        turns = TimeSlice()
        for candidate in RowReader().read_list(table):
            self._observer.job_event()
            if candidate is not None:
                self._versions[candidate.name] = candidate.resource_version
            # One that has not changed may be just being claimed here.
            if candidate is None or before.get(candidate.name) != candidate.resource_version:
                self._feed.update(candidate)
            await turns.yield_if_due()
        for name in before.keys() - self._versions.keys():
            self._feed.drop(name)

    def relist(self) -> None:
        """Bring in all jobs the next time: the backlog has forgotten them."""
        self._versions.clear()

    def end(self) -> None:
        """Forget the jobs that only this look has told of."""
        self._backlog.drop_selection(self._selection)
