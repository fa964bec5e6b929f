"""Selects the job to claim next.

That is the first of the backlog that the queue, the limits of its type, and the isolation of jobs
that have crashed before allow.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.queue_state import LiveWorkers, QueueState

TAKEOVER_ROUND_TRIPS = 10
"""Others' jobs are left alone for so many round trips of a claim, where that is the longer wait."""

MAX_TAKEOVER_DELAY_SECONDS = 2.0
_ROUND_TRIP_WEIGHT = 0.2

ALONE_SECONDS: Final = 30.0
"""A job that has crashed before has its process to itself for so long: a poison pill kills early.
Not for longer, because it may wait for others, such as its children."""

EMPTYING_SECONDS: Final = 10.0
"""So long the worker takes nothing to become empty for it; what then still runs is no early pill,
and may itself wait for this job."""

MIN_OTHERS_SECONDS: Final = 2.0
"""After such a job the others have their turn for as long as it was alone, and at least so long."""


class ClaimSelector:
    """Picks from a backlog. `clock` is the lease clock; `relist` reads all jobs anew.

    A job that has crashed before begins alone in its process: it may be a poison pill, or have
    stood beside one and must not be charged for another. At most one such job is at work. Of the
    types in `limits` at most so many are.
    """

    def __init__(
        self,
        *,
        backlog: Backlog,
        queue: QueueState,
        live_workers: LiveWorkers,
        clock: Callable[[], float],
        relist: Callable[[], None],
        limits: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._backlog = backlog
        self._min_takeover_delay = backlog.takeover_delay
        self._round_trip = 0.0
        self._queue = queue
        self._live_workers = live_workers
        self._clock = clock
        self._relist = relist
        self._limits = limits
        self._running_by_type: Counter[str] = Counter()
        self._excluded_types: set[str] = set()
        self._crashed_job: Candidate | None = None
        self._alone_since = 0.0
        self._other_jobs: list[Candidate] = []
        self._empty_by: float | None = None
        self._crashed_allowed_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether anything may be claimed at all."""
        return self._queue.synced and not self._queue.paused and self._live_workers.synced

    def select(self) -> Candidate | None:
        """Take out the job to claim next; None if there is none for now."""
        if not self.is_open:
            return None
        now = self._clock()
        self._backlog.set_priority_ageing(self._queue.priority_ageing_seconds, now)
        for crashed_too in self._crashed_choices(now):
            if candidate := self._pop_allowed(now, include_crashed=crashed_too):
                self._record_selected(candidate, now)
                self._update_empty_by(now)
                return candidate
        self._update_empty_by(now)
        if self._backlog.overflowed and not len(self._backlog):
            self._relist()
        return None

    def _crashed_choices(self, now: float) -> Sequence[bool]:
        """Return whether jobs that have crashed before may be taken: what to try, in order."""
        if self._blocked_until(now) is not None:
            return ()
        if self._crashed_job is not None:
            return (False,)
        its_turn = now >= self._crashed_allowed_at
        if self._other_jobs:
            return (its_turn and self._empty_by is not None,)
        return (True,) if its_turn else (False, True)

    def _update_empty_by(self, now: float) -> None:
        """Note from when on the worker is to become empty, and until when, if it is at all."""
        if self._crashed_job is not None or not self._other_jobs or not self._backlog.has_deferred:
            self._empty_by = None
        elif self._empty_by is None:
            self._empty_by = max(now, self._crashed_allowed_at) + EMPTYING_SECONDS

    def _blocked_until(self, now: float) -> float | None:
        """Return until when nothing is taken, so that one job is alone; None if that is not so."""
        opens_at = None
        if self._crashed_job is not None:
            opens_at = self._alone_since + ALONE_SECONDS
        elif self._other_jobs and self._empty_by is not None and now >= self._crashed_allowed_at:
            opens_at = self._empty_by
        return None if opens_at is None or opens_at <= now else opens_at

    def _pop_allowed(self, now: float, *, include_crashed: bool) -> Candidate | None:
        while candidate := self._backlog.pop(
            now, include_crashed=include_crashed, excluded_types=self._excluded_types
        ):
            if candidate.admitted or not self._queue.limited:
                return candidate
        return None

    def put_back(self, candidate: Candidate) -> None:
        """Return a job that could not be tried."""
        self._backlog.put_back(candidate, self._clock())

    def record_claim(self, seconds: float, *, won: bool) -> None:
        """Note that a claim was answered after so many seconds, and whether the job is ours.

        A slow API server calls for more patience with others, or everyone meets at the same jobs.
        """
        self._round_trip += _ROUND_TRIP_WEIGHT * (seconds - self._round_trip)
        patience = min(TAKEOVER_ROUND_TRIPS * self._round_trip, MAX_TAKEOVER_DELAY_SECONDS)
        self._backlog.takeover_delay = max(self._min_takeover_delay, patience)
        if not won:
            self._backlog.restart_takeover_delay(self._clock())

    def on_abandoned(self, candidate: Candidate) -> bool:
        """Note that a job's outcome is reported, though its handler may ignore its stop.

        Returns whether that allows others.
        """
        return self._release_job(candidate)

    def release(self, candidate: Candidate) -> bool:
        """Note that a picked job is no longer at work; returns whether that allows others."""
        opened = self._release_type(candidate.type)
        return self._release_job(candidate) or opened

    def _release_job(self, candidate: Candidate) -> bool:
        """Return whether that allows others.

        By identity: for a moment one process may hold two claims of one job.
        """
        if self._crashed_job is candidate:
            self._crashed_job, now = None, self._clock()
            turn = min(now - self._alone_since, ALONE_SECONDS)
            self._crashed_allowed_at = now + max(turn, MIN_OTHERS_SECONDS)
            return True
        self._other_jobs = [one for one in self._other_jobs if one is not candidate]
        return not self._other_jobs

    def _record_selected(self, candidate: Candidate, now: float) -> None:
        if candidate.crashes:
            self._crashed_job, self._alone_since = candidate, now
        else:
            self._other_jobs.append(candidate)
        limit = self._limits.get(candidate.type)
        if limit is not None:
            self._running_by_type[candidate.type] += 1
            if self._running_by_type[candidate.type] >= limit:
                self._excluded_types.add(candidate.type)

    def _release_type(self, type_: str) -> bool:
        """Return whether the type may be picked again that could not before."""
        if type_ not in self._limits:
            return False
        self._running_by_type[type_] -= 1
        was_barred = type_ in self._excluded_types
        self._excluded_types.discard(type_)
        return was_barred

    def ready_at(self) -> float | None:
        """Return when there may be something to pick without anything else changing."""
        if not self.is_open:
            return None
        now = self._clock()
        if (opens_at := self._blocked_until(now)) is not None:
            return opens_at
        times = [self._backlog.ready_at(self._excluded_types)]
        if self._empty_by is not None and now < self._crashed_allowed_at:
            times.append(self._crashed_allowed_at)
        return min((time for time in times if time is not None), default=None)
