"""Records of files: where they begin whatever the blocks, what they say, and how they are found."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob.lifecycle.arrays.item_index import (
    INDEX_STRIDE,
    MAX_OFFSETS,
    IndexBuilder,
    ItemIndex,
    ItemsFile,
    chunk_file,
    read_chunk_file,
    read_index,
)
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.records import (
    MAX_HEADER_BYTES,
    MAX_RECORD_BYTES,
    Record,
    RecordError,
    RecordFormat,
    RecordSplitter,
    detect_format,
    read_header,
    read_record,
)

FIELDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=6)


def record_of(data: bytes) -> Record:
    """Return the first record of a file."""
    return Record(0, len(data), data)


def split(data: bytes, format_: RecordFormat, block: int, **options: Any) -> list[Record]:
    splitter = RecordSplitter(format_, **options)
    found: list[Record] = []
    for at in range(0, len(data), block):
        found += splitter.feed(data[at : at + block])
    return [*found, *splitter.finish()]


@given(
    rows=st.lists(st.lists(FIELDS, min_size=2, max_size=3), max_size=5),
    block=st.integers(1, 9),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_rows_of_csv_are_found_whatever_the_blocks(
    rows: list[list[str]], block: int, quoting: Any
) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=quoting).writerows(rows)
    data = file.getvalue().encode()
    records = split(data, RecordFormat.CSV, block)
    found = [next(csv.reader([record.data.decode()])) for record in records if record.data]
    # The first of all is without a mark that a file may begin with, and a row of blanks is none.
    expected = [row for row in rows if ",".join(row).strip() or quoting == csv.QUOTE_ALL]
    if found and expected and expected[0][0].startswith("\ufeff"):
        return
    assert found == expected
    for record in records:
        again = split(data[record.offset :], RecordFormat.CSV, block, offset=record.offset)
        assert again[0].end == record.end


@given(
    values=st.lists(st.one_of(st.integers(), st.text(max_size=5), st.none()), max_size=6),
    block=st.integers(1, 9),
    end=st.sampled_from(["\n", "\r\n", "\n\n", "\n  \n"]),
)
def test_lines_of_json_are_found_whatever_the_blocks(
    values: list[Any], block: int, end: str
) -> None:
    data = end.join(json.dumps(value) for value in values).encode()
    records = split(data, RecordFormat.JSON_LINES, block)
    assert [json.loads(record.data or b"") for record in records] == values
    assert all(data[one.offset : one.end] == one.data for one in records)


@pytest.mark.parametrize("format_", RecordFormat)
def test_a_record_that_is_too_long_is_passed_over_in_bounded_memory(format_: RecordFormat) -> None:
    splitter = RecordSplitter(format_, max_bytes=100)
    assert list(splitter.feed(b'"first"\n')) == [Record(0, 8, b'"first"\n')]
    for _ in range(1000):
        assert list(splitter.feed(b"x" * 1000)) == []
        assert len(splitter._pending) <= 100
    records = list(splitter.feed(b'\n"last"\n'))
    assert records == [Record(8, 1_000_009, None), Record(1_000_009, 1_000_016, b'"last"\n')]
    with pytest.raises(RecordError, match=f"record 1 .* at most {MAX_RECORD_BYTES} may be"):
        read_record(1, records[0], None)


def test_a_record_of_json_is_any_json_and_one_that_is_none_is_named() -> None:
    assert read_record(0, Record(0, 9, b'\xef\xbb\xbf{"a": 1}'[3:]), None) == {"a": 1}
    with pytest.raises(RecordError, match=r"record 7 \(at byte 40\) is not JSON"):
        read_record(7, Record(40, 50, b"{broken"), None)


def test_a_byte_order_mark_is_no_part_of_the_first_record() -> None:
    [record] = split(b"\xef\xbb\xbfname\n", RecordFormat.CSV, 2)
    assert record == Record(0, 8, b"name\n")


def test_a_row_goes_by_the_names_of_the_columns() -> None:
    columns = read_header(record_of(b'name,"the, size"\r\n'))
    assert read_record(0, Record(0, 9, b'"a\nb",3\n'), columns) == {
        "name": "a\nb",
        "the, size": "3",
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"1,2,3\n", "has 3 fields, the header 2"),
        (b'"1,2\n', "is not CSV"),
        (b'"1"x,2\n', "is not CSV"),
        (b"\xff,2\n", "is not UTF-8"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(row: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=r"record 5 \(at byte 30\) " + message):
        read_record(5, Record(30, 40, row), ("a", "b"))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"a,,b\n", "without a name"),
        (b"a,b,a\n", "two columns of the name 'a'"),
        (b"a" * 70_000, "the header ends at byte 70000"),
    ],
)
def test_a_header_that_is_of_no_use_is_refused(header: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read_header(record_of(header))


def test_the_name_of_a_file_says_its_format() -> None:
    assert detect_format("s3://bucket/a.CSV") is RecordFormat.CSV
    assert detect_format("s3://bucket/a.jsonl") is RecordFormat.JSON_LINES
    with pytest.raises(RecordError, match="unpack it"):
        detect_format("s3://bucket/a.csv.gz")


@pytest.mark.parametrize("records", [0, 1, 999, 1000, 1001, 2_000_000, 2_000_001, 9_000_000])
def test_an_index_stays_small_and_leads_near_each_record(records: int) -> None:
    index = built(records).build(10 * records, "v1")
    assert read_index(index.to_json()) == index
    assert len(index.offsets) <= MAX_OFFSETS
    for item in {0, records // 3, records - 1} - {-1} if records else ():
        record, offset = index.start_of(item)
        assert record <= item < record + index.every
        assert offset == 10 * record


def built(records: int) -> IndexBuilder:
    """Return a builder as if so many records had come; only each thousandth changes it."""
    builder = IndexBuilder()
    for record in range(0, records, INDEX_STRIDE):
        builder.records = record
        builder.add(10 * record)
    builder.records = records
    return builder


@pytest.mark.parametrize(
    "change",
    [
        {"records": -1},
        {"records": 2001},
        {"records": 20_000_000},
        {"version": ""},
        {"version": "x" * 300},
        {"every": 0},
        {"offsets": [3, 3]},
        {"offsets": [3, "4"]},
        {"offsets": [3, 5000]},
        {"offsets": [-3, 5]},
    ],
)
def test_an_index_by_which_no_record_is_found_is_refused(change: dict[str, Any]) -> None:
    good = ItemIndex(2000, 4000, "v1", 1000, (3, 500))
    assert read_index(good.to_json()) == good
    with pytest.raises(ValueError, match="index"):
        read_index({**good.to_json(), **change})


def test_a_chunk_knows_where_each_of_its_ranges_begins() -> None:
    index = ItemIndex(5000, 90_000, "v1", 1000, (7, 1000, 2000, 3000, 4000))
    file = chunk_file(
        ItemsFile("memory://a", RecordFormat.CSV), index, ItemRanges.parse("5,8,2100-2200,4999")
    )
    assert file.starts == ((0, 7), (2000, 2000), (4000, 4000))
    assert (file.header_end, file.size_bytes) == (7, 90_000)
    assert [file.start_for(item)[0] for item in (5, 8, 2100, 2200, 4999)] == [
        0,
        0,
        2000,
        2000,
        4000,
    ]
    assert read_chunk_file(file.to_json()) == file


def test_a_field_of_csv_is_bounded_by_what_pythons_reader_takes() -> None:
    fits = b"1," + b"x" * csv.field_size_limit() + b"\n"
    row = read_record(0, Record(10, 10 + len(fits), fits), ("a", "b"))
    assert row == {"a": "1", "b": "x" * csv.field_size_limit()}
    data = fits[:-1] + b"x\n"
    with pytest.raises(RecordError, match="field larger than field limit"):
        read_record(0, Record(10, 10 + len(data), data), ("a", "b"))


def test_a_header_without_an_end_is_refused_by_its_size() -> None:
    with pytest.raises(RecordError, match="the header ends at byte 300000000, beyond 65536"):
        read_header(Record(0, 300_000_000, None))


def test_a_header_that_chunks_would_not_reach_behind_blank_lines_is_refused() -> None:
    row = b"name,size\n"
    blank = b"\n" * (MAX_HEADER_BYTES - len(row))
    [header] = split(blank + row, RecordFormat.CSV, 1000)
    assert (header.offset, read_header(header)) == (len(blank), ("name", "size"))
    [beyond] = split(blank + b"\n" + row, RecordFormat.CSV, 1000)
    with pytest.raises(RecordError, match="the header ends at byte 65537, beyond 65536"):
        read_header(beyond)
