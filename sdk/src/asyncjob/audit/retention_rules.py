"""Rules of what is deleted: nothing unfinished, and nothing finished before its time.

A watch does not tell who deleted a job, and people may delete any. So a deletion is judged where
the audit log names its author, or where it is said that nobody but the operator deleted jobs.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from asyncjob.audit import catalog
from asyncjob.audit.catalog import Violation
from asyncjob.audit.job_groups import subject_of
from asyncjob.audit.job_version import JobVersion
from asyncjob.json_types import JsonObject, child, opt_integer, text

DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class RetentionFloors:
    """What the operator was configured with, in seconds; a queue may have its own minimum age."""

    min_age: float = 600.0
    dedup_window: float = DAY
    namespace_limit: int = 50_000
    """Beyond this many finished jobs in a namespace the oldest are deleted whatever their age."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion that was seen; `in_gap`: some time before `at`, in epoch seconds."""

    at: float
    in_gap: bool = False


class RetentionChecker:
    """Judges deletions by what is known of queues and of finished jobs."""

    def __init__(
        self,
        floors: RetentionFloors,
        tolerance: float,
        by_operator: Callable[[JobVersion, float], bool | None],
    ) -> None:
        self._floors = floors
        self._tolerance = tolerance
        self._by_operator = by_operator
        self._min_age: dict[tuple[str, str], float] = {}
        self._finished: Counter[str] = Counter()
        self.unjudged: Counter[str] = Counter()
        """Deletions that would break a rule if the operator had made them, by rule."""

    def on_queue(self, obj: JsonObject, *, event: str) -> None:
        """Take a version of an AsyncQueue."""
        meta, retention = child(obj, "metadata"), child(child(obj, "spec"), "retention")
        key = (text(meta, "namespace"), text(meta, "name"))
        own = opt_integer(retention, "minAgeSeconds")
        if own is None or event == "DELETED":
            self._min_age.pop(key, None)
        else:
            # A job may have been deleted by the floor that held before.
            self._min_age[key] = min(float(own), self._min_age.get(key, float(own)))

    def on_version(self, was: JobVersion | None, now: JobVersion) -> None:
        """Take a version of a job."""
        was_finished = was is not None and was.finished
        if now.finished != was_finished:
            self._finished[now.namespace] += 1 if now.finished else -1

    def on_deleted(self, job: JobVersion, deletion: Deletion) -> Iterator[Violation]:
        """Take a job that is gone."""
        finished_here = self._finished[job.namespace]
        if job.finished:
            self._finished[job.namespace] -= 1
        found = self._judge(job, deletion, finished_here)
        if found is None:
            return
        rule, message = found
        by_operator = self._by_operator(job, deletion.at)
        if by_operator is None:
            self.unjudged[rule.id] += 1
        elif by_operator:
            yield Violation(rule, subject_of(job), message, (job.version,), (job.seen, deletion.at))

    def _judge(
        self, job: JobVersion, deletion: Deletion, finished_here: int
    ) -> tuple[catalog.AuditRule, str] | None:
        if job.is_chunk:
            return None
        if not job.finished:
            if deletion.in_gap:  # it may have finished before
                return None
            return catalog.JOB_KEPT, f"deleted while it was {job.phase}"
        floor, what = self._floor_of(job)
        # The earlier of both: the recorder may have seen late what a worker may have timed wrongly.
        ended_at = min(job.written or job.seen, job.completed_at or job.seen, job.seen)
        age = deletion.at - ended_at
        if age + self._tolerance >= floor or finished_here > self._floors.namespace_limit:
            return None
        return catalog.RETENTION_FLOOR, f"deleted {age:.0f} s after its end; {what} is {floor:g} s"

    def _floor_of(self, job: JobVersion) -> tuple[float, str]:
        keys = job.keys
        if keys.idempotency or keys.deduplication:
            return self._floors.dedup_window, "the deduplication window"
        if job.run is not None:  # the history limits of its cron job go below the floors
            return 0.0, "the minimum age"
        own = self._min_age.get((job.namespace, job.queue), self._floors.min_age)
        return own, "the minimum age"
