"""Which job a worker claims next: what the queue, the roster and earlier crashes allow."""

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.backlog import Backlog
from asyncjob_worker.queue_view import QueueView
from asyncjob_worker.roster import Roster

TRIPS = 10
"""Others' jobs are left alone for so many round trips of a claim, where that is the longer wait."""

MAX_PATIENCE_SECONDS = 2.0
_WEIGHT = 0.2


class Choice:
    """Picks from a backlog. `clock` is the lease clock; `look_again` reads all jobs anew.

    Of jobs that have crashed before, at most one is at work at a time: a poison pill must not
    charge such neighbours a second crash. Of the types in `limits` at most so many are.
    """

    def __init__(
        self,
        *,
        backlog: Backlog,
        queue: QueueView,
        roster: Roster,
        clock: Callable[[], float],
        look_again: Callable[[], None],
        limits: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._backlog = backlog
        self._least_patience = backlog.steal_after
        self._round_trip = 0.0
        self._queue = queue
        self._roster = roster
        self._clock = clock
        self._look_again = look_again
        self._limits = limits
        self._at_work: Counter[str] = Counter()
        self._barred: set[str] = set()
        self._crashed: Candidate | None = None

    @property
    def open(self) -> bool:
        """Whether anything may be claimed at all."""
        return self._queue.synced and not self._queue.paused and self._roster.synced

    def pick(self) -> Candidate | None:
        """Take out the job to claim next; None if there is none for now."""
        if not self.open:
            return None
        now, crashed_too = self._clock(), self._crashed is None
        self._backlog.age_by(self._queue.ageing, now)
        while candidate := self._backlog.take(now, crashed_too=crashed_too, barred=self._barred):
            if candidate.admitted or not self._queue.limited:
                self._begin(candidate)
                return candidate
        if self._backlog.overflowed and not len(self._backlog):
            self._look_again()
        return None

    def put_back(self, candidate: Candidate) -> None:
        """Return a job that could not be tried."""
        self._backlog.put_back(candidate, self._clock())

    def settled(self, seconds: float, *, won: bool) -> None:
        """Note that a claim was answered after so many seconds, and whether the job is ours.

        A slow API server calls for more patience with others, or everyone meets at the same jobs.
        """
        self._round_trip += _WEIGHT * (seconds - self._round_trip)
        patience = min(TRIPS * self._round_trip, MAX_PATIENCE_SECONDS)
        self._backlog.steal_after = max(self._least_patience, patience)
        if not won:
            self._backlog.lost(self._clock())

    def freed(self, name: str) -> bool:
        """Note that a job's outcome is reported, though its handler may ignore its stop."""
        return self._crashed is not None and self._crashed.name == name and self._free()

    def done_with(self, candidate: Candidate) -> bool:
        """Note that a picked job is no longer at work; returns whether that allows others."""
        opened = self._end(candidate.type)
        return (self._crashed is candidate and self._free()) or opened

    def _begin(self, candidate: Candidate) -> None:
        if candidate.crashes:
            self._crashed = candidate
        limit = self._limits.get(candidate.type)
        if limit is not None:
            self._at_work[candidate.type] += 1
            if self._at_work[candidate.type] >= limit:
                self._barred.add(candidate.type)

    def _end(self, type_: str) -> bool:
        """Return whether the type may be picked again that could not before."""
        if type_ not in self._limits:
            return False
        self._at_work[type_] -= 1
        was_barred = type_ in self._barred
        self._barred.discard(type_)
        return was_barred

    def _free(self) -> bool:
        self._crashed = None
        return True

    def ready_at(self) -> float | None:
        """Return when there may be something to pick without anything else changing."""
        return self._backlog.ready_at(self._barred) if self.open else None
