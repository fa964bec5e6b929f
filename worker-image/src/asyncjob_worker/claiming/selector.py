"""Selects the job to claim next.

That is the first of the backlog that the queue's state, the concurrency limit of its type and the
isolation of jobs that have crashed before allow.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final

from asyncjob.lifecycle.arrays.chunks import chunk_slots
from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.priority_bucket import CHUNKS
from asyncjob_worker.claiming.queue_state import LiveWorkers, QueueState

TAKEOVER_ROUND_TRIPS = 10
"""The takeover delay is at least this many round trips of a claim, so that
the worker whose turn it is can fail some times before others try. Chosen, not measured."""

MAX_TAKEOVER_DELAY_SECONDS = 2.0
"""Upper limit of the takeover delay that slow claims lead to."""

UNKNOWN_DELAY_SECONDS: Final = 1.0
"""Lower limit of the takeover delay, where jobs are shared out, until a claim has been answered: of
many workers each would else lose its first jobs to their owners, if the API server is slow."""

_ROUND_TRIP_WEIGHT = 0.2
"""Weight of the latest claim in the moving average of round trips: a third of a change is left
after five claims (0.8⁵). Chosen, not measured."""

ALONE_SECONDS: Final = 30.0
"""How long a job that has crashed before is alone in its process: a poison pill kills early. Not
longer, because it may wait for other jobs, such as its children."""

EMPTYING_SECONDS: Final = 10.0
"""How long the worker claims nothing, to become empty for such a job. What still runs after that
does not kill the process early, and may itself wait for this job."""

MIN_OTHERS_SECONDS: Final = 2.0
"""After such a job the others have their turn for as long as it was alone, at least for this."""


class ClaimSelector:
    """Selects jobs from a backlog. `clock` is the lease clock; `relist` lists all jobs again.

    A job that has crashed before starts alone in its process: it may be a poison pill, or it has
    run beside one and must not be charged with another crash. At most one such job runs at a time.
    `limits` is the greatest number of jobs of a type that run at a time. Those of `chunk_types`
    together take a share of the `slots`; where that is all of them, another job that waits comes
    after each chunk.
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
        chunk_types: AbstractSet[str] = frozenset(),
        slots: int = 1,
    ) -> None:
        self._backlog = backlog
        self._min_takeover_delay = backlog.takeover_delay
        self._round_trip = 0.0
        self._queue = queue
        self._live_workers = live_workers
        self._clock = clock
        self._relist = relist
        self._limits = limits
        self._chunk_types = chunk_types
        self._chunk_limit = chunk_slots(slots)
        self._has_slot_for_others = self._chunk_limit < slots
        self._running_chunks = 0
        self._last_was_chunk = False
        self._running_by_type: Counter[str] = Counter()
        self._excluded_types: set[str] = set()
        self._crashed_job: Candidate | None = None
        self._alone_since = 0.0
        self._other_jobs: list[Candidate] = []
        self._empty_by: float | None = None
        self._crashed_allowed_at = 0.0
        self._selected_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether any job may be claimed: what is watched is known, and the queue not paused."""
        return self._queue.synced and not self._queue.paused and self._live_workers.synced

    @property
    def has_candidates(self) -> bool:
        """Whether jobs are left that may be claimed now or later, as far as is known."""
        return len(self._backlog) > 0 or self._backlog.overflowed

    def select(self) -> Candidate | None:
        """Remove and return the job to claim next; None if there is none now."""
        if not self.is_open:
            return None
        now = self._selected_at = self._clock()
        self._backlog.set_priority_ageing(self._queue.priority_ageing_seconds, now)
        if not self._round_trip and self._backlog.is_shared_out:
            self._backlog.takeover_delay = max(self._min_takeover_delay, UNKNOWN_DELAY_SECONDS)
        for include_crashed in self._crashed_choices(now):
            if candidate := self._pop_allowed(now, include_crashed=include_crashed):
                self._record_selected(candidate, now)
                self._update_empty_by(now)
                return candidate
        self._update_empty_by(now)
        if self._backlog.overflowed and not len(self._backlog):
            self._relist()
        return None

    def ready_at(self) -> float | None:
        """Return when `select` may return a job without any other change; None if never.

        As of the last `select`: it has not seen what has become possible since, and nothing else
        would make it look again.
        """
        if not self.is_open:
            return None
        now = self._selected_at
        if (opens_at := self._blocked_until(now)) is not None:
            return opens_at
        times = [self._backlog.ready_at(self._excluded_types)]
        if self._empty_by is not None and now < self._crashed_allowed_at:
            times.append(self._crashed_allowed_at)
        return min((time for time in times if time is not None), default=None)

    def is_takeover(self, candidate: Candidate) -> bool:
        """Return whether the job that was selected last is one that another worker claims first."""
        return self._backlog.is_foreign(candidate)

    def put_back(self, candidate: Candidate) -> None:
        """Put a job whose claim could not be sent back into the backlog."""
        self._backlog.put_back(candidate, self._clock())

    def record_claim(self, seconds: float, *, won: bool) -> None:
        """Record that a claim was answered after `seconds`, and whether it has won.

        With a slow API server the takeover delay grows: otherwise a worker takes over jobs whose
        owners are still waiting for the answers to their claims.
        """
        is_first = not self._round_trip and self._backlog.is_shared_out
        # Of many workers each claims seldom: it would know late that the API server is slow.
        weight = 1.0 if is_first else _ROUND_TRIP_WEIGHT
        self._round_trip += weight * (seconds - self._round_trip)
        takeover_delay = min(TAKEOVER_ROUND_TRIPS * self._round_trip, MAX_TAKEOVER_DELAY_SECONDS)
        self._backlog.takeover_delay = max(self._min_takeover_delay, takeover_delay)
        if not won:
            self._backlog.restart_takeover_delay(self._clock())

    def on_abandoned(self, candidate: Candidate) -> bool:
        """Record that a job's outcome is written although its abandoned handler still runs.

        Returns whether that may allow other jobs to be claimed.
        """
        return self._release_job(candidate)

    def done(self, candidate: Candidate) -> bool:
        """Record that a selected job no longer runs here; return whether that may allow others."""
        opened = self._release_type(candidate.type)
        return self._release_job(candidate) or opened

    def _crashed_choices(self, now: float) -> Sequence[bool]:
        """Return the values of `include_crashed` to pop with, in order; none if nothing may run."""
        if self._blocked_until(now) is not None:
            return ()
        if self._crashed_job is not None:
            return (False,)
        crashed_turn = now >= self._crashed_allowed_at
        if self._other_jobs:
            return (crashed_turn and self._empty_by is not None,)
        return (True,) if crashed_turn else (False, True)

    def _update_empty_by(self, now: float) -> None:
        """Decide whether the worker is to become empty for a deferred job, and until when."""
        if self._crashed_job is not None or not self._other_jobs:
            self._empty_by = None
        elif self._blocked_until(now) is not None:
            # Nothing was looked at: a backlog that was filled again meanwhile, or shared out
            # again among the workers, seems to have nothing deferred, and no other event need come.
            return
        elif not self._backlog.has_deferred:
            self._empty_by = None
        elif self._empty_by is None:
            self._empty_by = max(now, self._crashed_allowed_at) + EMPTYING_SECONDS

    def _blocked_until(self, now: float) -> float | None:
        """Return until when nothing is claimed, so that one job is alone; None if jobs may be."""
        opens_at = None
        if self._crashed_job is not None:
            opens_at = self._alone_since + ALONE_SECONDS
        elif self._other_jobs and self._empty_by is not None and now >= self._crashed_allowed_at:
            opens_at = self._empty_by
        return None if opens_at is None or opens_at <= now else opens_at

    def _pop_allowed(self, now: float, *, include_crashed: bool) -> Candidate | None:
        excluded = [self._excluded_types]
        if self._last_was_chunk and not self._has_slot_for_others:
            excluded.insert(0, self._excluded_types | {CHUNKS})
        for types in excluded:
            while candidate := self._backlog.pop(
                now, include_crashed=include_crashed, excluded_types=types
            ):
                if candidate.admitted or not self._queue.limited:
                    return candidate
        return None

    def _record_selected(self, candidate: Candidate, now: float) -> None:
        if candidate.crashes:
            self._crashed_job, self._alone_since = candidate, now
        else:
            self._other_jobs.append(candidate)
        self._last_was_chunk = candidate.type in self._chunk_types
        if self._last_was_chunk:
            self._running_chunks += 1
            if self._running_chunks >= self._chunk_limit:
                self._excluded_types.add(CHUNKS)
        limit = self._limits.get(candidate.type)
        if limit is not None:
            self._running_by_type[candidate.type] += 1
            if self._running_by_type[candidate.type] >= limit:
                self._excluded_types.add(candidate.type)

    def _release_job(self, candidate: Candidate) -> bool:
        """Return whether other jobs may be claimed that could not before.

        Compared by identity: for a moment one process may hold two claims of one job.
        """
        if self._crashed_job is candidate:
            self._crashed_job, now = None, self._clock()
            turn = min(now - self._alone_since, ALONE_SECONDS)
            self._crashed_allowed_at = now + max(turn, MIN_OTHERS_SECONDS)
            return True
        self._other_jobs = [other for other in self._other_jobs if other is not candidate]
        return not self._other_jobs

    def _release_type(self, type_: str) -> bool:
        """Return whether the type may be selected again after it was excluded."""
        if type_ in self._chunk_types:
            self._running_chunks -= 1
            was_full = CHUNKS in self._excluded_types
            self._excluded_types.discard(CHUNKS)
            return was_full
        if type_ not in self._limits:
            return False
        self._running_by_type[type_] -= 1
        was_excluded = type_ in self._excluded_types
        self._excluded_types.discard(type_)
        return was_excluded
