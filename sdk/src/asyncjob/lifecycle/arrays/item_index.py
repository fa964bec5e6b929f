"""The index of a file of items: how many records it has, and where in it some of them begin.

An index job reads the file once. With what it finds every chunk reads its own records only, and
notices that the file is not the one that was counted.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from asyncjob.json_types import Json, JsonObject, as_object, child, integer, items, text
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.records import RecordFormat

MAX_RECORDS: Final = 10_000_000
"""Most records of a file: as many as an array may have items."""

INDEX_STRIDE: Final = 1000
"""Each record that is a multiple of this has its offset in the index."""

MAX_OFFSETS: Final = 2000
"""Offsets of an index. A file with more records has every second of them, or every fourth…, so that
an array's status stays small however many items it has."""

MAX_VERSION_LENGTH: Final = 256


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """What is known of a file of items."""

    records: int
    """Number of its records."""

    size_bytes: int
    """Size of the file."""

    version: str
    """What tells the file from a changed one: its entity tag, or when it was modified."""

    every: int
    """Each record that is a multiple of this has its offset in `offsets`."""

    offsets: tuple[int, ...]
    """Where in the file these records begin, in bytes."""

    def start_of(self, item: int) -> tuple[int, int]:
        """Return the nearest record, at or before the item, whose offset is known, and that."""
        at = item // self.every
        return at * self.every, self.offsets[at]

    def to_json(self) -> dict[str, Json]:
        """Return it as a status and a result have it."""
        return {
            "records": self.records,
            "sizeBytes": self.size_bytes,
            "version": self.version,
            "every": self.every,
            "offsets": list(self.offsets),
        }


def read_index(stored: Json) -> ItemIndex:
    """Read an index. Raises ValueError for one by which chunks could not find their records."""
    index = as_object(stored)
    numbers = items(index, "offsets")
    offsets = tuple(one for one in numbers if type(one) is int)
    found = ItemIndex(
        integer(index, "records", -1),
        integer(index, "sizeBytes", -1),
        text(index, "version"),
        integer(index, "every"),
        offsets,
    )
    if not 0 <= found.records <= MAX_RECORDS or not 0 < len(found.version) <= MAX_VERSION_LENGTH:
        raise ValueError(f"no index of a file: {found.records} records, version {found.version!r}")
    if found.size_bytes < 0:
        raise ValueError("no index of a file: its size is missing")
    if found.every < 1 or len(offsets) != len(numbers) or len(offsets) > MAX_OFFSETS:
        raise ValueError(f"no index of a file: {len(numbers)} offsets, every {found.every}")
    if len(offsets) != -(-found.records // found.every):
        raise ValueError(f"an index of {found.records} records has {len(offsets)} offsets")
    ascending = all(one < two for one, two in pairwise(offsets))
    if not ascending or (offsets and not 0 <= offsets[0] <= offsets[-1] < found.size_bytes):
        raise ValueError("the offsets of an index do not ascend within the file")
    return found


class IndexBuilder:
    """Makes an index of records that come one by one."""

    def __init__(self) -> None:
        self.records = 0
        self._every = INDEX_STRIDE
        self._offsets: list[int] = []

    def add(self, offset: int) -> None:
        """Note where the next record begins."""
        if self.records % self._every == 0:
            if len(self._offsets) == MAX_OFFSETS:
                self._offsets = self._offsets[::2]
                self._every *= 2
            if self.records % self._every == 0:
                self._offsets.append(offset)
        self.records += 1

    def build(self, size_bytes: int, version: str) -> ItemIndex:
        """Return the index of a file that has been read to its end."""
        return ItemIndex(self.records, size_bytes, version, self._every, tuple(self._offsets))


@dataclass(frozen=True, slots=True)
class ItemsFile:
    """A file of items, as an array names it."""

    uri: str
    format: RecordFormat | None = None
    """None: by the file's name."""

    def to_json(self) -> dict[str, Json]:
        """Return it as an array and a payload have it."""
        return {"uri": self.uri, **({"format": self.format.value} if self.format else {})}


def read_items_file(stored: JsonObject) -> ItemsFile:
    """Read it. Raises ValueError for a format that this version does not know."""
    format_ = text(stored, "format")
    return ItemsFile(text(stored, "uri"), RecordFormat(format_) if format_ else None)


@dataclass(frozen=True, slots=True)
class ChunkFile:
    """A file of items and what a chunk has to know to read its own records."""

    file: ItemsFile
    size_bytes: int
    version: str
    header_end: int
    """Where the first record begins; the header of a CSV file is before it."""

    starts: tuple[tuple[int, int], ...]
    """Numbers of records, with their offsets, from which all of the chunk's items are reached."""

    def start_for(self, item: int) -> tuple[int, int]:
        """Return the nearest of `starts` at or before the item."""
        at = bisect_right(self.starts, item, key=lambda one: one[0])
        return self.starts[max(at - 1, 0)]

    def to_json(self) -> dict[str, Json]:
        """Return it as a chunk's payload has it."""
        starts: Sequence[Json] = [
            {"record": record, "offset": offset} for record, offset in self.starts
        ]
        return {
            **self.file.to_json(),
            "sizeBytes": self.size_bytes,
            "version": self.version,
            "headerEnd": self.header_end,
            "starts": starts,
        }


def chunk_file(file: ItemsFile, index: ItemIndex, work: ItemRanges) -> ChunkFile:
    """Return what the chunk of these items has to know of the file."""
    starts = sorted({index.start_of(first) for first, _ in work.ranges})
    return ChunkFile(file, index.size_bytes, index.version, index.offsets[0], tuple(starts))


def read_chunk_file(stored: JsonObject) -> ChunkFile:
    """Read it. Raises ValueError for one that no operator has made."""
    starts = tuple(
        (integer(as_object(one), "record"), integer(as_object(one), "offset"))
        for one in items(stored, "starts")
    )
    if not starts:
        raise ValueError("file: there is no offset from which to read")
    return ChunkFile(
        read_items_file(stored),
        integer(stored, "sizeBytes"),
        text(stored, "version"),
        integer(stored, "headerEnd"),
        starts,
    )


def index_payload(array: str, uid: str, file: ItemsFile) -> dict[str, Json]:
    """Return the payload of an index job."""
    return {"array": {"name": array, "uid": uid}, "file": file.to_json()}


def read_index_payload(payload: JsonObject) -> ItemsFile:
    """Read the payload of an index job. Raises ValueError for one that names no file."""
    file = read_items_file(child(payload, "file"))
    if not file.uri:
        raise ValueError("file: there is no uri")
    return file
