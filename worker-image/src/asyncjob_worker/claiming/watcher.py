"""Keeps the backlog in step with the API server: a watch of the queue's queued jobs, or of a part.

It is requested as a Table, because the printer columns are all that choosing a job needs.
"""

import asyncio
from collections.abc import Callable, Container, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Any, Final

import orjson
import structlog

from asyncjob import columns
from asyncjob.errors import ApiError, ExpiredError, ObjectNotFoundError
from asyncjob.json_types import Json, JsonObject, as_object, items, text
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.kube.pacing import event_loop_pacer
from asyncjob.kube.watch import open_watch, read_events
from asyncjob.lifecycle.claim import EMPTY_POLICY_LAYER, Candidate
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer
from asyncjob.names import JOBS, collection_path
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.selection import JobSelection
from asyncjob_worker.metrics import JobWatchObserver

log = structlog.get_logger()

_NO_GATE = ("", "[]")

_COLUMNS: Final = (
    columns.NAME,
    columns.TYPE,
    columns.PRIORITY,
    columns.ATTEMPT,
    columns.CRASHES,
    columns.ADMITTED,
    columns.SUSPEND,
    columns.CANCEL,
    columns.GATE,
    columns.TIMEOUT,
    columns.LEASE,
    columns.RETRY_POLICY,
)


class QueuedJobWatcher:
    """Adds the claimable jobs of known types in one selection to a backlog.

    `on_candidate` is called after each. Not `run_informer`: that hands on whole objects, and
    this needs columns of a Table, of a backlog that may be longer than what the worker keeps.
    """

    def __init__(
        self,
        session: KubeSession,
        backlog: Backlog,
        *,
        selection: JobSelection,
        types: Container[str],
        clock: Callable[[], float],
        on_candidate: Callable[[], None],
        observer: JobWatchObserver,
    ) -> None:
        self._session = session
        self._backlog = backlog
        self.selection = selection
        self._told_as = None if selection.source is None else selection
        self._types = types
        self._clock = clock
        self._on_candidate = on_candidate
        self._observer = observer
        self._resource_version = ""
        self._watch_task: asyncio.Task[ApiError | None] | None = None
        self.is_watching = False
        self.error: ApiError | None = None
        """What the last watch has failed with; None if it has not."""

        self.synced = asyncio.Event()
        """Set once all jobs that there are have been told."""

        self.passed_over = 0
        """How many events were about jobs of other types."""

        self.has_told = False
        """Whether there was a job of a known type."""

        self._resumed = asyncio.Event()
        self._resumed.set()

    def relist(self) -> None:
        """Start again with all jobs that are queued now.

        Some were left out of a full backlog, or passed over while the queue had limits.
        """
        self._resource_version = ""
        self._backlog.clear()
        if self._watch_task:
            self._watch_task.cancel()

    def suspend(self) -> None:
        """Watch nothing until resumed; the jobs that are known stay."""
        self._resumed.clear()
        self.synced.clear()
        self._resource_version = ""
        self.is_watching = False
        if self._watch_task:
            self._watch_task.cancel()

    def resume(self) -> None:
        """Watch again, from all jobs that are queued then."""
        self._resumed.set()

    async def run(self) -> None:
        """Watch until cancelled; after errors retry with a backoff of 1 to 10 s."""
        pacer = event_loop_pacer()
        while True:
            await self._resumed.wait()
            pacer.start_round()
            self._watch_task = asyncio.create_task(self._watch())
            try:
                await asyncio.wait({self._watch_task})
            finally:
                self._watch_task.cancel()
            if self._watch_task.cancelled():
                continue
            self.error = error = self._watch_task.result()
            pause = pacer.next_delay(error)
            if error is not None:
                self.is_watching = False
                wait = round(pause, 1)
                log.warning("watch of jobs interrupted", error=_explain(error), retry_in=wait)
            await asyncio.sleep(pause)

    async def _watch(self) -> ApiError | None:
        """Watch until the server ends it; return the error if it has failed."""
        try:
            await self._consume_events()
        except ExpiredError:
            self._resource_version = ""
        except ApiError as error:
            return error
        return None

    async def _consume_events(self) -> None:
        """Consume events, from the initial ones or from where the last watch has got to.

        The initial events come in no order of resource versions; only a bookmark says that they are
        complete. A watch that breaks off before it starts again from the beginning, or the jobs not
        received yet would be missed.
        """
        if not self._resource_version:
            self._forget_jobs()
        reader = RowReader()
        params = {**self.selection.params(), "resourceVersion": self._resource_version}
        path = collection_path(self._session.access.namespace, JOBS)
        response = await open_watch(self._session, path, params, table=True)
        self.is_watching = True
        self._observer.watch_opened()
        async with aclosing(read_events(response)) as events:
            async for event in events:
                if event.type == "BOOKMARK" or self._resource_version:
                    self._resource_version = event.resource_version
                # Bookmarks are read too: if one comes first, it alone has the column definitions.
                candidate = reader.read(event.object, event.resource_version)
                if event.type == "BOOKMARK":
                    self.synced.set()
                else:
                    self._observer.job_event()
                    self._update_backlog(event, candidate)

    def _forget_jobs(self) -> None:
        if self._backlog.is_shared_out:
            self._backlog.drop_selection(self._told_as)
        else:
            self._backlog.clear()

    def _update_backlog(self, event: WatchEvent, candidate: Candidate | None) -> None:
        if candidate is None or candidate.type not in self._types:
            self.passed_over += 1
            return
        self.has_told = True
        gone = event.type == "DELETED" or (candidate.gated and not candidate.admitted)
        if self._backlog.is_shared_out and self._is_known_newer(candidate, gone=gone):
            if gone:
                self._backlog.drop_from(self._told_as, candidate.name)
        elif gone:
            self._backlog.drop(candidate.name)
        else:
            self._backlog.put(candidate, self._clock(), self._told_as)
            self._on_candidate()

    def _is_known_newer(self, candidate: Candidate, *, gone: bool) -> bool:
        """Return whether another watch has told of a later state of the job.

        A job whose label or priority changes leaves one watch and comes into another by the same
        write, in either order.
        """
        known = self._backlog.version_of(candidate.name)
        if known is None:
            return False
        here, there = _order(candidate.resource_version), _order(known)
        return here <= there if gone else here < there


def _order(version: str) -> tuple[int, str]:
    """Return what versions, which are decimal numbers, are ordered by."""
    return len(version), version


def _explain(error: Exception) -> str:
    if isinstance(error, ObjectNotFoundError):
        return "the API server does not know AsyncJobs: apply the CRDs (kubectl apply -f crds/)"
    return str(error)


CellSelector = Callable[[Sequence[Json]], Sequence[Any]]
"""Returns the cells of `_COLUMNS` from the cells of a row."""


@dataclass(slots=True)
class RowReader:
    """Reads rows by the column definitions, which only the first table of a watch has."""

    _select: CellSelector | None = None

    def read(self, table: JsonObject, resource_version: str) -> Candidate | None:
        """Return the candidate of a one-row table; None for a table without a row.

        A job of a newer API may have values that are not known here. It is left to workers that
        know them: the watch goes on for the others.
        """
        definitions = items(table, "columnDefinitions")
        if definitions:
            self._select = _cell_selector(
                [text(as_object(definition), "name") for definition in definitions]
            )
        rows = items(table, "rows")
        if not rows or not self._select:
            return None
        cells = self._select(items(as_object(rows[0]), "cells"))
        try:
            return _candidate(cells, resource_version)
        except ValueError as error:
            log.warning("a job cannot be read and is passed over", job=cells[0], error=str(error))
            return None


def _cell_selector(names: Sequence[str]) -> CellSelector:
    """Return the selector for rows with these columns; cells that are missing are None.

    Columns may be missing in an older CRD.
    """
    positions, width = {name: position for position, name in enumerate(names)}, len(names)
    select = itemgetter(*(positions.get(name, width) for name in _COLUMNS))
    blanks = (None,) * (width + 1)
    return lambda cells: select((*cells[:width], *blanks))


def _candidate(cells: Sequence[Any], resource_version: str) -> Candidate:
    name, type_, priority, attempt, crashes, admitted, suspend, cancel, gate, *policy = cells
    return Candidate(
        name=str(name),
        resource_version=resource_version,
        # Interned: a long backlog mostly has jobs of a few types.
        type=intern(str(type_)),
        priority=_integer(priority) or 0,
        attempt=_integer(attempt) or 0,
        crashes=_integer(crashes) or 0,
        admitted=admitted is True,
        gated=suspend is True or cancel is True or str(gate or "") not in _NO_GATE,
        policy=_policy(*policy),
    )


def _policy(timeout: Json, lease: Json, retry: Json) -> PolicyLayer:
    if timeout is None and lease is None and not retry:
        return EMPTY_POLICY_LAYER
    return _cached_layer(_integer(timeout), _integer(lease), str(retry or ""))


@lru_cache(maxsize=256)
def _cached_layer(timeout: int | None, lease: int | None, retry: str) -> PolicyLayer:
    """Return the policy of a job's columns; one object for all jobs with the same values."""
    source: dict[str, Json] = {"executionTimeoutSeconds": timeout, "leaseDurationSeconds": lease}
    if retry:
        source["retryPolicy"] = as_object(orjson.loads(retry))
    return read_policy_layer(source)


def _integer(value: Json) -> int | None:
    return value if isinstance(value, int) else None
