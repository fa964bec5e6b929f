"""Indexes of files, chunks of them, and what chunks report: each at its exact limits."""

import base64
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.chunks import (
    ChunkReport,
    ChunkWork,
    ItemError,
    is_chunk_type,
    read_checkpoint,
    read_chunk_work,
)
from asyncjob.lifecycle.arrays.item_index import (
    ChunkFile,
    IndexBuilder,
    ItemIndex,
    ItemsFile,
    index_payload,
    read_chunk_file,
    read_index,
    read_index_payload,
)
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.records import (
    Record,
    RecordError,
    RecordFormat,
    RecordSplitter,
    read_header,
    read_record,
)

INDEX = ItemIndex(2000, 4000, "v1", 1000, (3, 500))
FILE = ItemsFile("s3://bucket/rows", RecordFormat.CSV)
CHUNK = ChunkFile(FILE, 90_000, "v1", 12, ((0, 12), (2000, 60_000)))


@pytest.mark.parametrize(
    "index",
    [
        ItemIndex(0, 0, "v1", 1000, ()),
        ItemIndex(10_000_000, 2 * 10**9, "v1", 8000, tuple(range(0, 10**9, 800_000))),
        ItemIndex(1, 1, "v" * 256, 1, (0,)),
        ItemIndex(2000, 501, "v", 1000, (3, 500)),
    ],
    ids=["an empty file", "ten million records", "a long version", "its last byte is a record"],
)
def test_an_index_may_be_as_large_and_as_small_as(index: ItemIndex) -> None:
    assert read_index(index.to_json()) == index


@pytest.mark.parametrize(
    "change",
    [
        {"records": 10_000_001, "every": 10_000, "offsets": list(range(1001))},
        {"version": "v" * 257},
        {"sizeBytes": 500},
        {"sizeBytes": -1, "records": 0, "offsets": []},
    ],
    ids=["a record too many", "a character too many", "a byte too few", "no size"],
)
def test_an_index_that_is_one_beyond_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="index"):
        read_index({**INDEX.to_json(), **change})


@pytest.mark.parametrize("index", [ItemIndex(1, 1, "v", 1, (0,)), ItemIndex(0, 0, "v", 1, ())])
@pytest.mark.parametrize("field", ["records", "sizeBytes", "version", "every"])
def test_an_index_that_lacks_a_field_is_refused(index: ItemIndex, field: str) -> None:
    stored = {name: value for name, value in index.to_json().items() if name != field}
    with pytest.raises(ValueError, match="index"):
        read_index(stored)


def test_an_index_knows_where_each_thousandth_record_begins() -> None:
    builder = IndexBuilder()
    for record in range(2500):
        builder.add(10 * record)
    assert builder.build(25_000, "v1") == ItemIndex(2500, 25_000, "v1", 1000, (0, 10_000, 20_000))


def test_an_index_job_is_told_the_file_and_nothing_else() -> None:
    payload = index_payload("rows", "uid-a", FILE)
    assert payload == {
        "array": {"name": "rows", "uid": "uid-a"},
        "file": {"uri": "s3://bucket/rows", "format": "CSV"},
    }
    assert read_index_payload(payload) == FILE
    with pytest.raises(ValueError, match="no uri"):
        read_index_payload({"file": {"format": "CSV"}})


@pytest.mark.parametrize(
    ("item", "start"),
    [(0, (0, 12)), (1999, (0, 12)), (2000, (2000, 60_000)), (2500, (2000, 60_000))],
)
def test_a_chunk_reads_from_the_nearest_record_before_the_item(
    item: int, start: tuple[int, int]
) -> None:
    assert CHUNK.start_for(item) == start


def test_the_work_on_a_file_comes_back_from_a_payload() -> None:
    work = ChunkWork("rows", "uid-a", ItemRanges.parse("5,2100"), file=CHUNK)
    assert read_chunk_work(work.to_json()) == work
    assert read_chunk_work(ChunkWork("a", "uid", work.items).to_json()).file is None
    with pytest.raises(ValueError, match="no offset"):
        read_chunk_file({**CHUNK.to_json(), "starts": []})


def test_chunks_and_index_jobs_are_known_by_their_types() -> None:
    types = ("thumb/items", "thumb/index", "thumb/store", "thumb", "store", "thumb/items/more")
    assert [is_chunk_type(type_) for type_ in types] == [True, True, True, False, False, False]


def test_an_error_of_an_item_is_cut_to_what_the_schema_allows() -> None:
    stored = ItemError(7, "t" * 300, "c" * 70, "m" * 600).to_json()
    assert stored == {"item": 7, "type": "t" * 256, "category": "c" * 64, "message": "m" * 512}


def test_a_chunk_reports_its_newest_twenty_errors() -> None:
    errors = tuple(ItemError(item, "ValueError", "Internal", "no") for item in range(21))
    report = ChunkReport(errors=errors)
    newest = [error.to_json() for error in errors[1:]]
    assert report.result()["errors"] == newest
    assert report.checkpoint(ItemRanges.between(0, 21))["errors"] == newest


@pytest.mark.parametrize(("items", "size"), [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_a_checkpoint_takes_a_bit_for_each_item(items: int, size: int) -> None:
    work = ItemRanges.between(100, 100 + items)
    stored = ChunkReport(work).checkpoint(work)
    assert len(base64.b64decode(str(stored["done"]))) == size
    assert read_checkpoint(stored, work) == ChunkReport(work)
    for other in (size - 1, size + 1):
        bits = base64.b64encode(b"\xff" * other).decode()
        assert read_checkpoint({"done": bits}, work) == ChunkReport()


def test_a_checkpoint_with_foreign_characters_counts_for_nothing() -> None:
    work = ItemRanges.between(0, 8)
    assert read_checkpoint({"done": "/w=="}, work).done == work
    assert read_checkpoint({"done": "/*w=="}, work) == ChunkReport()


def test_of_a_set_all_items_are_smaller_than_one_beyond_it() -> None:
    assert ItemRanges.parse("0-4,7").position(100) == 6
    assert ItemRanges.parse("0-4,7").position(6) == 5
    assert ItemRanges().position(3) == 0


def test_a_record_may_have_as_many_bytes_as_one_may() -> None:
    splitter = RecordSplitter(RecordFormat.JSON_LINES, max_bytes=5)
    found = list(splitter.feed(b"1234\n12345\n1234\n"))
    assert [(one.offset, one.end, one.data) for one in found] == [
        (0, 5, b"1234\n"),
        (5, 11, None),
        (11, 16, b"1234\n"),
    ]


def test_a_row_with_an_empty_field_in_quotes_ends_where_it_ends() -> None:
    found = RecordSplitter(RecordFormat.CSV).feed(b'"",1\n"a\nb",2\n,"\n"\n')
    assert [one.data for one in found] == [b'"",1\n', b'"a\nb",2\n', b',"\n"\n']


def test_a_quote_within_a_field_begins_nothing_wherever_the_file_is_cut() -> None:
    splitter = RecordSplitter(RecordFormat.CSV)
    found = [one.data for block in (b"a", b'"b\nc', b"\n") for one in splitter.feed(block)]
    assert found == [b'a"b\n', b"c\n"]


def test_a_header_may_have_64_kib() -> None:
    longest = b"a," + b"b" * (64 * 1024 - 2)
    assert [len(column) for column in read_header(Record(0, len(longest), longest))] == [
        1,
        64 * 1024 - 2,
    ]
    with pytest.raises(RecordError, match="the header ends at byte 65537, beyond 65536"):
        read_header(Record(0, len(longest) + 1, longest + b"b"))


def test_of_a_record_that_is_too_long_people_read_where_and_how_long_it_is() -> None:
    with pytest.raises(RecordError) as refusal:
        read_record(7, Record(1000, 2_000_000, None), None)
    assert str(refusal.value) == (
        "record 7 (at byte 1000) has 1999000 bytes, at most 1048576 may be"
    )


def test_of_a_header_with_a_name_twice_people_read_which() -> None:
    with pytest.raises(RecordError, match="of the name 'b'"):
        read_header(Record(0, 8, b"a,b,c,b\n"))
