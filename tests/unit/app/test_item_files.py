"""Items of files, read as a worker reads them but for the store, which can be changed meanwhile."""

import asyncio
import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from asyncjob.app import HandlerError, ItemContext, JobContext, WorkerApp, item_files
from asyncjob.app.context import JobInfo
from asyncjob.app.files import NO_FILES, ResultFolder
from asyncjob.app.item_files import ItemsUnreadable
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import ChunkWork, read_checkpoint
from asyncjob.lifecycle.arrays.item_index import ItemsFile, chunk_file, index_payload, read_index
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.records import MAX_HEADER_BYTES, RecordFormat
from asyncjob.offload import AddressError, ObjectMissingError, StoreUnavailableError
from asyncjob.offload.store import ObjectStat

LINES = ItemsFile("memory://items/rows.jsonl")
ROWS = ItemsFile("memory://items/rows.csv")


class Store:
    """A file that is read in parts; `before_read` is called before each of these."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.version = "v1"
        self.reads: list[tuple[int, int]] = []
        self.before_read: Callable[[], None] = lambda: None

    async def stat(self, uri: str) -> ObjectStat:  # noqa: ARG002  # there is one file
        return ObjectStat(len(self.data), self.version)

    async def read(self, uri: str, start: int, end: int) -> bytes:  # noqa: ARG002  # there is one
        self.before_read()
        self.reads.append((start, end))
        return self.data[start:end]

    def results(self, uri: str) -> ResultFolder:
        return NO_FILES.results(uri)


class Sink:
    """Keeps what is reported."""

    last: Json = None

    def progress(self, percent: int, message: str | None) -> None:
        pass

    def checkpoint(self, value: Json) -> None:
        self.last = value


class Rows:
    """An app with one item handler, and what it has been given."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.app = WorkerApp()
        self.seen: list[tuple[int, Any]] = []
        self.sink = Sink()

        @self.app.item_handler("thumb", concurrency=3)
        async def thumb(job: ItemContext, item: Any) -> None:
            self.seen.append((job.number, item))
            await asyncio.sleep(0)

    async def call(self, type_: str, payload: Any, checkpoint: Json = None) -> Any:
        info = JobInfo("ns", "chunk", "uid", type_, "default", 1, last_checkpoint=checkpoint)
        context = JobContext(info, self.sink, remaining=lambda: 60.0, files=self.store)
        handler = self.app.handlers[type_]
        return await handler.function(context, handler.read_payload(payload))

    async def find(self, file: ItemsFile) -> Any:
        return await self.call("thumb/index", index_payload("thumbs", "uid", file))

    async def run(self, file: ItemsFile, items: str, checkpoint: Json = None) -> Any:
        index = read_index(await self.find(file))
        return await self.run_with(file, index, items, checkpoint)

    async def run_with(
        self, file: ItemsFile, index: Any, items: str, checkpoint: Json = None
    ) -> Any:
        work = ItemRanges.parse(items)
        payload = ChunkWork("thumbs", "uid", work, file=chunk_file(file, index, work)).to_json()
        return await self.call("thumb/items", payload, checkpoint)


def lines(count: int) -> bytes:
    return b"".join(json.dumps({"n": number}).encode() + b"\n" for number in range(count))


def rows(count: int) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([("n", "text"), *((one, f"a\n{one},") for one in range(count))])
    return file.getvalue().encode()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("BLOCK_BYTES", 4096), ("FIRST_BLOCK_BYTES", 500), ("SCAN_BYTES", 97)):
        monkeypatch.setattr(item_files, name, size)


async def test_each_record_is_an_item_and_has_its_number() -> None:
    run = Rows(Store(lines(2500)))
    result = await run.run(LINES, "0-1,998-1003,2400-2499")
    expected = [*range(2), *range(998, 1004), *range(2400, 2500)]
    assert sorted(run.seen) == [(number, {"n": number}) for number in expected]
    assert result["done"] == "0-1,998-1003,2400-2499"
    # It has not read what it did not need: the file has been read once for its index.
    sizes = sum(end - start for start, end in run.store.reads)
    assert sizes < 2 * len(run.store.data)


@pytest.mark.parametrize(
    "before",
    [b"", b"\xef\xbb\xbf", b"\r\n \n" * 9_000],
    ids=["at the beginning", "behind a byte order mark", "behind blank lines"],
)
async def test_chunks_find_a_header_wherever_counting_takes_one(before: bytes) -> None:
    name = b"a" * (MAX_HEADER_BYTES - len(before) - 1)
    run = Rows(Store(before + name + b"\n" + b"\n" * 70_000 + b"1\n"))
    await run.run(ROWS, "0")
    assert run.seen == [(0, {name.decode(): "1"})]


async def test_a_row_of_csv_may_hold_newlines() -> None:
    run = Rows(Store(rows(1500)))
    await run.run(ROWS, "3,1001-1002")
    assert sorted(run.seen) == [
        (number, {"n": str(number), "text": f"a\n{number},"}) for number in (3, 1001, 1002)
    ]


async def test_a_format_that_is_given_goes_before_the_name() -> None:
    run = Rows(Store(b"a,b\n1,2\n"))
    await run.run(ItemsFile("memory://items/rows.txt", RecordFormat.CSV), "0")
    assert run.seen == [(0, {"a": "1", "b": "2"})]


@pytest.mark.parametrize(("file", "data"), [(LINES, b""), (LINES, b"\n\n \n"), (ROWS, b"a,b\n")])
async def test_a_file_may_have_no_records(file: ItemsFile, data: bytes) -> None:
    index = await Rows(Store(data)).find(file)
    assert (index["records"], index["offsets"]) == (0, [])


async def test_an_index_is_kept_in_the_checkpoint_as_well() -> None:
    run = Rows(Store(lines(10)))
    assert await run.find(LINES) == run.sink.last


async def test_a_broken_record_fails_alone_and_is_named() -> None:
    run = Rows(Store(b'{"n": 0}\n{broken\n{"n": 2}\n'))
    result = await run.run(LINES, "0-2")
    assert (result["done"], result["failed"]) == ("0,2", "1")
    [error] = result["errors"]
    assert (error["item"], error["type"], error["category"]) == (1, "BrokenRecord", "Validation")
    assert "record 1 (at byte 9) is not JSON" in error["message"]


async def test_a_record_of_ten_megabytes_fails_alone() -> None:
    store = Store(b'{"n": 0}\n"' + b"x" * 10_000_000 + b'"\n{"n": 2}\n')
    run = Rows(store)
    result = await run.run(LINES, "0-2")
    assert (result["done"], result["failed"]) == ("0,2", "1")
    assert "record 1 (at byte 9) has 10000003 bytes" in result["errors"][0]["message"]


async def test_a_chunk_goes_on_from_its_checkpoint() -> None:
    run = Rows(Store(lines(100)))
    work = ItemRanges.parse("10-99")
    checkpoint = {"done": "", "failed": "", "errors": []}
    result = await run.run(LINES, "10-99", checkpoint)
    done = run.sink.last
    assert len(read_checkpoint(done, work).done) == 90
    run.seen.clear()
    assert await run.run(LINES, "10-99", done) == result
    assert run.seen == []


async def test_a_file_that_has_changed_since_is_refused_in_words() -> None:
    run = Rows(Store(lines(100)))
    index = read_index(await run.find(LINES))
    run.store.version = "v2"
    with pytest.raises(ItemsUnreadable, match=r"rows.jsonl has changed .*v1.*then .*v2"):
        await run.run_with(LINES, index, "0-9")
    assert run.seen == []


async def test_what_is_read_while_a_file_changes_is_not_run() -> None:
    run = Rows(Store(lines(1000)))
    index = read_index(await run.find(LINES))
    run.store.reads.clear()

    def change() -> None:
        if len(run.store.reads) == 2:
            run.store.data = run.store.data.replace(b"n", b"m")
            run.store.version = "v2"

    run.store.before_read = change
    with pytest.raises(ItemsUnreadable, match="has changed"):
        await run.run_with(LINES, index, "0-999")
    assert run.seen
    assert all(set(item) == {"n"} for _, item in run.seen)
    # What was run counts.
    assert len(read_checkpoint(run.sink.last, ItemRanges.parse("0-999")).done) == len(run.seen)


async def test_a_file_that_changes_while_it_is_counted_is_refused() -> None:
    run = Rows(Store(lines(1000)))

    def change() -> None:
        run.store.version = "v2"

    run.store.before_read = change
    with pytest.raises(ItemsUnreadable, match="has changed"):
        await run.find(LINES)


@pytest.mark.parametrize(
    "error", [ObjectMissingError("there is no such object"), AddressError("not below what may be")]
)
async def test_a_file_that_is_missing_or_not_allowed_ends_in_words(error: Exception) -> None:
    run = Rows(Store(lines(10)))
    index = read_index(await run.find(LINES))

    async def stat(uri: str) -> ObjectStat:
        raise error

    run.store.stat = stat  # type: ignore[method-assign]  # the store is that of the test
    with pytest.raises(ItemsUnreadable, match=str(error)):
        await run.find(LINES)
    with pytest.raises(ItemsUnreadable, match=str(error)):
        await run.run_with(LINES, index, "0-9")


async def test_a_store_that_does_not_answer_fails_the_attempt() -> None:
    run = Rows(Store(lines(10)))

    def fail() -> None:
        raise StoreUnavailableError("no answer")

    run.store.before_read = fail
    with pytest.raises(StoreUnavailableError):
        await run.find(LINES)


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        (ROWS, b"a,,b\n1,2,3\n", "column without a name"),
        (ROWS, b"a" * 2_000_000, "the header ends at byte 2000000"),
        (ROWS, b"\n" * 70_000 + b"a,b\n1,2\n", "the header ends at byte 70004"),
        (ItemsFile("memory://items/rows.jsonl.gz"), b"", "is compressed"),
        (ItemsFile(""), b"", "there is no uri"),
    ],
)
async def test_a_file_by_which_no_item_is_known_is_refused(
    file: ItemsFile, data: bytes, message: str
) -> None:
    with pytest.raises(ItemsUnreadable, match=message):
        await Rows(Store(data)).find(file)


async def test_more_records_than_an_array_may_have_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(item_files, "MAX_RECORDS", 9)
    with pytest.raises(ItemsUnreadable, match="more than 9 records"):
        await Rows(Store(lines(10))).find(LINES)


async def test_a_handler_that_runs_without_a_worker_reads_no_files() -> None:
    run = Rows(Store(b""))
    info = JobInfo("ns", "chunk", "uid", "thumb/index", "default", 1)
    context = JobContext(info, Sink(), remaining=lambda: 60.0)
    with pytest.raises(ItemsUnreadable, match="only workers read files"):
        await run.app.handlers["thumb/index"].function(context, index_payload("a", "u", LINES))


def test_a_handler_for_jobs_must_not_have_the_type_of_index_jobs() -> None:
    app = WorkerApp()
    with pytest.raises(HandlerError, match=r"use @app.item_handler\('thumb'\)"):
        app.handler("thumb/index")
