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

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.now import to_epoch
from asyncjob_operator.core.options import QueueView, RetentionOptions

_WHOLE_SECOND: Final = 1.0
"""The API server's times are cut to seconds; what a job itself says tells them apart within."""


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """All that is kept of a finished job.

    `completed_at` is epoch seconds by the API server's clock, `reported_completion` what the job's
    own status says.
    """

    uid: str
    namespace: str
    name: str
    resource_version: str
    queue: str
    phase: Phase
    completed_at: float
    ttl_seconds_after_finished: int | None
    has_dedup_key: bool
    deleting: bool
    reason: str = ""
    parent_uid: str = ""
    cascades_cancel: bool = False
    attempt: int = 0
    reported_completion: float = 0.0
    awaits_request: bool = False
    """A rerun or redrive is requested that could not be carried out yet."""

    @property
    def finished(self) -> bool:
        """Return True, as a view of the job would."""
        return True

    @property
    def is_dead_letter(self) -> bool:
        """Return whether it is a dead letter."""
        return self.phase is Phase.DEAD_LETTER


@dataclass(frozen=True, slots=True)
class Removals:
    """What is to go of a namespace, in order.

    `excess` of it whatever its age, of `total` in all.
    """

    jobs: tuple[FinishedJob, ...]
    total: int
    excess: int


def finished_job(
    job: JobView, observed_at: float, previous: FinishedJob | None = None
) -> FinishedJob:
    """Return what is kept of a finished job that is seen now, by the API server's clock.

    `previous` is what was kept of it so far: the same end keeps its time, whatever is written
    later.
    """
    said = to_epoch(job.completion_time or job.last_transition_time or "", default=observed_at)
    known = previous is not None and _completion_key(previous) == (job.phase, job.attempt, said)
    return FinishedJob(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        resource_version=job.resource_version,
        queue=job.queue,
        phase=job.phase,
        completed_at=previous.completed_at
        if previous and known
        else verified_completion(job, said, observed_at),
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
        has_dedup_key=job.has_dedup_key,
        deleting=job.deleting,
        reason=job.reason,
        parent_uid=job.parent_uid,
        cascades_cancel=job.cascades_cancel,
        attempt=job.attempt,
        reported_completion=said,
    )


def _completion_key(record: FinishedJob) -> tuple[Phase, int, float]:
    return record.phase, record.attempt, record.reported_completion


def verified_completion(job: JobView, reported: float, observed_at: float) -> float:
    """Return what the job says of its end, as far as the API server bears it out.

    Without the API server's word it has ended just now: a worker's word would make it older.
    """
    written = to_epoch(job.completion_write_time or "", default=observed_at)
    written = min(max(written, to_epoch(job.creation_timestamp, default=observed_at)), observed_at)
    return min(max(reported, written), written + _WHOLE_SECOND)


def plan_removals(
    jobs: Iterable[FinishedJob],
    removable_of: Callable[[Sequence[FinishedJob]], Sequence[FinishedJob]],
    options: RetentionOptions,
) -> Removals:
    """Return which finished jobs of one namespace are to go, and how many those are too many.

    `removable_of` returns what is to go of one queue's jobs. What a job that has not started
    depends on is not among `jobs`: it must not be counted, or the oldest being needed would keep
    all others.
    """
    present = [job for job in jobs if not job.deleting]
    queues: defaultdict[str, list[FinishedJob]] = defaultdict(list)
    for job in present:
        queues[job.queue].append(job)
    gone = [job for members in queues.values() for job in removable_of(members)]
    uids = {job.uid for job in gone}
    excess = beyond_namespace_limit([job for job in present if job.uid not in uids], options)
    return Removals(tuple(sorted(gone, key=_age_key)) + tuple(excess), len(present), len(excess))


def removable_in_queue(
    jobs: Iterable[FinishedJob], queue: QueueView, options: RetentionOptions, wall: float
) -> list[FinishedJob]:
    """Return which finished jobs of one queue are to go, the oldest first."""
    present = [job for job in jobs if not job.deleting]
    surplus = _beyond_queue_limit(present, queue, options)
    gone = [
        job
        for job in present
        if wall >= _removable_at(job, queue, options, beyond_limit=job.uid in surplus)
    ]
    return sorted(gone, key=_age_key)


def beyond_namespace_limit(
    jobs: Iterable[FinishedJob], options: RetentionOptions
) -> list[FinishedJob]:
    """Return what a namespace holds beyond its limit, whatever its age, the oldest first."""
    present = [job for job in jobs if not job.deleting]
    excess = len(present) - options.namespace_limit
    if excess <= 0:
        return []
    return sorted(present, key=lambda job: (job.is_dead_letter, job.completed_at, job.uid))[:excess]


def _beyond_queue_limit(
    jobs: Sequence[FinishedJob], queue: QueueView, options: RetentionOptions
) -> frozenset[str]:
    limit = options.max_finished if queue.max_finished is None else queue.max_finished
    surplus: set[str] = set()
    for dead in (False, True):
        pool = [job for job in jobs if job.is_dead_letter is dead]
        if len(pool) > limit:
            oldest = sorted(pool, key=_age_key)[: len(pool) - limit]
            surplus.update(job.uid for job in oldest)
    return frozenset(surplus)


def _removable_at(
    job: FinishedJob, queue: QueueView, options: RetentionOptions, *, beyond_limit: bool
) -> float:
    floor = options.min_age if queue.min_age_seconds is None else queue.min_age_seconds
    if job.has_dedup_key:
        floor = max(floor, options.dedup_window)
    return job.completed_at + (floor if beyond_limit else max(floor, _max_age(job, queue, options)))


def _max_age(job: FinishedJob, queue: QueueView, options: RetentionOptions) -> float:
    for seconds in (job.ttl_seconds_after_finished, queue.max_age_seconds):
        if seconds is not None:
            return seconds
    return options.dead_letter_max_age if job.is_dead_letter else options.max_age


def _age_key(job: FinishedJob) -> tuple[float, str]:
    return (job.completed_at, job.uid)
