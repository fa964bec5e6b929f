"""The queued jobs of one priority, and which of them may be claimed now.

Each type with a limit of its own has a queue, as chunks of arrays have together, so that jobs that
cannot be claimed now are not examined again and again. Pure: time is an argument.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from asyncjob.lifecycle.arrays.chunks import array_of_chunk
from asyncjob_worker.claiming.foreign_jobs import ForeignJobs
from asyncjob_worker.claiming.turns import TurnQueue

ExcludedTypes = AbstractSet[str]
"""Types with a limit of their own that run as many jobs as it allows; `CHUNKS` for all chunks."""

NO_TYPES: Final[ExcludedTypes] = frozenset()

ForeignKey = tuple[int, int]
"""This worker's rank for jobs, and the shard whose deputy it is; `NO_SHARD` if it is not that."""

NO_SHARD: Final = -1

CHUNKS: Final = "/"
"""Key of the queue of the chunks of all arrays, which take turns; no type is called so."""

SHARED_QUEUE: Final = ""
"""Key of the queue of all types without a limit of their own."""


@dataclass(slots=True)
class TypeQueue:
    """Names of jobs of one priority that may be claimed under the same limit of their type.

    A name may stand here more than once, or without a job: who pops it has to check.
    """

    own: TurnQueue[int] = field(default_factory=TurnQueue)
    """Own jobs by number of arrival."""

    foreign: dict[ForeignKey, ForeignJobs] = field(default_factory=dict)
    """None of them is empty."""

    deferred: deque[str] = field(default_factory=deque)
    """Jobs that have crashed before, whose turn came when no such job could be started."""

    @property
    def is_empty(self) -> bool:
        """Whether no names are left here."""
        return not (self.own or self.foreign or self.deferred)

    def compact(self, is_wanted: Callable[[str], bool]) -> None:
        """Remove the names that are not wanted, and all but the first occurrence of each."""
        self.own.compact(is_wanted)
        self.deferred = deque(dict.fromkeys(filter(is_wanted, self.deferred)))
        for waiting in self.foreign.values():
            waiting.compact(is_wanted)
        self.foreign = {rank: waiting for rank, waiting in self.foreign.items() if waiting}

    def pop_foreign(
        self,
        key: ForeignKey,
        now: float,
        *,
        idle_since: float,
        delay: float,
        is_wanted: Callable[[str], bool],
    ) -> str | None:
        """Remove and return the job of these to take over now; None if none is."""
        if (foreign := self.foreign.get(key)) is None:
            return None
        name = foreign.pop(now, idle_since=idle_since, delay=delay, is_wanted=is_wanted)
        if not foreign:
            del self.foreign[key]
        return name

    def foreign_keys(self) -> Sequence[ForeignKey]:
        """Return the keys of foreign jobs, by rank and then by how long the first has waited."""
        return sorted(self.foreign, key=lambda key: (key[0], self.foreign[key].first))


@dataclass(slots=True)
class PriorityBucket:
    """The jobs of one priority.

    Each limited type has a queue of its own, so that its jobs are not examined while it is
    excluded.
    """

    queues: dict[str, TypeQueue] = field(default_factory=dict)
    """By type; all chunks share `CHUNKS`, all types without a limit `SHARED_QUEUE`."""

    own_exhausted_at: float | None = None
    """When the worker's own jobs ran out; None while there are some, or if nobody has looked."""

    @property
    def is_empty(self) -> bool:
        """Whether no names are left here."""
        return all(queue.is_empty for queue in self.queues.values())

    def add(self, key: str, name: str, whose: ForeignKey, now: float, number: int) -> None:
        """Add a job to the queue `key`; `number` grows with each job."""
        queue = self.queues.setdefault(key, TypeQueue())
        array = array_of_chunk(name) if key == CHUNKS else ""
        rank, shard = whose
        if rank == 0:
            queue.own.append(number, name, array)
        else:
            if whose not in queue.foreign:
                queue.foreign[whose] = ForeignJobs(of_one_shard=shard != NO_SHARD)
            queue.foreign[whose].append(now, name, array)

    def claimable(
        self,
        now: float,
        takeover_delay: float,
        *,
        is_wanted: Callable[[str, str], bool],
        include_crashed: bool,
        excluded_types: ExcludedTypes,
    ) -> Iterator[tuple[str, str]]:
        """Remove and yield queue keys and names, in the order in which they may be claimed now.

        `is_wanted` gets both of them. Not all that is yielded is wanted.
        """
        queues = {key: queue for key, queue in self.queues.items() if key not in excluded_types}
        for key, queue in queues.items():
            while include_crashed and queue.deferred:
                yield key, queue.deferred.popleft()
        while (first := _oldest_own(queues)) is not None:
            self.own_exhausted_at = None
            yield first, queues[first].own.popleft()
        if self.own_exhausted_at is None:
            self.own_exhausted_at = now
        for key, queue in queues.items():
            for whose in queue.foreign_keys():
                while (
                    name := queue.pop_foreign(
                        whose,
                        now,
                        idle_since=self.own_exhausted_at,
                        delay=whose[0] * takeover_delay,
                        is_wanted=partial(is_wanted, key),
                    )
                ) is not None:
                    yield key, name

    def compact(self, is_wanted: Callable[[str, str], bool]) -> None:
        """Remove the names that are not wanted; `is_wanted` gets the queue's key and the name."""
        for key, queue in list(self.queues.items()):
            queue.compact(partial(is_wanted, key))
            if queue.is_empty:
                del self.queues[key]

    def ready_at(self, takeover_delay: float, excluded_types: ExcludedTypes) -> float | None:
        """Return when the next foreign job may be taken over; None if there is none."""
        queues = (queue for key, queue in self.queues.items() if key not in excluded_types)
        times = (
            foreign.waits_since(self.own_exhausted_at) + rank * takeover_delay
            for queue in queues
            for (rank, _), foreign in queue.foreign.items()
        )
        return min(times, default=None)


def _oldest_own(queues: Mapping[str, TypeQueue]) -> str | None:
    """Return the key of the queue whose first own job has waited longest."""
    waiting = [(queue.own.first, key) for key, queue in queues.items() if queue.own]
    return min(waiting)[1] if waiting else None
