"""The contract between the operator, which cuts chunks, and the worker, which runs them.

A chunk is an ordinary job. Its payload says which items to run and how; its checkpoint, and in the
end its result, say which of them are done and which have failed. The operator counts by these, so a
chunk that ends halfway counts for exactly what it has reported.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from asyncjob.json_types import (
    Json,
    JsonObject,
    as_object,
    child,
    integer,
    items,
    opt_integer,
    text,
)
from asyncjob.lifecycle.arrays.item_index import ChunkFile, read_chunk_file
from asyncjob.lifecycle.arrays.item_ranges import NO_ITEMS, ItemRanges
from asyncjob.lifecycle.arrays.item_results import ResultTarget, read_result_target
from asyncjob.lifecycle.policy import Category

CHUNK_TYPE_SUFFIX: Final = "/items"
"""A chunk's type is the array's with this behind it: only item handlers announce such a type."""

INDEX_TYPE_SUFFIX: Final = "/index"
"""The same for the job that finds the records of a file of items; item handlers announce it too."""

STORE_TYPE_SUFFIX: Final = "/store"
"""The same for a chunk whose results are stored. A worker of before there were results has no
handler of such a type, so it does not run the items without storing what they return."""

ARRAY_TYPE_SUFFIXES: Final = (CHUNK_TYPE_SUFFIX, INDEX_TYPE_SUFFIX, STORE_TYPE_SUFFIX)

ITEMS_UNREADABLE: Final = frozenset({"ItemsUnreadable", "StoreUnavailableError"})
"""Types of errors with which a chunk or an index job ends that cannot read its file: no item is to
blame, and no other chunk would fare better."""

RESULTS_NOT_STORED: Final = frozenset({"ResultsNotStored", "ResultsRefused"})
"""Types of errors with which a chunk ends whose store does not take the results. Again no item is
to blame: those whose results are not stored are run again."""

MAX_CHUNK_SHARE: Final = 0.75
"""Share of a worker's slots that chunks of arrays take at most: single jobs find one free, however
many items there are."""

DEFAULT_PARALLELISM: Final = 20
DEFAULT_ITEM_RETRIES: Final = 3

ERRORS_KEPT: Final = 20
"""Errors of items that a chunk reports and an array shows, the newest."""

ERROR_MESSAGE_LENGTH: Final = 512

_DIGEST_LENGTH: Final = 10
_NAME_LENGTH: Final = 52
"""Of the array's name; with digest and number a chunk's name stays a valid label value."""


def chunk_name(array: str, uid: str, first: int, generation: int) -> str:
    """Return the name of a chunk, which no other chunk of any array of any time has.

    A name alone would come again with an array that was deleted and created again; so a digest of
    UID, first item and generation is part of it.
    """
    digest = sha256(f"{uid}/{first}/{generation}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{array[:_NAME_LENGTH].rstrip('-.')}-{digest}"


def array_of_chunk(name: str) -> str:
    """Return what the names of an array's chunks begin with, by the name of one of them.

    The same for arrays whose names have the same first 52 characters.
    """
    return name.rpartition("-")[0]


def is_chunk_type(type_: str) -> bool:
    """Return whether jobs of a type are chunks of arrays, or find the records of their files."""
    return type_.endswith(ARRAY_TYPE_SUFFIXES)


def chunk_type(type_: str, *, has_results: bool) -> str:
    """Return the type of the chunks of an array, by whether it keeps results."""
    return type_ + (STORE_TYPE_SUFFIX if has_results else CHUNK_TYPE_SUFFIX)


def chunk_slots(slots: int) -> int:
    """Return how many of a worker's slots chunks take at most; the only one may be theirs."""
    return max(1, int(slots * MAX_CHUNK_SHARE))


@dataclass(frozen=True, slots=True)
class ItemError:
    """Why an item has failed."""

    item: int
    type: str
    category: str
    message: str

    def to_json(self) -> dict[str, Json]:
        """Return it as it is stored."""
        return {
            "item": self.item,
            "type": self.type[:256],
            "category": self.category[:64],
            "message": self.message[:ERROR_MESSAGE_LENGTH],
        }


def read_item_error(stored: JsonObject) -> ItemError:
    """Read one error; without a category, which no status may have, it is an internal one."""
    return ItemError(
        integer(stored, "item"),
        text(stored, "type"),
        text(stored, "category") or Category.INTERNAL.value,
        text(stored, "message"),
    )


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """What a chunk's payload says: the items to run, and what they share."""

    array: str
    array_uid: str
    items: ItemRanges
    payload: Json = None
    inline: tuple[Json, ...] | None = None
    """The value of each item, in their order; None: an item is its number, or in a file."""

    item_retries: int = DEFAULT_ITEM_RETRIES
    item_timeout_seconds: int | None = None
    retry: JsonObject = field(default_factory=dict)
    """The array's `retryPolicy`: the delays between the tries of an item, and what is retried."""

    file: ChunkFile | None = None
    """The file whose records the items are."""

    results: ResultTarget | None = None
    """Where results go; None: they are dropped."""

    def to_json(self) -> dict[str, Json]:
        """Return the payload."""
        return {
            "array": {"name": self.array, "uid": self.array_uid},
            "items": str(self.items),
            "payload": self.payload,
            **({"values": list(self.inline)} if self.inline is not None else {}),
            "itemRetries": self.item_retries,
            **(
                {"itemTimeoutSeconds": self.item_timeout_seconds}
                if self.item_timeout_seconds is not None
                else {}
            ),
            **({"retryPolicy": self.retry} if self.retry else {}),
            **({"file": self.file.to_json()} if self.file is not None else {}),
            **({"results": self.results.to_json()} if self.results is not None else {}),
        }


def read_chunk_work(payload: JsonObject) -> ChunkWork:
    """Read a chunk's payload. Raises ValueError for one that no operator has made."""
    array = child(payload, "array")
    numbers = ItemRanges.parse(text(payload, "items"))
    inline = tuple(items(payload, "values")) if "values" in payload else None
    if not numbers:
        raise ValueError("items: the chunk has none")
    if inline is not None and len(inline) != len(numbers):
        raise ValueError(f"values: {len(inline)} for {len(numbers)} items")
    return ChunkWork(
        text(array, "name"),
        text(array, "uid"),
        numbers,
        payload.get("payload"),
        inline,
        integer(payload, "itemRetries", DEFAULT_ITEM_RETRIES),
        opt_integer(payload, "itemTimeoutSeconds"),
        child(payload, "retryPolicy"),
        read_chunk_file(child(payload, "file")) if "file" in payload else None,
        read_result_target(child(payload, "results")) if "results" in payload else None,
    )


@dataclass(frozen=True, slots=True)
class ChunkReport:
    """Which items of a chunk are done, which have failed, and the newest errors."""

    done: ItemRanges = NO_ITEMS
    failed: ItemRanges = NO_ITEMS
    errors: tuple[ItemError, ...] = ()

    def checkpoint(self, work: ItemRanges) -> dict[str, Json]:
        """Return the checkpoint: two bitmaps, whose size depends on the chunk's size alone."""
        return {
            "done": _bitmap(self.done, work),
            "failed": _bitmap(self.failed, work),
            "errors": self._errors(),
        }

    def result(self) -> dict[str, Json]:
        """Return the result: ranges, which people can read."""
        return {
            "done": str(self.done),
            "failed": str(self.failed),
            "errors": self._errors(),
        }

    def _errors(self) -> list[Json]:
        return [error.to_json() for error in self.errors[-ERRORS_KEPT:]]


def read_checkpoint(stored: Json, work: ItemRanges) -> ChunkReport:
    """Read a chunk's checkpoint; what cannot be read, or is not of the chunk, counts for nothing.

    An item that is in both bitmaps has failed.
    """
    report = as_object(stored)
    failed = _set_bits(text(report, "failed"), work)
    return ChunkReport(
        _set_bits(text(report, "done"), work) - failed, failed, _read_errors(report, failed)
    )


def read_result(stored: Json, work: ItemRanges) -> ChunkReport:
    """Read a chunk's result, with the same leniency."""
    report = as_object(stored)
    failed = _parse_leniently(text(report, "failed")) & work
    done = (_parse_leniently(text(report, "done")) & work) - failed
    return ChunkReport(done, failed, _read_errors(report, failed))


def _read_errors(report: JsonObject, failed: ItemRanges) -> tuple[ItemError, ...]:
    stored: Sequence[Json] = items(report, "errors")[-ERRORS_KEPT:]
    found = [read_item_error(one) for one in stored if isinstance(one, Mapping)]
    return tuple(error for error in found if error.item in failed)


def _parse_leniently(notation: str) -> ItemRanges:
    try:
        return ItemRanges.parse(notation)
    except ValueError:
        return NO_ITEMS


def _bitmap(part: ItemRanges, work: ItemRanges) -> str:
    """Return the bitmap of some of the chunk's items: bit 0 of byte 0 is its first item."""
    bits = bytearray((len(work) + 7) // 8)
    for first, last in (part & work).ranges:
        start = work.position(first)
        for at in range(start, start + last - first + 1):
            bits[at // 8] |= 1 << at % 8
    return base64.b64encode(bits).decode()


def _set_bits(bitmap: str, work: ItemRanges) -> ItemRanges:
    try:
        bits = base64.b64decode(bitmap, validate=True)
    except (binascii.Error, ValueError):
        return NO_ITEMS
    if len(bits) != (len(work) + 7) // 8:
        return NO_ITEMS
    return ItemRanges.of(item for at, item in enumerate(work) if bits[at // 8] >> at % 8 & 1)
