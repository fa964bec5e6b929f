"""Items that are records of a file: the index job that finds them, and a chunk that reads its own.

Both read in blocks, so that a file may have any size and a record that is too long costs nothing.
Each block counts only if the file is the same before and after: an item is never a mixture of two
versions of a file.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from pydantic import TypeAdapter

from asyncjob.app.context import JobContext
from asyncjob.app.errors import Fail
from asyncjob.app.files import Files
from asyncjob.app.handler import Handler, Isolation
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import INDEX_TYPE_SUFFIX
from asyncjob.lifecycle.arrays.item_index import (
    MAX_RECORDS,
    ChunkFile,
    IndexBuilder,
    ItemsFile,
    read_index_payload,
)
from asyncjob.lifecycle.arrays.item_ranges import NO_ITEMS, ItemRanges
from asyncjob.lifecycle.arrays.records import (
    MAX_HEADER_BYTES,
    Record,
    RecordError,
    RecordFormat,
    RecordSplitter,
    detect_format,
    read_header,
    read_record,
)
from asyncjob.lifecycle.policy import Category, PolicyLayer
from asyncjob.offload.errors import ObjectMissingError, OffloadError
from asyncjob.offload.store import ObjectStat

BLOCK_BYTES: Final = 1024 * 1024
"""Read at a time: large enough that requests do not matter, small enough for every slot's memory.
"""

FIRST_BLOCK_BYTES: Final = 64 * 1024
"""The first block of a chunk, which is doubled from block to block: its records may be few."""

SCAN_BYTES: Final = 128 * 1024
"""Split into records at a time: a thousandth of a second in which the event loop does nothing else.
"""

PROGRESS_SECONDS: Final = 1.0


class ItemsUnreadable(Fail):  # the operator knows it by this name
    """The file of the items cannot be read, or is not the one that was counted."""


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """In place of an item whose record cannot be read."""

    message: str


ItemValue: TypeAlias = "Json | BrokenRecord"


def _fail(error: OffloadError) -> NoReturn:
    """Raise what ends the job: at once, unless the store may answer another time."""
    if error.retryable:
        raise error
    missing = isinstance(error, ObjectMissingError)
    category = Category.NOT_FOUND if missing else Category.VALIDATION
    raise ItemsUnreadable(str(error), category=category) from error


def _check_same(uri: str, before: tuple[int, str], now: tuple[int, str]) -> None:
    """Raise ItemsUnreadable if size and version are not what they were before."""
    if before != now:
        raise ItemsUnreadable(
            f"{uri} has changed while its items were run: {before[0]} bytes ({before[1]}), then "
            f"{now[0]} bytes ({now[1]})",
            category=Category.VALIDATION,
        )


class _File:
    """One version of a file, read in blocks."""

    def __init__(self, files: Files, file: ItemsFile, stat: ObjectStat) -> None:
        self._files = files
        self.uri = file.uri
        self.size = stat.size
        self.version = stat.version

    @classmethod
    async def open(cls, files: Files, file: ItemsFile) -> "_File":
        try:
            return cls(files, file, await files.stat(file.uri))
        except OffloadError as error:
            _fail(error)

    async def read(self, start: int, end: int) -> bytes:
        """Return a part. Raises ItemsUnreadable if the file has changed since it was opened."""
        try:
            data = await self._files.read(self.uri, start, end)
            stat = await self._files.stat(self.uri)
        except OffloadError as error:
            _fail(error)
        _check_same(self.uri, (self.size, self.version), (stat.size, stat.version))
        return data

    async def records(
        self, format_: RecordFormat, offset: int, first_block: int = BLOCK_BYTES
    ) -> AsyncGenerator[Record, None]:
        """Yield the records from an offset to the end of the file."""
        splitter, block = RecordSplitter(format_, offset), first_block
        while offset < self.size:
            data = await self.read(offset, min(offset + block, self.size))
            for at in range(0, len(data), SCAN_BYTES):
                for record in splitter.feed(data[at : at + SCAN_BYTES]):
                    yield record
                await asyncio.sleep(0)
            offset += len(data)
            block = min(2 * block, BLOCK_BYTES)
        for record in splitter.finish():
            yield record


def build_index_handler(type_: str, policy: PolicyLayer) -> Handler:
    """Return the handler of the jobs that find the records of files of items."""
    return Handler(
        type=type_ + INDEX_TYPE_SUFFIX,
        function=_run_index,
        isolation=Isolation.LOOP,
        takes_payload=True,
        payload_adapter=TypeAdapter(dict[str, Any]),
        result_adapter=None,
        policy=policy,
        needs={},
    )


async def _run_index(job: JobContext, payload: Mapping[str, Json]) -> dict[str, Json]:
    """Read a file once and return its index."""
    try:
        file = read_index_payload(payload)
        format_ = file.format or detect_format(file.uri)
    except ValueError as error:
        raise ItemsUnreadable(str(error), category=Category.VALIDATION) from None
    opened = await _File.open(job.files, file)
    builder, header_due = IndexBuilder(), format_ is RecordFormat.CSV
    clock = asyncio.get_running_loop().time
    reported_at = clock()
    async for record in opened.records(format_, 0):
        if header_due:
            header_due = False
            _read_header(file, record)
            continue
        builder.add(record.offset)
        if builder.records > MAX_RECORDS:
            raise ItemsUnreadable(
                f"{file.uri} has more than {MAX_RECORDS} records: split it, one array for each"
            )
        if builder.records % 1000 == 0 and clock() - reported_at > PROGRESS_SECONDS:
            reported_at = clock()
            percent = record.end * 100 / opened.size
            job.progress(percent, f"{builder.records} items found")
    index = builder.build(opened.size, opened.version).to_json()
    job.checkpoint(index)
    return index


def _read_header(file: ItemsFile, record: Record) -> tuple[str, ...]:
    """Return the names of the columns; a header that is too long is refused by its size."""
    try:
        return read_header(record)
    except RecordError as error:
        message = f"{file.uri}: {error}"
        raise ItemsUnreadable(message, category=Category.VALIDATION) from None


async def read_items(
    files: Files, source: ChunkFile, needed: ItemRanges
) -> AsyncGenerator[tuple[int, ItemValue], None]:
    """Yield the items of a chunk that are still to be run, in their order.

    Raises ItemsUnreadable where no other try would help, and OffloadError where one might.
    """
    if not needed:
        return
    format_ = source.file.format or detect_format(source.file.uri)
    file = await _File.open(files, source.file)
    _check_same(file.uri, (source.size_bytes, source.version), (file.size, file.version))
    columns = None
    if format_ is RecordFormat.CSV:
        columns = await _read_columns(file, source)
    for (start, offset), wanted in _by_start(source, needed).items():
        number, last = start, wanted.ranges[-1][1]
        async with aclosing(file.records(format_, offset, FIRST_BLOCK_BYTES)) as records:
            async for record in records:
                if number in wanted:
                    yield number, _read(number, record, columns)
                if number == last:
                    break
                number += 1
            else:
                raise ItemsUnreadable(f"{file.uri} has no record {number}")


def _by_start(source: ChunkFile, needed: ItemRanges) -> dict[tuple[int, int], ItemRanges]:
    """Return the items by the record from which they are reached."""
    found: dict[tuple[int, int], ItemRanges] = {}
    for one in needed.ranges:
        start = source.start_for(one[0])
        found[start] = found.get(start, NO_ITEMS) | ItemRanges((one,))
    return found


async def _read_columns(file: _File, source: ChunkFile) -> tuple[str, ...]:
    end = min(source.header_end, MAX_HEADER_BYTES)
    splitter = RecordSplitter(RecordFormat.CSV)
    for record in splitter.feed(await file.read(0, end)):
        return _read_header(source.file, record)
    raise ItemsUnreadable(f"{file.uri} has no header")


def _read(number: int, record: Record, columns: tuple[str, ...] | None) -> ItemValue:
    try:
        return read_record(number, record, columns)
    except RecordError as error:
        return BrokenRecord(str(error))
