"""Which watches have told of which jobs. While watches change, some are told by two of them."""

from collections.abc import Collection, Iterator

from asyncjob_worker.claiming.selection import JobSelection


class WatchedJobs:
    """The names that each watch has told of, those of jobs that are being claimed included.

    None stands for the watch of all jobs.
    """

    # By watch and not by job: an entry of a set takes no block of memory.
    def __init__(self) -> None:
        self._names: dict[JobSelection | None, set[str]] = {}

    def add(self, name: str, selection: JobSelection | None) -> bool:
        """Return whether this watch has not told of the job before."""
        names = self._names.setdefault(selection, set())
        is_new = name not in names
        names.add(name)
        return is_new

    def watches_of(self, name: str) -> Iterator[JobSelection | None]:
        """Yield the watches that have told of a job."""
        return (selection for selection, names in self._names.items() if name in names)

    def names(self, selection: JobSelection | None) -> Collection[str]:
        """Return the jobs that a watch has told of."""
        return self._names.get(selection, ())

    def leave(self, name: str, selection: JobSelection | None) -> bool:
        """Note that a watch no longer has the job; return whether another has told of it."""
        self._names.get(selection, set()).discard(name)
        return any(True for _ in self.watches_of(name))

    def forget(self, name: str) -> None:
        """Note that a job is gone."""
        for names in self._names.values():
            names.discard(name)

    def end(self, selection: JobSelection | None) -> Collection[str]:
        """Forget what a watch has told; return the jobs that no other has told of."""
        ended = self._names.pop(selection, set())
        return ended.difference(*self._names.values())

    def clear(self) -> None:
        """Forget all jobs."""
        self._names.clear()
