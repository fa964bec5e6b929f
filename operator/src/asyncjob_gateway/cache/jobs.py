"""All jobs of one namespace, newest first, as the watch shows them.

Fed by lists, the watch and answers to our own writes, in any order: an older version never replaces
a newer one.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube.watch import WatchEvent
from asyncjob.lifecycle.phases import WAITING_PHASES, Phase
from asyncjob.rest.listing import ListPosition
from asyncjob_gateway.cache.changes import ChangeBuffer, ObservedVersion
from asyncjob_gateway.cache.entries import CachedJob, cached_job_of, parse_version

_MAX_DELETED_UIDS: Final = 1024
"""Deleted jobs that are remembered, the newest: an answer to an earlier write would bring one back.
They are needed for as long as a request takes; with too few a deleted job could be shown until the
jobs are listed again."""


class JobCache:
    """Jobs by UID, and their order.

    `changes` takes every change, `observed` the version that they have come to.
    """

    def __init__(self, changes: ChangeBuffer) -> None:
        self.changes = changes
        self.observed = ObservedVersion()
        self.synced = False
        self.counts: Counter[tuple[str, Phase]] = Counter()
        self._jobs: dict[str, CachedJob] = {}
        self._order: list[ListPosition] = []
        self._deleted_uids: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Replace all jobs by a new list; subscribers are told to list again."""
        entries = list(filter(None, map(cached_job_of, objects)))
        self._jobs = {entry.summary.uid: entry for entry in entries}
        self._order = sorted(entry.sort_key for entry in entries)
        self.counts = Counter((entry.summary.queue, entry.summary.phase) for entry in entries)
        self.synced = True
        self.changes.reset()
        self.observed.advance(self.changes.oldest_replayable)

    def apply(self, event: WatchEvent) -> None:
        """Take one change that the watch shows; it is handed on, whatever is known already."""
        if event.type == "DELETED":
            self._delete(event.object)
        else:
            self._update(event.object)
        self.observed.advance(parse_version(event.resource_version))

    def put_written(self, obj: JsonObject) -> None:
        """Take the answer to a write of our own, so that lists have it before the watch shows it.

        It is not handed on: changes are, one after the other, as the watch shows them.
        """
        entry = cached_job_of(obj)
        if entry and self.synced and entry.summary.uid not in self._deleted_uids:
            self._put(entry)

    def newest_first(self, after: ListPosition | None = None) -> Iterator[CachedJob]:
        """Yield the jobs, newest first, beginning after a place."""
        end = len(self._order) if after is None else bisect_left(self._order, after)
        for index in range(end - 1, -1, -1):
            yield self._jobs[self._order[index][1]]

    def waiting_count(self, queue: str) -> int:
        """Return how many jobs of a queue wait to be run."""
        return sum(self.counts[queue, phase] for phase in WAITING_PHASES)

    def _update(self, obj: JsonObject) -> None:
        entry = cached_job_of(obj)
        if entry:
            self._put(entry)
            self.changes.publish(entry)

    def _put(self, job: CachedJob) -> None:
        uid = job.summary.uid
        before = self._jobs.get(uid)
        if before and before.version >= job.version:
            return
        if before is None:
            insort(self._order, job.sort_key)
        self._count(before, -1)
        self._count(job, 1)
        self._jobs[uid] = job

    def _delete(self, obj: JsonObject) -> None:
        uid = text(child(obj, "metadata"), "uid")
        self._deleted_uids[uid] = None  # an answer to an earlier write may still be under way
        if len(self._deleted_uids) > _MAX_DELETED_UIDS:
            del self._deleted_uids[next(iter(self._deleted_uids))]
        entry = self._jobs.pop(uid, None)
        if entry:
            self._count(entry, -1)
            del self._order[bisect_left(self._order, entry.sort_key)]
            version = parse_version(text(child(obj, "metadata"), "resourceVersion"))
            self.changes.publish_deleted(entry, version)

    def _count(self, job: CachedJob | None, by: int) -> None:
        if job:
            self.counts[job.summary.queue, job.summary.phase] += by
