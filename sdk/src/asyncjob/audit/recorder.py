"""Records each version that watches of jobs, arrays, queues and cron jobs show.

A connection that is lost is opened again at the last version, and nothing is missing. Where the API
server no longer has what came after that version (410), everything is listed again, and the list
marks the gap. Objects are written as they come and not kept, so that memory stays the same however
many there are.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from asyncjob.audit.history_file import (
    FORMAT,
    WHOLE,
    HistoryLine,
    HistoryWriter,
    RecordingScope,
)
from asyncjob.audit.recorded_object import recorded_object, status_written_at
from asyncjob.errors import ApiError, ForbiddenError, ObjectNotFoundError
from asyncjob.json_types import Json, JsonObject
from asyncjob.kube.informer import IncrementalEventHandler, WatchObserver, run_informer
from asyncjob.kube.session import KubeSession
from asyncjob.kube.watch import WatchEvent
from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES, collection_path

RECORDED: Final = (QUEUES, CRON_JOBS, ARRAYS, JOBS)
"""What is recorded; all but jobs as far as rules need them."""

IF_ALLOWED: Final = frozenset({ARRAYS})
"""What is left out where it may not be listed, or is not installed: jobs can be judged alone."""

MAX_WATCH_FAILURES: Final = 480
"""Watches in a row that may fail before a list is made in their place, which is a gap: the API
server may be away for an hour, in which it is tried every 7.5 s on average."""

FLUSH_SECONDS: Final = 1.0

Clock = Callable[[], datetime]


class HistoryRecorder:
    """Records what the scope says, until it is stopped."""

    def __init__(
        self,
        session: KubeSession,
        writer: HistoryWriter,
        scope: RecordingScope,
        now: Clock,
    ) -> None:
        self._session = session
        self._writer = writer
        self._scope = scope
        self._namespace = None if scope.namespace == "*" else scope.namespace
        self._now = now
        self._whole = scope.contents == WHOLE
        self._seen: dict[str, str] = {}
        self._away: set[str] = set()
        self._resources: tuple[str, ...] = RECORDED
        self.gaps = 0
        """Lists after the first of each resource, and watches that were cut at the end."""

    async def check_access(self) -> dict[str, ApiError]:
        """Return what is left out, and why.

        Raises what the API server answers to who may not list what has to be recorded.
        """
        left_out: dict[str, ApiError] = {}
        for resource in RECORDED:
            try:
                await self._session.get(collection_path(self._namespace, resource), {"limit": "1"})
            except (ForbiddenError, ObjectNotFoundError) as error:
                if resource not in IF_ALLOWED:
                    raise
                left_out[resource] = error
        self._resources = tuple(one for one in RECORDED if one not in left_out)
        return left_out

    async def run(self, stopped: asyncio.Event, version: str, on_ready: Callable[[], None]) -> None:
        """Record until stopped; `version` is this program's, for the file's first line.

        `on_ready` is called once every version from then on is recorded. Raises HistoryFileError.
        """
        self.write(
            HistoryLine.START,
            {
                "format": FORMAT,
                "version": version,
                "namespace": self._scope.namespace,
                "contents": self._scope.contents,
            },
        )
        watching = _Countdown(len(self._resources), on_ready)
        tasks = [
            *(asyncio.create_task(self._watch(resource, watching)) for resource in self._resources),
            asyncio.create_task(self._flush_regularly()),
            asyncio.create_task(stopped.wait()),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        behind: dict[str, Json] = {one: self._seen[one] for one in sorted(self._away)}
        self.gaps += len(behind)
        more: dict[str, Json] = {"behind": behind} if behind else {}
        self.write(HistoryLine.END, {"versions": self._writer.versions, "gaps": self.gaps, **more})
        self._writer.flush()

    def write(self, line: HistoryLine, fields: Mapping[str, Json]) -> None:
        """Add a line with the time; raises HistoryFileError."""
        self._writer.write(line, fields, self._time())

    def _time(self) -> str:
        return self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def note_health(self, resource: str, *, went_well: bool) -> None:
        """Remember until when versions were seen: at the end some may still have been to come."""
        if went_well:
            self._seen[resource] = self._time()
            self._away.discard(resource)
        elif resource in self._seen:
            self._away.add(resource)

    def write_version(self, resource: str, event: str, obj: JsonObject) -> None:
        """Add a version of an object."""
        written = status_written_at(obj)
        fields: dict[str, Json] = {"resource": resource, "event": event}
        if written:
            fields["written"] = written
        fields["object"] = recorded_object(obj, resource, whole=self._whole)
        self.write(HistoryLine.VERSION, fields)

    async def _watch(self, resource: str, watching: "_Countdown") -> None:
        await run_informer(
            self._session,
            collection_path(self._namespace, resource),
            _ResourceRecorder(self, resource),
            observer=_RecordedWatch(self, resource, watching),
            max_watch_failures=MAX_WATCH_FAILURES,
        )

    async def _flush_regularly(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(FLUSH_SECONDS)
                self._writer.flush()


class _ResourceRecorder(IncrementalEventHandler):
    """Writes the lists and changes of one resource."""

    def __init__(self, recorder: HistoryRecorder, resource: str) -> None:
        self._recorder = recorder
        self._resource = resource
        self._was_listed = False
        self._listing = False

    def list_begins(self) -> None:
        gap = self._was_listed
        self._recorder.gaps += gap and not self._listing  # what broke off is begun again
        self._listing = True
        self._recorder.note_health(self._resource, went_well=False)  # until it has ended
        self._recorder.write(HistoryLine.LIST, {"resource": self._resource, "gap": gap})

    def list_object(self, obj: JsonObject) -> None:
        self._recorder.write_version(self._resource, "LISTED", obj)

    def list_ends(self, version: str) -> None:
        self._was_listed, self._listing = True, False
        fields = {"resource": self._resource, "resourceVersion": version}
        self._recorder.write(HistoryLine.LIST_END, fields)

    def apply(self, event: WatchEvent) -> None:
        self._recorder.write_version(self._resource, event.type, event.object)


class _RecordedWatch(WatchObserver):
    """Keeps account of until when the versions of one resource were seen."""

    def __init__(self, recorder: HistoryRecorder, resource: str, watching: "_Countdown") -> None:
        self._recorder = recorder
        self._resource = resource
        self._watching = watching

    def watch_opened(self) -> None:
        self.progressed()
        self._watching.count(self._resource)

    def progressed(self) -> None:
        self._recorder.note_health(self._resource, went_well=True)

    def failed(self) -> None:
        self._recorder.note_health(self._resource, went_well=False)


class _Countdown:
    """Calls back once this many have been counted."""

    def __init__(self, wanted: int, on_all: Callable[[], None]) -> None:
        self._wanted = wanted
        self._on_all = on_all
        self._counted: set[str] = set()

    def count(self, name: str) -> None:
        """Count one; again is the same as once."""
        if name in self._counted:
            return
        self._counted.add(name)
        if len(self._counted) == self._wanted:
            self._on_all()
