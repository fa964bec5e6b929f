"""Which finished jobs are removed: by age and by count.

None is removed below a minimum age, unless its namespace holds too many finished jobs.

Dead letters are counted apart from the others: a busy queue would otherwise remove, within minutes,
the very jobs that wait for a person.

A job's age is counted by the API server's times. A worker's clock may be wrong and its token
stolen, and with a completionTime long ago, keys would be forgotten that somebody still relies on.
An operator that sees a job end knows when that was. One that starts later goes by the job's version
(`version_times`) and, where there are any, by the times in managedFields. Anyone who may patch the
job can forge the latter. So they are read once, when the job is first seen finished, and trusted
only between the job's creation and the time by which it was written.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.now import to_epoch
from asyncjob_operator.core.options import QueueView, RetentionOptions

_WHOLE_SECOND: Final = 1.0
"""The API server's times are whole seconds; within one the time that the job reports counts."""


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """All that is kept of a finished job."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    queue: str
    phase: Phase
    completed_at: float
    """Epoch seconds, verified by the API server's times."""

    ttl_seconds_after_finished: int | None
    has_dedup_key: bool
    deleting: bool
    reason: str = ""
    parent_uid: str = ""
    cascades_cancel: bool = False
    attempt: int = 0
    reported_completion: float = 0.0
    """Epoch seconds, as the job's own status reports."""

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
    """Which finished jobs of a namespace are to be removed."""

    jobs: tuple[FinishedJob, ...]
    """The jobs, in the order in which to remove them."""

    total: int
    """Number of finished jobs that the limits apply to."""

    excess: int
    """Number of `jobs` that go whatever their age, because the namespace holds too many."""

    forced: frozenset[str] = frozenset()
    """UIDs of those that go though an unfinished parent may ask how they ended."""


def finished_job(
    job: JobView, observed_at: float, previous: FinishedJob | None = None
) -> FinishedJob:
    """Return what is kept of a finished job that was written by `observed_at`, in epoch seconds.

    `previous` is what was kept of it so far: the same end keeps its time, whatever is written
    later.
    """
    reported = to_epoch(job.completion_time or job.last_transition_time, default=observed_at)
    same_end = previous is not None and _completion_key(previous) == (
        job.phase,
        job.attempt,
        reported,
    )
    return FinishedJob(
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        resource_version=job.resource_version,
        queue=job.queue,
        phase=job.phase,
        completed_at=previous.completed_at
        if previous and same_end
        else verified_completion(job, reported, observed_at),
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
        has_dedup_key=job.has_dedup_key,
        deleting=job.deleting,
        reason=job.reason,
        parent_uid=job.parent_uid,
        cascades_cancel=job.cascades_cancel,
        attempt=job.attempt,
        reported_completion=reported,
    )


def _completion_key(record: FinishedJob) -> tuple[Phase, int, float]:
    return record.phase, record.attempt, record.reported_completion


def verified_completion(job: JobView, reported: float, observed_at: float) -> float:
    """Return the reported completion as far as the API server's times confirm it.

    Without these it ended at `observed_at`: a worker's report could make it older.
    """
    written = min(to_epoch(job.completion_write_time, default=observed_at), observed_at)
    written = max(written, to_epoch(job.creation_timestamp, default=observed_at))
    return min(max(reported, written), written + _WHOLE_SECOND)


def by_queue(jobs: Iterable[FinishedJob]) -> dict[str, list[FinishedJob]]:
    """Return the jobs of one namespace that are not being deleted already, by queue."""
    queues: defaultdict[str, list[FinishedJob]] = defaultdict(list)
    for job in jobs:
        if not job.deleting:
            queues[job.queue].append(job)
    return queues


def plan_removals(
    queues: Mapping[str, Sequence[FinishedJob]],
    removable: Iterable[FinishedJob],
    options: RetentionOptions,
    children: Sequence[FinishedJob],
    wall: float,
) -> Removals:
    """Return which finished jobs of one namespace are to be removed.

    `removable` are those that their queues may do without. `queues` must not contain any job that
    another, which has not started yet, depends on: counted, such jobs would be selected in place of
    those that can be removed. `children` are those of unfinished parents, which may ask how they
    ended. No limit counts them but that of the namespace.
    """
    present = [job for members in queues.values() for job in members]
    oldest = sorted(removable, key=_age_key)
    uids = {job.uid for job in oldest}
    kept = [job for job in present if job.uid not in uids]
    excess = beyond_namespace_limit(kept, options, children, wall)
    awaited = {job.uid for job in children}
    return Removals(
        (*oldest, *excess),
        len(present) + len(children),
        len(excess),
        frozenset(job.uid for job in excess if job.uid in awaited),
    )


def removable_in_queue(
    jobs: Iterable[FinishedJob], queue: QueueView, options: RetentionOptions, wall: float
) -> list[FinishedJob]:
    """Return which finished jobs of one queue are to be removed, the oldest first."""
    present = [job for job in jobs if not job.deleting]
    excess = _beyond_queue_limit(present, queue, options)
    removable = [
        job
        for job in present
        if wall >= _removable_at(job, queue, options, beyond_limit=job.uid in excess)
    ]
    return sorted(removable, key=_age_key)


def beyond_namespace_limit(
    jobs: Iterable[FinishedJob],
    options: RetentionOptions,
    children: Sequence[FinishedJob],
    wall: float,
) -> list[FinishedJob]:
    """Return the jobs beyond a namespace's limit, whatever their age: dead letters last.

    `children` of unfinished parents come after those, while they are younger than the minimum age.
    Older ones go before dead letters, and before what others are deduplicated by: a parent that
    nobody ends must not cost its namespace all that a person or a client still needs.
    """
    present = sorted(
        (job for job in jobs if not job.deleting),
        key=lambda job: (job.is_dead_letter, job.completed_at, job.uid),
    )
    excess = len(present) + len(children) - options.namespace_limit
    if excess <= 0:
        return []
    awaited = sorted(children, key=_age_key)
    old = [job for job in awaited if wall >= job.completed_at + options.min_age]
    young = awaited[len(old) :]
    spared = [job for job in present if old and _is_relied_on(job, options, wall)]
    uids = {job.uid for job in spared}
    first = [job for job in present if job.uid not in uids]
    return [*first, *old, *spared, *young][:excess]


def _is_relied_on(job: FinishedJob, options: RetentionOptions, wall: float) -> bool:
    """Return whether a job waits for a person, or others are still deduplicated by it."""
    is_recent = wall < job.completed_at + options.dedup_window
    return job.is_dead_letter or (job.has_dedup_key and is_recent)


def _beyond_queue_limit(
    jobs: Sequence[FinishedJob], queue: QueueView, options: RetentionOptions
) -> frozenset[str]:
    limit = options.max_finished if queue.max_finished is None else queue.max_finished
    excess: set[str] = set()
    for dead in (False, True):
        pool = [job for job in jobs if job.is_dead_letter is dead]
        if len(pool) > limit:
            oldest = sorted(pool, key=_age_key)[: len(pool) - limit]
            excess.update(job.uid for job in oldest)
    return frozenset(excess)


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
