"""What a watch or a look tells of queued jobs, on its way into the backlog."""

from collections.abc import Callable, Container

from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.selection import JobSelection


class BacklogFeed:
    """Adds the claimable jobs of known types in one selection to a backlog.

    `on_candidate` is called after each that is added.
    """

    def __init__(
        self,
        backlog: Backlog,
        selection: JobSelection,
        *,
        types: Container[str],
        clock: Callable[[], float],
        on_candidate: Callable[[], None],
    ) -> None:
        self.selection = selection
        self._backlog = backlog
        # None for the watch of all jobs, of which the backlog keeps no account.
        self._told_as = None if selection.source is None else selection
        self._types = types
        self._clock = clock
        self._on_candidate = on_candidate
        self.told = 0
        """How often it was told of a job."""

        self._knows_types = False

    @property
    def passed_over(self) -> int:
        """How often it was told of a job, if all were of other types; else 0."""
        return 0 if self._knows_types else self.told

    def update(self, candidate: Candidate | None, *, deleted: bool = False) -> None:
        """Take note of a job; None for one that is not understood.

        `deleted` says that it has left the selection.
        """
        self.told += 1
        if candidate is None or candidate.type not in self._types:
            return
        self._knows_types = True
        gone = deleted or (candidate.gated and not candidate.admitted)
        if self._backlog.is_shared_out and self._is_known_newer(candidate, gone=gone):
            if gone:
                self.drop(candidate.name)
        elif gone:
            self._backlog.drop(candidate.name)
        else:
            self._backlog.put(candidate, self._clock(), self._told_as)
            self._on_candidate()

    def drop(self, name: str) -> None:
        """Remove a job that has left the selection, unless another watch knows it."""
        self._backlog.drop_from(self._told_as, name)

    def forget(self) -> None:
        """Remove the jobs of the selection that no other watch knows."""
        if self._backlog.is_shared_out:
            self._backlog.drop_selection(self._told_as)
        else:
            self._backlog.clear()

    def clear(self) -> None:
        """Remove all jobs, also those that other watches know."""
        self._backlog.clear()

    def _is_known_newer(self, candidate: Candidate, *, gone: bool) -> bool:
        """Return whether another watch has told of a later state of the job.

        A job whose label or priority changes leaves one watch and comes into another by the same
        write, in either order.
        """
        known = self._backlog.version_of(candidate.name)
        if known is None:
            return False
        here, there = _order(candidate.resource_version), _order(known)
        return here <= there if gone else here < there


def _order(version: str) -> tuple[int, str]:
    """Return what versions, which are decimal numbers, are ordered by."""
    return len(version), version
