"""Reconciles one AsyncArray: read it, decide again, carry out one effect after another.

Chunks are reserved in the status before they are created, and created only while it is certain that
no other operator creates them. What is counted has been read live.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import structlog

from asyncjob.deep_json import require_whole
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.arrays.chunk_jobs import chunk_body, is_chunk, read_outcome
from asyncjob.lifecycle.arrays.observed import GONE, ChunkJob, ChunkOutcome
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.arrays.skipped_items import count_skipped
from asyncjob.lifecycle.arrays.state import ArrayView, OpenChunkEntry, read_array
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import status_merge_patch
from asyncjob.names import (
    ARRAY_KIND,
    JOBS,
    array_path,
    array_status_path,
    collection_path,
    job_path,
)
from asyncjob.submission.arrays import oversize_message
from asyncjob_operator.cache.chunks import ArrayKey, array_key
from asyncjob_operator.controllers.array_evaluator import ArrayEvaluator
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.workqueue import MAX_REFUSED_BACKOFF, ItemBackoff
from asyncjob_operator.core.arrays.decide import decide_orphans
from asyncjob_operator.core.arrays.snapshot import (
    ArrayEffect,
    CancelArray,
    ControlChunks,
    CreateChunks,
    DeleteArray,
    DeleteChunks,
    ReadChunks,
    WriteArrayStatus,
)
from asyncjob_operator.core.events import EventReason, KubernetesEvent
from asyncjob_operator.core.schedules.reservation import REQUEST_TIMEOUT_SECONDS, may_create
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef

log = structlog.get_logger()

T = TypeVar("T")

METRIC_LABEL: Final = "array"
CONFLICT_BACKOFF_DIVISOR: Final = 10
"""Backoff after a conflict is this much shorter than after a failure."""

CONCURRENT_REQUESTS: Final = 10
"""Requests of one array at a time: twenty chunks a second are created and deleted well within it.
"""

MAX_EFFECTS: Final = 50
"""Effects in a row; an array that still has one then is left alone for a while."""

CANCEL_PAUSE: Final = 10.0
"""Seconds between two tries to cancel an array with its job."""

UNSEEN_PAUSE: Final = 5.0
"""Seconds between two reads of a chunk that bears no label any more."""

_REQUEST_PARAMS: Final = {"timeout": f"{REQUEST_TIMEOUT_SECONDS:.0f}s"}
"""Makes the API server itself give up a request whose client has stopped waiting."""


class ArrayReconciler:
    """Carries out what is due for an array.

    `leads` is asked again right before each write. `on_job` is called with each chunk that was
    created, changed or read, `on_job_gone` with the UID of each that is known to be gone.
    """

    def __init__(
        self,
        session: KubeSession,
        evaluator: ArrayEvaluator,
        *,
        backoff: ItemBackoff,
        events: EventRecorder,
        metrics: OperatorMetrics,
        leads: Callable[[], bool],
        on_job: Callable[[JsonObject], None],
        on_job_gone: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._evaluator = evaluator
        self._backoff = backoff
        self._refused_backoff = ItemBackoff(backoff.initial, MAX_REFUSED_BACKOFF)
        self._events = events
        self._metrics = metrics
        self._leads = leads
        self._on_job = on_job
        self._on_job_gone = on_job_gone
        self._clock = clock

    async def reconcile(self, key: ArrayKey) -> None:
        """Do what is due now for the array of this key, or for chunks that have none any more."""
        array = self._evaluator.locate(key)
        try:
            if array is None:
                await self._reconcile_orphans(key)
            else:
                await self._reconcile_object(await self._read(array))
            self._backoff.reset(key)
            self._refused_backoff.reset(key)
        except _GoneError:
            self._backoff.reset(key)
            if array is not None:
                self._evaluator.on_gone(array)
        except ConflictError:
            pause = self._backoff.record_failure(key) / CONFLICT_BACKOFF_DIVISOR
            self._evaluator.requeue_after(key, pause)
        except (InvalidError, ForbiddenError, TooLargeError) as error:
            self._on_refused(key, array, error)
        except ApiError as error:
            pause = self._backoff.record_failure(key)
            log.warning("array reconcile failed", array=key, error=str(error), retry_in=pause)
            self._evaluator.requeue_after(key, pause)

    def object_ref(self, key: ArrayKey) -> ObjectRef:
        """Return the array of this key, in the known version."""
        array = self._evaluator.locate(key)
        if array is None:
            return ObjectRef(ObjectKind.ARRAY, *key.split("/", 1))
        return ObjectRef(ObjectKind.ARRAY, array.namespace, array.name, array.resource_version)

    def requeue_after(self, key: ArrayKey, seconds: float) -> None:
        """Leave an array whose reconciliation raised alone for this many seconds."""
        self._evaluator.requeue_after(key, seconds)

    def _on_refused(self, key: ArrayKey, array: ArrayView | None, error: ApiError) -> None:
        """Retry later each time; a quota, unlike a rule, may permit the write at any moment."""
        self._metrics.writes.labels(METRIC_LABEL, "refused").inc()
        pause = self._refused_backoff.record_failure(key)
        if isinstance(error, ForbiddenError):
            pause = min(pause, self._backoff.cap)
        if self._refused_backoff.is_new_error(key, str(error)):
            log.warning("array write refused", array=key, error=str(error), retry_in=pause)
            if array is not None:
                message = f"tried again later, because it is refused now: {error}"
                self._events.record(_event(array, EventReason.WRITE_REFUSED, message))
        self._evaluator.requeue_after(key, pause)

    async def _read(self, array: ArrayView) -> JsonObject:
        try:
            obj = await self._session.get(array_path(array.namespace, array.name))
        except ObjectNotFoundError as error:
            raise _GoneError from error
        if text(child(obj, "metadata"), "uid") != array.uid:
            raise _GoneError
        return obj

    async def _reconcile_object(self, obj: JsonObject) -> None:
        """Carry out one effect after another; the answer to a write is a fresh read as well."""
        oversize = oversize_message(obj)
        outcomes: dict[str, ChunkOutcome | None] = {}
        for _ in range(MAX_EFFECTS):
            array = read_array(obj)
            self._evaluator.on_update(obj)
            if self._evaluator.locate(array_key(array.namespace, array.uid)) is None:
                return  # it is known to be deleted by now
            effect = self._evaluator.decide(array, outcomes, oversize).effect
            if effect is None or not self._leads():
                self._wait_for_unseen(array, outcomes)
                return
            if isinstance(effect, WriteArrayStatus):
                obj, outcomes = await self._write_status(effect, array), {}
            elif isinstance(effect, CancelArray):
                obj = await self._cancel(array, obj)
            elif isinstance(effect, ReadChunks):
                outcomes |= await self._read_chunks(effect, array)
            else:
                await self._apply(effect, array, obj)
        meta = child(obj, "metadata")
        key = array_key(text(meta, "namespace"), text(meta, "uid"))
        self._evaluator.requeue_after(key, self._backoff.record_failure(key))

    def _wait_for_unseen(
        self, array: ArrayView, outcomes: Mapping[str, ChunkOutcome | None]
    ) -> None:
        """Leave an array alone for a while if it has a chunk that only reads show.

        Somebody has taken its label away, so nothing tells when it ends, and it has to be read.
        """
        key = array_key(array.namespace, array.uid)
        known = self._evaluator.chunks_of(key)
        if any(found and name not in known for name, found in outcomes.items()):
            self._evaluator.requeue_after(key, UNSEEN_PAUSE)

    async def _apply(self, effect: ArrayEffect, array: ArrayView, obj: JsonObject) -> None:
        match effect:
            case CreateChunks(entries):
                await self._each(entries, lambda entry: self._create(entry, array, obj))
            case ControlChunks(chunks, fields):
                await self._each(chunks, partial(self._control, fields=fields))
            case DeleteChunks(chunks):
                await self._each(chunks, self._delete)
            case DeleteArray():
                await self._delete_array(array)
            case WriteArrayStatus() | ReadChunks() | CancelArray():
                raise AssertionError(effect)

    async def _reconcile_orphans(self, key: ArrayKey) -> None:
        """Cancel, then delete the chunks of an array that is gone, after making sure that it is.

        Its name is in their payloads alone, which somebody else may have written: a job only shows
        that the array it names is gone.
        """
        chunks = self._evaluator.chunks_of(key).values()
        names = {(chunk.namespace, chunk.array) for chunk in chunks if chunk.array}
        for namespace, name in sorted(names):
            try:
                obj = await self._session.get(array_path(namespace, name))
            except ObjectNotFoundError:
                obj = {}
            if array_key(namespace, text(child(obj, "metadata"), "uid")) == key:
                self._evaluator.on_update(obj)
                return
            await self._remove_orphans(key, name)

    async def _remove_orphans(self, key: ArrayKey, array: str) -> None:
        for _ in range(MAX_EFFECTS):
            chunks = self._evaluator.chunks_of(key)
            ours = {name: chunk for name, chunk in chunks.items() if chunk.array == array}
            effect = decide_orphans(ours)
            if effect is None or not self._leads():
                return
            if isinstance(effect, ControlChunks):
                await self._each(effect.chunks, partial(self._control, fields=effect.fields))
            else:
                await self._each(effect.chunks, self._delete)
        self._evaluator.requeue_after(key, self._backoff.record_failure(key))

    async def _write_status(self, effect: WriteArrayStatus, array: ArrayView) -> JsonObject:
        sent_at = self._clock()
        answer = await self._session.merge_patch(
            array_status_path(array.namespace, array.name),
            status_merge_patch(dict(effect.fields), array.resource_version),
        )
        memory = self._evaluator.memory_of(read_array(answer))
        memory.written_at = sent_at
        if effect.claims:
            memory.claimed_at = sent_at
        self._metrics.writes.labels(METRIC_LABEL, "ok").inc()
        self._count(array, effect)
        if effect.state.phase is ArrayPhase.FAILED and array.state.phase is not ArrayPhase.FAILED:
            self._events.record(_event(array, EventReason.ARRAY_FAILED, effect.state.message))
        return answer

    def _count(self, array: ArrayView, effect: WriteArrayStatus) -> None:
        skipped = count_skipped(array.skip, array.state.next, effect.state.next)
        succeeded = effect.state.succeeded - array.state.succeeded - skipped
        failed = max(effect.state.failed - array.state.failed, 0)
        self._metrics.arrays.record_counted(
            array.namespace, array.queue, succeeded=succeeded, failed=failed
        )

    async def _read_chunks(
        self, effect: ReadChunks, array: ArrayView
    ) -> dict[str, ChunkOutcome | None]:
        found: dict[str, ChunkOutcome | None] = {}

        async def read(entry: OpenChunkEntry) -> None:
            obj = await self._find(array, entry)
            found[entry.name] = read_outcome(obj, entry) if obj is not None else None

        await self._each(effect.entries, read)
        return found

    async def _find(self, array: ArrayView, entry: OpenChunkEntry) -> JsonObject | None:
        try:
            obj = await self._session.get(job_path(array.namespace, entry.name))
        except ObjectNotFoundError:
            if entry.uid:
                self._on_job_gone(entry.uid)
            return None
        self._on_job(obj)
        return obj

    async def _create(self, entry: OpenChunkEntry, array: ArrayView, obj: JsonObject) -> None:
        memory = self._evaluator.memory_of(array)
        if not self._leads() or not may_create(memory.claimed_at, self._clock()):
            return
        require_whole(obj)
        body = chunk_body(array, obj, entry)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                made = await self._session.create(
                    collection_path(array.namespace, JOBS), body, _REQUEST_PARAMS
                )
        except TimeoutError as error:
            raise UnknownOutcomeError("no answer to the creation of a chunk in time") from error
        except AlreadyExistsError:
            there = await self._find(array, entry)
            ours = there is not None and is_chunk(there, body)
            memory.created[entry.name] = _uid(there or {}) if ours else GONE
        except (ForbiddenError, InvalidError, TooLargeError):
            # Its items are for another chunk: one that waits for room keeps those that have ended
            # from being counted and deleted, which may be what takes up the room.
            memory.created[entry.name] = GONE
            raise
        else:
            self._on_job(made)
            memory.created[entry.name] = _uid(made)

    async def _control(self, chunk: ChunkJob, fields: Mapping[str, Json]) -> None:
        body: JsonObject = {"metadata": {"uid": chunk.uid}, "spec": dict(fields)}
        await self._change(chunk, body)

    async def _change(self, chunk: ChunkJob, body: JsonObject) -> None:
        if not self._leads():
            return
        try:
            answer = await self._session.merge_patch(job_path(chunk.namespace, chunk.name), body)
        except ObjectNotFoundError:
            self._on_job_gone(chunk.uid)
        except (ConflictError, InvalidError):
            # Another job has its name now, or it has just succeeded: a read shows what it is.
            with suppress(ObjectNotFoundError):
                self._on_job(await self._session.get(job_path(chunk.namespace, chunk.name)))
        else:
            self._on_job(answer)

    async def _delete(self, chunk: ChunkJob) -> None:
        if not self._leads():
            return
        body: JsonObject = {
            "preconditions": {"uid": chunk.uid},
            "propagationPolicy": "Background",
        }
        with suppress(ConflictError, ObjectNotFoundError):  # it is gone, or another has its name
            await self._session.delete(job_path(chunk.namespace, chunk.name), body)
        self._on_job_gone(chunk.uid)

    async def _cancel(self, array: ArrayView, obj: JsonObject) -> JsonObject:
        """Cancel an array with its parent; as it was if that has succeeded, by a read before."""
        memory, path = self._evaluator.memory_of(array), array_path(array.namespace, array.name)
        if not await self._is_parent_cancelled(array):
            memory.cancel_refused_until = self._clock() + CANCEL_PAUSE
            return obj
        if not self._leads():
            return obj
        body: JsonObject = {"metadata": {"uid": array.uid}, "spec": {"cancel": True}}
        try:
            return await self._session.merge_patch(path, body)
        except ForbiddenError as error:
            memory.cancel_refused_until = self._clock() + CANCEL_PAUSE
            log.warning("array not cancelled with its job", array=array.key, error=str(error))
            return obj

    async def _is_parent_cancelled(self, array: ArrayView) -> bool:
        parent = self._evaluator.parent_of(array)
        with suppress(ObjectNotFoundError, ValueError):  # or one that only a newer version reads
            if parent is not None:
                found = read_job(await self._session.get(job_path(parent.namespace, parent.name)))
                return found.uid == array.parent_uid and found.cascades_cancel
        return False

    async def _delete_array(self, array: ArrayView) -> None:
        preconditions = {"uid": array.uid, "resourceVersion": array.resource_version}
        body: JsonObject = {"preconditions": preconditions, "propagationPolicy": "Background"}
        await self._session.delete(array_path(array.namespace, array.name), body)
        raise _GoneError

    async def _each(self, things: Iterable[T], act: Callable[[T], Awaitable[None]]) -> None:
        """Do something for each, some at a time; raises the first error once all have ended."""
        places = asyncio.Semaphore(CONCURRENT_REQUESTS)

        async def one(thing: T) -> None:
            async with places:
                await act(thing)

        results = await asyncio.gather(*map(one, things), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result


class _GoneError(Exception):
    """The array itself is gone, or another has its name."""


def _uid(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "uid")


def _event(array: ArrayView, reason: EventReason, message: str) -> KubernetesEvent:
    return KubernetesEvent(array.namespace, array.name, array.uid, reason, message, kind=ARRAY_KIND)
