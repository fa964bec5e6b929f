"""What decisions need to know of an AsyncArray, read from the API server's object.

Payload and items stay in the object: they may take hundreds of kilobytes, and only the creation of
a chunk needs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob.json_text import dumps
from asyncjob.json_types import (
    Json,
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    items,
    opt_integer,
    opt_text,
    text,
    texts,
)
from asyncjob.lifecycle.arrays.chunks import (
    DEFAULT_PARALLELISM,
    INDEX_TYPE_SUFFIX,
    ItemError,
    chunk_type,
    read_item_error,
)
from asyncjob.lifecycle.arrays.item_index import (
    ItemIndex,
    ItemsFile,
    read_index,
    read_items_file,
)
from asyncjob.lifecycle.arrays.item_ranges import NO_ITEMS, ItemRanges
from asyncjob.lifecycle.arrays.item_results import results_folder
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase, ArrayReason
from asyncjob.lifecycle.job_view import DependencyView, read_dependencies
from asyncjob.names import PARENT_LABEL

MAX_MESSAGE_LENGTH: Final = 1024

LARGE_BYTES: Final = 32 * 1024
"""Of payload and items: an array with more is written less often, as each write stores them again.
"""


@dataclass(frozen=True, slots=True)
class OpenChunkEntry:
    """A chunk under way; without a UID it is reserved and may not exist yet.

    One without items is the job that finds the records of the array's file.
    """

    name: str
    items: ItemRanges
    generation: int
    uid: str = ""
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class ArrayState:
    """What the status keeps. `requeued` and `suspects` are items below `next` in no chunk."""

    phase: ArrayPhase = ArrayPhase.PENDING
    reason: ArrayReason | None = None
    message: str = ""
    total: int = 0
    next: int = 0
    succeeded: int = 0
    open: tuple[OpenChunkEntry, ...] = ()
    requeued: ItemRanges = NO_ITEMS
    suspects: tuple[ItemRanges, ...] = ()
    failed_items: ItemRanges = NO_ITEMS
    failed_unlisted: int = 0
    errors: tuple[ItemError, ...] = ()
    generation: int = 0
    writer: str = ""
    claims: int = 0
    redrives: int = 0
    admitted: bool = False
    """Whether an array that was to wait has begun to cut chunks."""

    start_time: str | None = None
    completion_time: str | None = None
    index: ItemIndex | None = None
    """What the index job has found in the file of the items."""

    chunk_size: int | None = None
    """How many items the next chunks get, where the spec does not say."""

    items_per_minute: int | None = None
    expected_end_time: str | None = None

    @property
    def failed(self) -> int:
        """Return how many items have failed."""
        return len(self.failed_items) + self.failed_unlisted

    @property
    def all_cut(self) -> bool:
        """Return whether every item is in a chunk or counted."""
        return self.next == self.total and not self.requeued and not self.suspects

    @property
    def has_started(self) -> bool:
        """Return whether a chunk has been cut, and nothing keeps it from starting any more."""
        return self.generation > 0


@dataclass(frozen=True, slots=True)
class ArrayView:
    """An array as decisions see it; `status` is the stored status."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    deleting: bool
    type: str
    queue: str
    items_file: ItemsFile | None
    """The file whose records the items are."""

    count: int
    """Number of items that the spec names; 0 while they are in a file."""

    skip: ItemRanges
    """Items that are not run, because they are done."""

    file_version: str
    """What version of the file `skip` is about; empty: of whichever it has."""

    inline_bytes: int
    """Bytes of the items that stand in the array, as JSON."""

    large: bool
    chunk_size: int | None
    """None: as `state.chunk_size` says, which adapts."""

    parallelism: int
    max_failed: int | None
    max_failed_percent: int | None
    suspend: bool
    cancel: bool
    redrive: int
    ttl_seconds_after_finished: int | None
    parent_uid: str
    """UID of the job that has submitted it; empty if none has."""

    results_folder: str
    """Where its results go; empty if they are not kept."""

    state: ArrayState
    status: JsonObject
    not_before: str | None = None
    depends_on: tuple[DependencyView, ...] = ()

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def total(self) -> int:
        """Return the number of items; 0 until the index job has found those of a file."""
        return self.state.index.records if self.state.index else self.count

    @property
    def chunk_type(self) -> str:
        """Return the type of its chunks."""
        return chunk_type(self.type, has_results=bool(self.results_folder))

    @property
    def index_type(self) -> str:
        """Return the type of the job that finds the records of its file."""
        return self.type + INDEX_TYPE_SUFFIX

    @property
    def next_type(self) -> str:
        """Return which of the two is next, or under way."""
        counts = self.items_file is not None and self.state.index is None
        return self.index_type if counts else self.chunk_type

    @property
    def gated(self) -> bool:
        """Return whether something may keep it from starting, but for `suspend`."""
        return bool(self.not_before or self.depends_on)

    @property
    def pending_dependencies(self) -> tuple[DependencyView, ...]:
        """Return what it still depends on: nothing once it has started or has ended."""
        over = self.state.has_started or self.state.phase in ENDED_ARRAY_PHASES
        return () if over else self.depends_on

    @property
    def failure_limit(self) -> int | None:
        """Return with how many failed items the array still succeeds, None if none is set."""
        if self.max_failed is not None:
            return self.max_failed
        if self.max_failed_percent is not None:
            return self.total * self.max_failed_percent // 100
        return None


def read_array(obj: JsonObject) -> ArrayView:
    """Read an AsyncArray. Raises ValueError on a value that this version does not know."""
    meta, spec, status = child(obj, "metadata"), child(obj, "spec"), child(obj, "status")
    source = child(spec, "items")
    count = integer(source, "count") or len(items(source, "inline"))
    return ArrayView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        resource_version=text(meta, "resourceVersion"),
        deleting="deletionTimestamp" in meta,
        type=text(spec, "type"),
        queue=text(spec, "queue", "default"),
        items_file=read_items_file(child(source, "from")) if "from" in source else None,
        count=count,
        skip=ItemRanges.parse(text(source, "skip")),
        file_version=text(child(source, "from"), "version"),
        inline_bytes=(inline_bytes := _size(source.get("inline"))),
        large=inline_bytes + _size(spec.get("payload")) > LARGE_BYTES,
        chunk_size=opt_integer(spec, "chunkSize"),
        parallelism=integer(spec, "parallelism", DEFAULT_PARALLELISM),
        max_failed=opt_integer(spec, "maxFailed"),
        max_failed_percent=opt_integer(spec, "maxFailedPercent"),
        suspend=flag(spec, "suspend"),
        cancel=flag(spec, "cancel"),
        redrive=integer(spec, "redrive"),
        ttl_seconds_after_finished=opt_integer(spec, "ttlSecondsAfterFinished"),
        parent_uid=text(child(meta, "labels"), PARENT_LABEL),
        results_folder=results_folder(spec, text(meta, "uid")),
        state=_read_state(status, count),
        status=status,
        not_before=opt_text(spec, "notBefore"),
        depends_on=read_dependencies(spec),
    )


def _size(value: Json) -> int:
    return 0 if value is None else len(dumps(value))


def _read_state(status: JsonObject, total: int) -> ArrayState:
    reason = opt_text(status, "reason")
    return ArrayState(
        phase=ArrayPhase(text(status, "phase", ArrayPhase.PENDING)),
        reason=ArrayReason(reason) if reason else None,
        message=text(status, "message"),
        total=integer(status, "total", total),
        next=integer(status, "next"),
        succeeded=integer(status, "succeeded"),
        open=tuple(_read_entry(as_object(one)) for one in items(status, "open")),
        requeued=ItemRanges.parse(text(status, "requeued")),
        suspects=tuple(ItemRanges.parse(one) for one in texts(status, "suspects")),
        failed_items=ItemRanges.parse(text(status, "failedItems")),
        failed_unlisted=integer(status, "failedUnlisted"),
        errors=tuple(
            read_item_error(one) for one in items(status, "errors") if isinstance(one, Mapping)
        ),
        generation=integer(status, "generation"),
        writer=text(status, "writer"),
        claims=integer(status, "claims"),
        redrives=integer(status, "redrives"),
        admitted=flag(status, "admitted"),
        start_time=opt_text(status, "startTime"),
        completion_time=opt_text(status, "completionTime"),
        index=read_index(status["index"]) if "index" in status else None,
        chunk_size=opt_integer(status, "chunkSize"),
        items_per_minute=opt_integer(status, "itemsPerMinute"),
        expected_end_time=opt_text(status, "expectedEndTime"),
    )


def _read_entry(entry: JsonObject) -> OpenChunkEntry:
    return OpenChunkEntry(
        text(entry, "name"),
        ItemRanges.parse(text(entry, "items")),
        integer(entry, "generation"),
        text(entry, "uid"),
        flag(entry, "suspect"),
    )


_CONDITIONS: Final = {
    ArrayPhase.SUCCEEDED: "Complete",
    ArrayPhase.FAILED: "Failed",
    ArrayPhase.CANCELLED: "Cancelled",
}


def state_to_json(state: ArrayState) -> dict[str, Json]:
    """Return every field of the status as it is stored; None removes a field."""
    counted = state.succeeded + state.failed
    return {
        "phase": state.phase.value,
        "reason": state.reason.value if state.reason else None,
        "message": state.message[:MAX_MESSAGE_LENGTH] or None,
        "total": state.total,
        "next": state.next,
        "succeeded": state.succeeded,
        "failed": state.failed,
        "percent": counted * 100 // state.total if state.total else 0,
        "index": state.index.to_json() if state.index else None,
        "open": [_entry_to_json(entry) for entry in state.open] or None,
        "openCount": len(state.open),
        "requeued": str(state.requeued) or None,
        "suspects": [str(one) for one in state.suspects] or None,
        "failedItems": str(state.failed_items) or None,
        "failedUnlisted": state.failed_unlisted or None,
        "errors": [error.to_json() for error in state.errors] or None,
        "generation": state.generation,
        "chunkSize": state.chunk_size,
        "itemsPerMinute": state.items_per_minute,
        "expectedEndTime": state.expected_end_time,
        "writer": state.writer or None,
        "claims": state.claims or None,
        "redrives": state.redrives or None,
        "admitted": state.admitted or None,
        "startTime": state.start_time,
        "completionTime": state.completion_time,
        "conditions": _conditions(state),
    }


def _entry_to_json(entry: OpenChunkEntry) -> dict[str, Json]:
    return {
        "name": entry.name,
        "items": str(entry.items),
        "generation": entry.generation,
        **({"uid": entry.uid} if entry.uid else {}),
        **({"suspect": True} if entry.suspect else {}),
    }


def _conditions(state: ArrayState) -> list[Json] | None:
    if state.phase not in _CONDITIONS or state.completion_time is None:
        return None
    condition: dict[str, Json] = {
        "type": _CONDITIONS[state.phase],
        "status": "True",
        **({"reason": state.reason.value} if state.reason else {}),
        "lastTransitionTime": state.completion_time,
    }
    return [condition]
