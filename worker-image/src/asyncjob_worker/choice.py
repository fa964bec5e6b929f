"""Which job a worker claims next: what the queue, the roster and earlier crashes allow."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.backlog import Backlog
from asyncjob_worker.queue_view import QueueView
from asyncjob_worker.roster import Roster

TRIPS = 10
"""Others' jobs are left alone for so many round trips of a claim, where that is the longer wait."""

MAX_PATIENCE_SECONDS = 2.0
_WEIGHT = 0.2

ALONE_SECONDS: Final = 30.0
"""A job that has crashed before has its process to itself for so long: a poison pill kills early.
Not for longer, because it may wait for others, such as its children."""

CLEAR_SECONDS: Final = 10.0
"""So long the worker takes nothing to become empty for it; what then still runs is no early pill,
and may itself wait for this job."""

LEAST_TURN_SECONDS: Final = 2.0
"""After such a job the others have their turn for as long as it was alone, and at least so long."""


class Choice:
    """Picks from a backlog. `clock` is the lease clock; `look_again` reads all jobs anew.

    A job that has crashed before begins alone in its process: it may be a poison pill, or have
    stood beside one and must not be charged for another. At most one such job is at work. Of the
    types in `limits` at most so many are.
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
        self._alone: Candidate | None = None
        self._alone_since = 0.0
        self._beside: list[Candidate] = []
        self._clear_by: float | None = None
        self._others_until = 0.0

    @property
    def open(self) -> bool:
        """Whether anything may be claimed at all."""
        return self._queue.synced and not self._queue.paused and self._roster.synced

    def pick(self) -> Candidate | None:
        """Take out the job to claim next; None if there is none for now."""
        if not self.open:
            return None
        now = self._clock()
        self._backlog.age_by(self._queue.ageing, now)
        for crashed_too in self._turns(now):
            if candidate := self._take(now, crashed_too=crashed_too):
                self._begin(candidate, now)
                self._note_held_back(now)
                return candidate
        self._note_held_back(now)
        if self._backlog.overflowed and not len(self._backlog):
            self._look_again()
        return None

    def _turns(self, now: float) -> Sequence[bool]:
        """Return whether jobs that have crashed before may be taken: what to try, in order."""
        if self._opens_at(now) is not None:
            return ()
        if self._alone is not None:
            return (False,)
        its_turn = now >= self._others_until
        if self._beside:
            return (its_turn and self._clear_by is not None,)
        return (True,) if its_turn else (False, True)

    def _note_held_back(self, now: float) -> None:
        """Note from when on the worker is to become empty, and until when, if it is at all."""
        if self._alone is not None or not self._beside or not self._backlog.holds_back:
            self._clear_by = None
        elif self._clear_by is None:
            self._clear_by = max(now, self._others_until) + CLEAR_SECONDS

    def _opens_at(self, now: float) -> float | None:
        """Return until when nothing is taken, so that one job is alone; None if that is not so."""
        opens_at = None
        if self._alone is not None:
            opens_at = self._alone_since + ALONE_SECONDS
        elif self._beside and self._clear_by is not None and now >= self._others_until:
            opens_at = self._clear_by
        return None if opens_at is None or opens_at <= now else opens_at

    def _take(self, now: float, *, crashed_too: bool) -> Candidate | None:
        while candidate := self._backlog.take(now, crashed_too=crashed_too, barred=self._barred):
            if candidate.admitted or not self._queue.limited:
                return candidate
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

    def freed(self, candidate: Candidate) -> bool:
        """Note that a job's outcome is reported, though its handler may ignore its stop.

        Returns whether that allows others.
        """
        return self._let_go(candidate)

    def done_with(self, candidate: Candidate) -> bool:
        """Note that a picked job is no longer at work; returns whether that allows others."""
        opened = self._end(candidate.type)
        return self._let_go(candidate) or opened

    def _let_go(self, candidate: Candidate) -> bool:
        """Return whether that allows others.

        By identity: for a moment one process may hold two claims of one job.
        """
        if self._alone is candidate:
            self._alone, now = None, self._clock()
            turn = min(now - self._alone_since, ALONE_SECONDS)
            self._others_until = now + max(turn, LEAST_TURN_SECONDS)
            return True
        self._beside = [one for one in self._beside if one is not candidate]
        return not self._beside

    def _begin(self, candidate: Candidate, now: float) -> None:
        if candidate.crashes:
            self._alone, self._alone_since = candidate, now
        else:
            self._beside.append(candidate)
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

    def ready_at(self) -> float | None:
        """Return when there may be something to pick without anything else changing."""
        if not self.open:
            return None
        now = self._clock()
        if (opens_at := self._opens_at(now)) is not None:
            return opens_at
        times = [self._backlog.ready_at(self._barred)]
        if self._clear_by is not None and now < self._others_until:
            times.append(self._others_until)
        return min((time for time in times if time is not None), default=None)
