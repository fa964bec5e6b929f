"""Which finished jobs are removed: by age, by count, and never below the floors.

Dead letters are counted apart from the others: a busy queue would otherwise bury, within minutes,
the very jobs that wait for a person.

A job's age is the API server's to tell. A worker's clock may be wrong and a worker's token stolen,
and with a completionTime long ago, keys would be forgotten that somebody still relies on. What the
API server says can be forged as well by who may patch the job, so it is read once, when the job is
first seen finished, and believed only where it lies between the job's creation and now.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.moment import epoch
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.core.queue_view import QueueView

_WHOLE_SECOND: Final = 1.0
"""The API server's times are cut to seconds; what a job itself says tells them apart within."""


@dataclass(frozen=True, slots=True)
class Finished:
    """All that is kept of a finished job.

    `completed` is epoch seconds by the API server's clock, `said` what the job's own status says.
    """

    uid: str
    namespace: str
    name: str
    resource_version: str
    queue: str
    phase: Phase
    completed: float
    ttl_seconds: int | None
    long_memory: bool
    deleting: bool
    reason: str = ""
    parent: str = ""
    cascades: bool = False
    attempt: int = 0
    said: float = 0.0

    @property
    def finished(self) -> bool:
        """Return True, as a view of the job would."""
        return True

    @property
    def dead(self) -> bool:
        """Return whether it is a dead letter."""
        return self.phase is Phase.DEAD_LETTER


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to go of a namespace, in order; `excess` of it whatever its age, of `held` in all."""

    jobs: tuple[Finished, ...]
    held: int
    excess: int


def finished_of(job: JobView, seen_at: float, before: Finished | None = None) -> Finished:
    """Return what is kept of a finished job that is seen now, by the API server's clock.

    `before` is what was kept of it so far: the same end keeps its time, whatever is written later.
    """
    said = epoch(job.completion_time or job.last_transition_time or "", otherwise=seen_at)
    known = before is not None and _end(before) == (job.phase, job.attempt, said)
    return Finished(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        resource_version=job.resource_version,
        queue=job.queue,
        phase=job.phase,
        completed=before.completed if before and known else completed_at(job, said, seen_at),
        ttl_seconds=job.ttl_seconds,
        long_memory=job.long_memory,
        deleting=job.deleting,
        reason=job.reason,
        parent=job.parent,
        cascades=job.cascades,
        attempt=job.attempt,
        said=said,
    )


def _end(record: Finished) -> tuple[Phase, int, float]:
    return record.phase, record.attempt, record.said


def completed_at(job: JobView, said: float, seen_at: float) -> float:
    """Return what the job says of its end, as far as the API server bears it out.

    Without the API server's word it has ended just now: a worker's word would make it older.
    """
    written = epoch(job.completion_written or "", otherwise=seen_at)
    written = min(max(written, epoch(job.created, otherwise=seen_at)), seen_at)
    return min(max(said, written), written + _WHOLE_SECOND)


def doomed(
    jobs: Iterable[Finished],
    removable_of: Callable[[Sequence[Finished]], Sequence[Finished]],
    options: RetentionOptions,
) -> Doomed:
    """Return which finished jobs of one namespace are to go, and how many those are too many.

    `removable_of` returns what is to go of one queue's jobs. What a job that has not started
    depends on is not among `jobs`: it must not be counted, or the oldest being needed would keep
    all others.
    """
    present = [job for job in jobs if not job.deleting]
    queues: defaultdict[str, list[Finished]] = defaultdict(list)
    for job in present:
        queues[job.queue].append(job)
    gone = [job for members in queues.values() for job in removable_of(members)]
    uids = {job.uid for job in gone}
    excess = overflow([job for job in present if job.uid not in uids], options)
    return Doomed(tuple(sorted(gone, key=_age)) + tuple(excess), len(present), len(excess))


def removable(
    jobs: Iterable[Finished], queue: QueueView, options: RetentionOptions, wall: float
) -> list[Finished]:
    """Return which finished jobs of one queue are to go, the oldest first."""
    present = [job for job in jobs if not job.deleting]
    surplus = _surplus(present, queue, options)
    gone = [
        job
        for job in present
        if wall >= _goes_at(job, queue, options, in_surplus=job.uid in surplus)
    ]
    return sorted(gone, key=_age)


def overflow(jobs: Iterable[Finished], options: RetentionOptions) -> list[Finished]:
    """Return what a namespace holds beyond its limit, whatever its age, the oldest first."""
    present = [job for job in jobs if not job.deleting]
    excess = len(present) - options.namespace_limit
    if excess <= 0:
        return []
    return sorted(present, key=lambda job: (job.dead, job.completed, job.uid))[:excess]


def _surplus(
    jobs: Sequence[Finished], queue: QueueView, options: RetentionOptions
) -> frozenset[str]:
    limit = options.max_finished if queue.max_finished is None else queue.max_finished
    surplus: set[str] = set()
    for dead in (False, True):
        pool = [job for job in jobs if job.dead is dead]
        if len(pool) > limit:
            oldest = sorted(pool, key=_age)[: len(pool) - limit]
            surplus.update(job.uid for job in oldest)
    return frozenset(surplus)


def _goes_at(
    job: Finished, queue: QueueView, options: RetentionOptions, *, in_surplus: bool
) -> float:
    floor = options.min_age if queue.min_age_seconds is None else queue.min_age_seconds
    if job.long_memory:
        floor = max(floor, options.long_memory)
    return job.completed + (floor if in_surplus else max(floor, _max_age(job, queue, options)))


def _max_age(job: Finished, queue: QueueView, options: RetentionOptions) -> float:
    for seconds in (job.ttl_seconds, queue.max_age_seconds):
        if seconds is not None:
            return seconds
    return options.dead_letter_max_age if job.dead else options.max_age


def _age(job: Finished) -> tuple[float, str]:
    return (job.completed, job.uid)
