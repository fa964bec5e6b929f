"""How AsyncJobs reach the cache: the first list, the watch, and the periodic resync.

By default the watch is the SDK's and not kopf's, whose work per event jobs do not need (ADR 13). A
watch can lose a deletion, and nothing else would ever reveal that. So a resync compares the cache
with one consistent list of metadata and resolves every difference by a live read of that job. The
lag of the watch, and whether it has gone silent, are measured here as well.
"""

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from asyncjob.errors import ObjectNotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import TimeSlice
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.kube.watch import watch
from asyncjob.names import JOBS, collection_path, job_path
from asyncjob_operator.cache.jobs import JobStore, is_newer
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.core.now import Now
from asyncjob_operator.telemetry.quarantine import ObjectKind, Quarantine, object_ref

SHOWN_SECONDS: Final = 60.0
"""Seconds for which the lag of the newest job is shown."""

YOUNG_GENERATION_THRESHOLD: Final = 10_000
"""New objects before the collector looks at them, where Python itself takes 700."""

GATHER_SECONDS: Final = 0.01
"""Events of jobs that come within this time are taken together, in one turn of the event loop."""

JobEventHandler = Callable[[str, JsonObject], None]
"""Called with the type of an event (ADDED, MODIFIED, DELETED) and the object."""

WatchProgress = Callable[[str | None], None]
"""Called with the namespace of a watch that has received anything, be it a bookmark."""

ResyncNamespace = Callable[[str | None], Awaitable[str]]
"""Repairs the cache of a namespace, or of all, and returns the version to watch from."""


@dataclass(slots=True)
class InitialList:
    """How many jobs a list has returned, and the version to watch from."""

    count: int = 0
    version: str = ""


@dataclass(slots=True)
class ResyncResult:
    """How many changes of jobs the watch had missed."""

    added: int = 0
    changed: int = 0
    deleted: int = 0
    version: str = ""
    """The list's version, to watch from."""

    @property
    def by_kind(self) -> dict[str, int]:
        """Return the counts by name."""
        return {"added": self.added, "changed": self.changed, "deleted": self.deleted}

    @property
    def total(self) -> int:
        """Return the number of all missed changes."""
        return self.added + self.changed + self.deleted


@contextmanager
def freeze_gc() -> Iterator[None]:
    """Collect nothing while all jobs are listed, and leave what there is then out for good.

    Views of jobs have no cycles: reference counts alone free them. To walk through all of them but
    once would hold the event loop, for 60 ms with a hundred thousand objects. If the list fails,
    the collector is on as before.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
        gc.set_threshold(YOUNG_GENERATION_THRESHOLD, *gc.get_threshold()[1:])
    finally:
        gc.enable()


async def load_jobs(
    session: KubeSession,
    namespace: str | None,
    evaluator: JobEvaluator,
    on_page: Callable[[], None],
) -> InitialList:
    """List all jobs into the cache; `on_page` is called after each page."""
    loaded, time_slice = InitialList(), TimeSlice()
    async for page in session.pages(collection_path(namespace, JOBS)):
        for obj in items(page, "items"):
            evaluator.on_update(as_object(obj), just_changed=False)
            loaded.count += 1
            await time_slice.yield_if_due()
        on_page()
        loaded.version = text(child(page, "metadata"), "resourceVersion")
    return loaded


class JobWatch:
    """Watches jobs, in each namespace or in all, and resumes where a watch has ended.

    Not `run_informer`: after a break that lists all jobs again with their payloads, where a resync
    lists metadata and reads what differs.
    """

    def __init__(
        self,
        session: KubeSession,
        on_event: JobEventHandler,
        resync: ResyncNamespace,
        on_progress: WatchProgress,
    ) -> None:
        self._session = session
        self._on_event = on_event
        self._on_progress = on_progress
        self._resync = resync
        self._versions: dict[str | None, str] = {}

    def resume_from(self, namespace: str | None, version: str) -> None:
        """Start the next watch at this version, up to which everything is known."""
        self._versions[namespace] = version

    async def run(self, namespace: str | None) -> None:
        """Watch until cancelled. Raises ApiError, ExpiredError included, when the watch breaks.

        After a break it resyncs first, as no watch reports what was deleted meanwhile.
        """
        while True:
            version = self._versions.pop(namespace, "") or await self._resync(namespace)
            self._versions[namespace] = await self._watch_until_closed(namespace, version)

    async def _watch_until_closed(self, namespace: str | None, version: str) -> str:
        """Watch until the server ends it, as it does every few minutes; return the last version."""
        params = {"resourceVersion": version}
        path = collection_path(namespace, JOBS)
        async for event in watch(self._session, path, params, gather_seconds=GATHER_SECONDS):
            version = event.resource_version or version
            self._on_progress(namespace)
            if event.type != "BOOKMARK":
                self._on_event(event.type, event.object)
        return version


class JobResync:
    """Compares the cached jobs with the cluster, and repairs what differs."""

    def __init__(
        self,
        session: KubeSession,
        evaluator: JobEvaluator,
        store: JobStore,
        quarantine: Quarantine,
    ) -> None:
        self._session = session
        self._evaluator = evaluator
        self._store = store
        self._quarantine = quarantine

    async def run(self, namespace: str | None) -> ResyncResult:
        """Compare one namespace, or all, with a list. Raises ApiError, ExpiredError included."""
        result, time_slice = ResyncResult(), TimeSlice()
        listed: set[str] = set()
        quarantined = self._quarantine.quarantined_names(ObjectKind.JOB, namespace)
        path = collection_path(namespace, JOBS)
        async for page in self._session.pages(path, accept=METADATA_LIST_TYPE):
            result.version = text(child(page, "metadata"), "resourceVersion")
            for item in items(page, "items"):
                obj = as_object(item)
                meta = child(obj, "metadata")
                listed.add(text(meta, "uid"))
                quarantined.discard((text(meta, "namespace"), text(meta, "name")))
                await self._repair_listed(obj, result)
                await time_slice.yield_if_due()
        for name in quarantined:
            self._quarantine.forget(ObjectKind.JOB, *name)
        for uid, known in self._store.addresses():
            await time_slice.yield_if_due()
            if uid not in listed and namespace in {None, known.namespace}:
                found_uid = await self._reread(known.namespace, known.name)
                if found_uid != uid:
                    self._evaluator.on_delete(uid)
                    result.deleted += 1
        return result

    async def _repair_listed(self, obj: JsonObject, result: ResyncResult) -> None:
        """Read a listed job that is unknown, or known only in an older version.

        A job that is quarantined in this version is skipped until its pause is over.
        """
        meta = child(obj, "metadata")
        uid = text(meta, "uid")
        known = self._store.locate(uid)
        if known and not is_newer(text(meta, "resourceVersion"), known.version):
            return
        if self._quarantine.is_quarantined(object_ref(ObjectKind.JOB, obj)):
            return
        await self._reread(text(meta, "namespace"), text(meta, "name"))
        now_known = self._store.locate(uid)
        if now_known and now_known != known:
            result.added += known is None
            result.changed += known is not None

    async def _reread(self, namespace: str, name: str) -> str | None:
        """Store the job of this name as it is now; return its UID, None if there is none."""
        try:
            obj = await self._session.get(job_path(namespace, name))
        except ObjectNotFoundError:
            return None
        self._evaluator.on_update(obj, just_changed=False)
        return text(child(obj, "metadata"), "uid")


class WatchLag:
    """The age of the newest job when it was first seen: our wall clock minus creationTimestamp."""

    def __init__(self, now: Callable[[], Now]) -> None:
        self._now = now
        self._seconds = 0.0
        self._observed_at = float("-inf")

    def observe_created(self, obj: JsonObject) -> None:
        """Measure a new job; creationTimestamp has whole seconds, so less than 1 is no lag."""
        now = self._now()
        age = -now.seconds_until(text(child(obj, "metadata"), "creationTimestamp"))
        self._seconds, self._observed_at = age if age >= 1.0 else 0.0, now.monotonic

    def seconds(self) -> float:
        """Return the lag in seconds, 0 if no job was created lately."""
        is_fresh = self._now().monotonic < self._observed_at + SHOWN_SECONDS
        return self._seconds if is_fresh else 0.0


class SilentWatchDetector:
    """Detects a watch that hangs silently, as behind a proxy that keeps it open.

    `events` counts the events of the watch; its user increments it.
    """

    def __init__(self) -> None:
        self.events = 0
        self._events_before = 0

    def is_silent(self, repaired: int) -> bool:
        """Return whether a resync had to repair something although no event had arrived.

        `repaired` is the number of jobs that the resyncs since the last call found to differ.
        """
        silent = repaired > 0 and self.events == self._events_before
        self._events_before = self.events
        return silent
