"""Arrays as REST, the clients and the command line show them, and what one is submitted with.

Models, and the functions that build them from the API server's objects. Pure.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from pydantic import Field

from asyncjob.json_types import JsonObject, as_object, child, flag, integer, items, text
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.item_results import results_folder
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase
from asyncjob.lifecycle.arrays.skipped_items import count_skipped
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.models.array import (
    ArrayItemType,
    ArrayOptions,
    AsyncArraySpec,
    AsyncArrayStatus,
    ItemFailure,
)
from asyncjob.models.base import ObjectName, QueueName
from asyncjob.names import DEFAULT_QUEUE
from asyncjob.rest.base import RequestModel, ResponseModel
from asyncjob.rest.submission import LabelValue


class ArraySubmission(ArrayOptions, RequestModel):
    """An array to be created: what `spec` takes at creation, and a name and labels."""

    name: ObjectName | None = None
    """The array's name. Default: a UUID."""

    labels: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels of the array, for label selectors."""


class SubmittedArray(ResponseModel):
    """Result of a submission."""

    name: str
    """The array's name."""

    created: bool
    """True if this submission created the array, false if it existed already."""

    phase: str
    """The current phase of the array."""


class ArrayInfo(ResponseModel):
    """An array."""

    name: str
    """Its name."""

    namespace: str
    """Its namespace."""

    uid: str
    """UID of the object."""

    type: str
    """Type of its item handler."""

    queue: str
    """Queue in which its chunks wait."""

    phase: ArrayPhase
    """Pending, Running, Succeeded, Failed or Cancelled."""

    reason: str | None = None
    """Why it is in this phase."""

    message: str | None = None
    """Explanation of the reason."""

    total: int
    """Number of items."""

    succeeded: int = 0
    """Number of items that are done."""

    failed: int = 0
    """Number of items that have failed."""

    skipped: int = 0
    """Number of succeeded items that were not run: those of items.skip."""

    percent: int = 0
    """Share of the items that are done or have failed, in percent."""

    open_chunks: int = 0
    """Number of chunks under way."""

    items_per_minute: int | None = None
    """Number of items run in a minute, over the last minute; only while the array goes on."""

    results: str | None = None
    """Folder that its results are in, if it keeps any."""

    suspended: bool = False
    """While true, no chunk is created or claimed."""

    cancelling: bool = False
    """True if a cancel was requested and the array has not ended yet."""

    redriving: bool = False
    """True if a redrive was requested and has not been acted on yet."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Its labels."""

    created_at: str
    """When it was created."""

    started_at: str | None = None
    """When its first chunk was created."""

    completed_at: str | None = None
    """When it ended."""

    expected_end_at: str | None = None
    """When it ends if it goes on at this rate."""

    spec: AsyncArraySpec | None = None
    """The whole spec, when a single array is requested."""

    status: AsyncArrayStatus | None = None
    """The status, when a single array is requested."""

    @property
    def finished(self) -> bool:
        """Return whether nothing happens to it without a person."""
        return self.phase in ENDED_ARRAY_PHASES and not self.redriving

    @property
    def done(self) -> int:
        """Return how many items are done or have failed."""
        return self.succeeded + self.failed

    def without_payload(self) -> "ArrayInfo":
        """Return the same without payload and items, for who may not read payloads."""
        if self.spec is None:
            return self
        hidden = self.spec.items.model_copy(update={"inline": None})
        spec = self.spec.model_copy(update={"payload": None, "items": hidden})
        return self.model_copy(update={"spec": spec})


class ArrayPage(ResponseModel):
    """Part of a list, newest first."""

    items: list[ArrayInfo]
    """The arrays."""

    next: str | None = None
    """Pass it as the cursor of the next page; null on the last one."""

    total: int | None = None
    """Number of all that match, on the first page."""


class FailedItems(ResponseModel):
    """Which items of an array have failed, and why the last ones did."""

    failed: int
    """Number of failed items."""

    items: str
    """Their numbers in interval notation: `17,400-402`."""

    unlisted: int = 0
    """Number of failed items that are not among them, because there is no room."""

    errors: list[ItemFailure] = Field(default_factory=list)
    """The newest errors, at most 20."""

    @property
    def numbers(self) -> Iterator[int]:
        """Return the numbers, one by one."""
        return iter(ItemRanges.parse(self.items))


class ArraySelection(RequestModel):
    """Filters; an array has to match all that are set."""

    phase: Annotated[list[ArrayPhase], Field(max_length=5)] | None = None
    """Phases, any of them."""

    type: ArrayItemType | None = None
    """Type of the item handler."""

    queue: QueueName | None = None
    """Its queue."""

    label: Annotated[str, Field(max_length=512)] | None = None
    """A label selector as kubectl takes it: `team=mail,tier!=free`, `team in (a,b)`, `team`."""


def array_of(array: JsonObject, *, detailed: bool = False) -> ArrayInfo:
    """Return an AsyncArray as REST shows it; `detailed` with spec and status.

    Raises ValueError for one that was written past a schema that this version knows.
    """
    meta, spec, status = child(array, "metadata"), child(array, "spec"), child(array, "status")
    phase = ArrayPhase(text(status, "phase", ArrayPhase.PENDING))
    skip = ItemRanges.parse(text(child(spec, "items"), "skip"))
    return ArrayInfo.model_validate(
        {
            "name": meta.get("name"),
            "namespace": meta.get("namespace"),
            "uid": text(meta, "uid"),
            "type": spec.get("type"),
            "queue": text(spec, "queue", DEFAULT_QUEUE),
            "phase": phase,
            "reason": status.get("reason"),
            "message": status.get("message"),
            "total": integer(status, "total") or _total_of(spec),
            "succeeded": integer(status, "succeeded"),
            "failed": integer(status, "failed"),
            "skipped": count_skipped(skip, 0, integer(status, "next")),
            "percent": integer(status, "percent"),
            "openChunks": integer(status, "openCount"),
            "itemsPerMinute": status.get("itemsPerMinute"),
            "expectedEndAt": status.get("expectedEndTime"),
            "results": results_folder(spec, text(meta, "uid")) or None,
            "suspended": flag(spec, "suspend"),
            "cancelling": flag(spec, "cancel") and phase not in ENDED_ARRAY_PHASES,
            "redriving": phase is ArrayPhase.FAILED
            and integer(spec, "redrive") > integer(status, "redrives"),
            "labels": child(meta, "labels"),
            "createdAt": text(meta, "creationTimestamp"),
            "startedAt": status.get("startTime"),
            "completedAt": status.get("completionTime"),
            "spec": AsyncArraySpec.model_validate(spec) if detailed else None,
            "status": AsyncArrayStatus.model_validate(status) if detailed else None,
        }
    )


def failed_items_of(array: JsonObject) -> FailedItems:
    """Return the failed items of an AsyncArray."""
    status = child(array, "status")
    return FailedItems(
        failed=integer(status, "failed"),
        items=text(status, "failedItems"),
        unlisted=integer(status, "failedUnlisted"),
        errors=[ItemFailure.model_validate(as_object(one)) for one in items(status, "errors")],
    )


def array_position(array: ArrayInfo) -> tuple[str, str]:
    """Return where an array stands in a list; the greatest comes first."""
    return array.created_at, array.uid


def matches_array(array: ArrayInfo, selection: ArraySelection) -> bool:
    """Return whether the array matches, its labels apart."""
    return (
        (selection.phase is None or array.phase in selection.phase)
        and selection.type in {None, array.type}
        and selection.queue in {None, array.queue}
    )


def items_per_second(array: ArrayInfo, now: datetime) -> float | None:
    """Return how many items a second are run; None before the first.

    While the array goes on it is what the operator has measured over the last minute. Else, and
    where an older operator runs, it is the average since the first chunk.
    """
    if array.items_per_minute is not None:
        return array.items_per_minute / 60
    started = try_parse_timestamp(array.started_at or "")
    ended = try_parse_timestamp(array.completed_at or "") or now
    run = array.done - array.skipped
    if started is None or run <= 0:
        return None
    return run / max((ended - started).total_seconds(), 1.0)


def seconds_left(array: ArrayInfo, now: datetime) -> float | None:
    """Return how long the rest takes if it goes on so; None where that cannot be told.

    As the operator expects it, if it does; else by the average. Items that are skipped take no
    time; where the spec is not read they count as others do until the array comes to them.
    """
    if end := try_parse_timestamp(array.expected_end_at or ""):
        left = (end - now).total_seconds()
        return left if left >= 0 else None  # it goes slower than it did: nobody knows how much
    rate = items_per_second(array, now)
    if not rate or array.finished or array.suspended or array.cancelling:
        return None
    skip = array.spec.items.skip if array.spec else None
    ahead = len(ItemRanges.parse(skip)) - array.skipped if skip else 0
    return max(array.total - array.done - ahead, 0) / rate


def _total_of(spec: JsonObject) -> int:
    source = child(spec, "items")
    return integer(source, "count") or len(items(source, "inline"))
