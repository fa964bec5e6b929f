"""The queued jobs that a worker knows of, and the order in which it claims them.

Jobs are assigned to the live workers by rendezvous hashing, so that idle workers do not all try to
claim the same job and, with a full backlog, each works on its own share. For each job the workers
have ranks; the one of rank 0 owns it, the others find it foreign. A foreign job is taken over only
after a delay that grows with this worker's rank for it, and that starts again whenever a takeover
turned out to be too early. Pure: time is an argument.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from asyncjob.lifecycle.arrays.chunks import is_chunk_type
from asyncjob.lifecycle.claim import Candidate
from asyncjob.shards import shard_of
from asyncjob_worker.claiming.partitions import PARTITIONS, Ranks, partition_of
from asyncjob_worker.claiming.priority_bucket import (
    CHUNKS,
    NO_SHARD,
    NO_TYPES,
    SHARED_QUEUE,
    ExcludedTypes,
    ForeignKey,
    PriorityBucket,
)
from asyncjob_worker.claiming.selection import JobSelection, Source
from asyncjob_worker.claiming.watched_jobs import WatchedJobs

MAX_STALE_ENTRIES = 1024
"""Queues are compacted once they hold more names without a job than this plus the number of
jobs."""


class Backlog:
    """Candidates by name, and the order in which to claim them. All times are in seconds.

    A foreign job is left to its owner for `takeover_delay`, which may be changed at any time, times
    this worker's rank for it. At most `limit` jobs are held; `overflowed` says that some were left
    out. Types in `limited_types` may be excluded when popping, at no cost per job.

    With ageing, the key of a job's bucket is its priority less the number of ageing periods that
    had passed when it arrived, so that the order of jobs does not change as time passes.
    """

    def __init__(
        self, *, takeover_delay: float, limit: int, limited_types: Iterable[str] = ()
    ) -> None:
        self.takeover_delay = takeover_delay
        self._limit = limit
        self._limited_types = frozenset(limited_types)
        self._arrivals = itertools.count()
        self._ranks: Ranks = [0] * PARTITIONS
        self._ranks_by_shard: Sequence[int] | None = None
        self._ranks_by_source: Mapping[Source, Ranks] = {}
        self._candidates: dict[str, Candidate] = {}
        self._watched = WatchedJobs()
        self._buckets: dict[int, PriorityBucket] = {}
        self._entries = 0
        self._ageing_seconds: int | None = None
        self._ageing_periods: dict[str, int] = {}
        self.overflowed = False

    def __len__(self) -> int:
        return len(self._candidates)

    def put(self, candidate: Candidate, now: float, selection: JobSelection | None = None) -> None:
        """Add a job, or a newer version of it; beyond the limit it is left for a later list.

        `selection` is that of the watch; None for the watch of all jobs.
        """
        moved = self.is_shared_out and self._watched.add(candidate.name, selection)
        self._insert(candidate, now, moved=moved)

    def put_back(self, candidate: Candidate, now: float) -> None:
        """Put back a job whose claim could not be sent, unless a newer version is here by now."""
        if candidate.name not in self._candidates:
            self._insert(candidate, now)

    def _insert(self, candidate: Candidate, now: float, *, moved: bool = False) -> None:
        known = self._candidates.get(candidate.name)
        if known is None and len(self._candidates) >= self._limit:
            self.overflowed = True
            return
        self._candidates[candidate.name] = candidate
        self._record_arrival(candidate.name, now)
        if moved or known is None or self._position(known) != self._position(candidate):
            self._enqueue(candidate, now)

    def drop(self, name: str) -> None:
        """Remove a job that is no longer queued. Its name stays in its queue until popped."""
        self._candidates.pop(name, None)
        self._ageing_periods.pop(name, None)
        self._watched.forget(name)

    def drop_from(self, selection: JobSelection | None, name: str) -> None:
        """Remove a job that has left the selection of a watch, unless another knows it."""
        if not self._watched.leave(name, selection):
            self.drop(name)

    @property
    def is_shared_out(self) -> bool:
        """Whether jobs may be known by watches of a part of them."""
        return bool(self._ranks_by_source)

    def version_of(self, name: str) -> str | None:
        """Return the version of a job that is here; None if there is none."""
        known = self._candidates.get(name)
        return None if known is None else known.resource_version

    def holds(self, selection: JobSelection) -> bool:
        """Return whether there is a job that is known by this watch."""
        return any(name in self._candidates for name in self._watched.names(selection))

    def drop_selection(self, selection: JobSelection | None) -> None:
        """Remove the jobs that only this watch, or that of all jobs, knows: it has ended."""
        for name in self._watched.end(selection):
            self.drop(name)

    def clear(self) -> None:
        """Remove all jobs."""
        self._candidates.clear()
        self._ageing_periods.clear()
        self._watched.clear()
        self._buckets.clear()
        self._entries = 0
        self.overflowed = False

    def reassign(
        self, ranks: Ranks, now: float, ranks_by_shard: Sequence[int] | None = None
    ) -> None:
        """Queue all jobs again by these ranks, because the live workers have changed.

        With `ranks_by_shard` those hold for jobs without a priority.
        """
        self._ranks = ranks
        self._ranks_by_shard = ranks_by_shard
        self._enqueue_all(now)

    def reassign_sources(self, ranks: Mapping[Source, Ranks], now: float) -> None:
        """Queue jobs by the ranks of the sources that they are known from.

        Without any there is only the watch of all jobs, and it is not kept who has told of a job.
        """
        if not ranks:
            self._watched = WatchedJobs()
        elif not self.is_shared_out:
            for name in self._candidates:
                self._watched.add(name, None)
        self._ranks_by_source = ranks
        self._enqueue_all(now)

    def set_priority_ageing(self, seconds: int | None, now: float) -> None:
        """Let each `seconds` of waiting raise the priority by one, from now on; None: no ageing."""
        if seconds == self._ageing_seconds:
            return
        self._ageing_seconds = seconds
        self._ageing_periods.clear()
        for name in self._candidates:
            self._record_arrival(name, now)
        self._enqueue_all(now)

    def pop(
        self, now: float, *, include_crashed: bool = True, excluded_types: ExcludedTypes = NO_TYPES
    ) -> Candidate | None:
        """Remove and return the job to claim next: highest priority first, own before foreign.

        Jobs that have crashed before are deferred without `include_crashed`; those of the
        `excluded_types` stay where they are.
        """
        for priority in sorted(self._buckets, reverse=True):
            bucket = self._buckets[priority]
            claimable = bucket.claimable(
                now,
                self.takeover_delay,
                is_wanted=partial(self._is_in, priority),
                include_crashed=include_crashed,
                excluded_types=excluded_types,
            )
            for key, name in claimable:
                candidate = self._candidates.get(name)
                if candidate is None or self._position(candidate) != (priority, key):
                    continue  # dropped, or queued elsewhere since
                if include_crashed or not candidate.crashes:
                    return self._candidates.pop(name)
                bucket.queues[key].deferred.append(name)
            if bucket.is_empty:
                del self._buckets[priority]
        return None

    @property
    def has_deferred(self) -> bool:
        """Whether a job that has crashed before was deferred when its turn came."""
        return any(
            queue.deferred for bucket in self._buckets.values() for queue in bucket.queues.values()
        )

    def is_foreign(self, candidate: Candidate) -> bool:
        """Return whether another worker claims this job first."""
        return self._rank(candidate) > 0

    def restart_takeover_delay(self, now: float) -> None:
        """Start the takeover delay again: a job was claimed by another worker before us."""
        for bucket in self._buckets.values():
            if bucket.own_exhausted_at is not None:
                bucket.own_exhausted_at = now

    def ready_at(self, excluded_types: ExcludedTypes = NO_TYPES) -> float | None:
        """Return when the next foreign job may be taken over; None if there is none."""
        times = (
            bucket.ready_at(self.takeover_delay, excluded_types)
            for bucket in self._buckets.values()
        )
        return min((time for time in times if time is not None), default=None)

    def _compact(self) -> None:
        """Remove names whose job is gone: nothing pops them while all slots are busy."""
        for priority, bucket in list(self._buckets.items()):
            bucket.compact(partial(self._is_in, priority))
            if bucket.is_empty:
                del self._buckets[priority]
        self._entries = len(self._candidates)

    def _is_in(self, priority: int, key: str, name: str) -> bool:
        candidate = self._candidates.get(name)
        return candidate is not None and self._position(candidate) == (priority, key)

    def _position(self, candidate: Candidate) -> tuple[int, str]:
        type_ = candidate.type
        priority = candidate.priority - self._ageing_periods.get(candidate.name, 0)
        if type_ not in self._limited_types:
            return priority, SHARED_QUEUE
        return priority, CHUNKS if is_chunk_type(type_) else type_

    def _record_arrival(self, name: str, now: float) -> None:
        if self._ageing_seconds is not None:
            self._ageing_periods.setdefault(name, int(now // self._ageing_seconds))

    def _enqueue_all(self, now: float) -> None:
        self._buckets.clear()
        self._entries = 0
        for candidate in self._candidates.values():
            self._enqueue(candidate, now)

    def _enqueue(self, candidate: Candidate, now: float) -> None:
        self._entries += 1
        if self._entries > MAX_STALE_ENTRIES + 2 * len(self._candidates):
            self._compact()
        priority, key = self._position(candidate)
        bucket = self._buckets.setdefault(priority, PriorityBucket())
        bucket.add(key, candidate.name, self._whose(candidate), now, next(self._arrivals))

    def _whose(self, candidate: Candidate) -> ForeignKey:
        rank = self._rank(candidate)
        is_deputy = self.is_shared_out and rank == 1
        return rank, shard_of(candidate.name) if is_deputy else NO_SHARD

    def _rank(self, candidate: Candidate) -> int:
        if not self.is_shared_out:
            return self._rank_among_all(candidate)
        watches = self._watched.watches_of(candidate.name)
        ranks = [self._rank_from(selection, candidate) for selection in watches]
        return min(ranks) if ranks else self._rank_among_all(candidate)

    def _rank_from(self, selection: JobSelection | None, candidate: Candidate) -> int:
        source = None if selection is None else selection.source
        if source is None:
            return self._rank_among_all(candidate)
        return self._ranks_by_source[source][partition_of(candidate.name)]

    def _rank_among_all(self, candidate: Candidate) -> int:
        if self._ranks_by_shard is not None and not candidate.priority:
            return self._ranks_by_shard[shard_of(candidate.name)]
        return self._ranks[partition_of(candidate.name)]
