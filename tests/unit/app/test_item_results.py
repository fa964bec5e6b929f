"""What item handlers return: written before an item counts as done, whatever the store does."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer

from asyncjob.app import Fail, ItemContext, JobContext, WorkerApp, item_results
from asyncjob.app.context import JobInfo
from asyncjob.app.files import NO_FILES
from asyncjob.app.item_results import ResultsNotStored, ResultsRefused
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import ChunkReport, ChunkWork, read_checkpoint
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.item_results import ResultReader, ResultTarget
from asyncjob.offload import AddressError, StoreRefusedError, StoreUnavailableError
from asyncjob.offload.store import ObjectStat

FOLDER = "s3://bucket/results/ns/uid"
NO_DELAY = {"initialDelaySeconds": 0, "jitter": 0}


class Folder:
    """A folder of a store; `before_write` is called before each write and may refuse it."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.writes: list[tuple[str, bytes]] = []
        self.before_write: Callable[[], None] = lambda: None
        self.hangs = False
        self.seconds = 0.0

    async def write(self, folder: str, name: str, data: bytes) -> None:
        self.writes.append((name, data))
        self.before_write()
        if self.hangs:
            await asyncio.Event().wait()
        await asyncio.sleep(self.seconds)
        self.objects[folder, name] = data

    def names(self, folder: str) -> list[str]:
        found = {f if not folder else name for f, name in self.objects if folder in {"", f}}
        return sorted(found)

    def read(self, folder: str, name: str) -> bytes:
        return self.objects[folder, name]

    def results(self, items: str) -> dict[int, Json]:
        return {one.item: one.result for one in ResultReader(self, ItemRanges.parse(items))}


@dataclass
class Files:
    """Has one folder for results, or says why not."""

    folder: Folder
    refusal: Exception | None = None
    asked: str = ""

    async def stat(self, uri: str) -> ObjectStat:
        return await NO_FILES.stat(uri)

    async def read(self, uri: str, start: int, end: int) -> bytes:
        return await NO_FILES.read(uri, start, end)

    def results(self, uri: str) -> Folder:
        self.asked = uri
        if self.refusal:
            raise self.refusal
        return self.folder


class Sink:
    """Keeps the last checkpoint; `seen` is what was stored when it came."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.last: Json = None
        self.stored: list[tuple[ItemRanges, set[int]]] = []

    def progress(self, percent: int, message: str | None) -> None:
        pass

    def checkpoint(self, value: Json) -> None:
        self.last = value
        done = read_checkpoint(value, ItemRanges.parse("0-9")).done
        self.stored.append((done, set(self.folder.results("0-9"))))


class Chunk:
    """Runs chunks of one item handler."""

    def __init__(self, *, remaining: float = 60.0) -> None:
        self.app = WorkerApp()
        self.folder = Folder()
        self.files = Files(self.folder)
        self.sink = Sink(self.folder)
        self.remaining = remaining

    async def run(
        self,
        items: str = "0-9",
        *,
        attempt: int = 1,
        created_at: str = "",
        checkpoint: Json = None,
        type_: str = "thumb/store",
        **changes: Any,
    ) -> Any:
        target = ResultTarget(FOLDER, 7) if type_ == "thumb/store" else None
        given = {"retry": NO_DELAY, "results": target, **changes}
        work = ChunkWork("thumbs", "uid", ItemRanges.parse(items), **given)
        facts: Any = {"last_checkpoint": checkpoint, "created_at": created_at}
        info = JobInfo("ns", "chunk", "job-uid", type_, "default", attempt, **facts)
        context = JobContext(info, self.sink, remaining=lambda: self.remaining, files=self.files)
        handler = self.app.handlers[type_]
        return await handler.function(context, handler.read_payload(work.to_json()))


@pytest.fixture
def chunk() -> Chunk:
    return Chunk()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr(item_results, "RETRY_SECONDS", 0.01)


class Size(BaseModel):
    width: int


async def test_what_items_return_is_one_object_of_json_lines(chunk: Chunk) -> None:
    @chunk.app.item_handler("thumb", concurrency=3)
    async def thumb(job: ItemContext, item: int) -> Size:
        return Size(width=item)

    result = await chunk.run("3-5")
    assert result == {"done": "3-5", "failed": "", "errors": []}
    assert chunk.files.asked == FOLDER
    assert chunk.folder.objects == {
        ("0", "7-0-1-job-uid-0.jsonl"): b'{"item":3,"result":{"width":3}}\n'
        b'{"item":4,"result":{"width":4}}\n{"item":5,"result":{"width":5}}\n'
    }


async def test_what_threads_return_is_stored_and_nothing_is_null(chunk: Chunk) -> None:
    @chunk.app.item_handler("thumb", concurrency=2)
    def thumb(job: ItemContext, item: int) -> int | None:
        return item or None

    await chunk.run("0-2")
    assert chunk.folder.results("0-2") == {0: None, 1: 1, 2: 2}


async def test_an_array_that_keeps_no_results_needs_no_store(chunk: Chunk) -> None:
    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> object:
        return object()

    assert (await chunk.run("0-2", type_="thumb/items"))["done"] == "0-2"
    assert (chunk.files.asked, chunk.folder.writes) == ("", [])


async def test_a_failed_item_has_no_result(chunk: Chunk) -> None:
    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        if item == 1:
            raise Fail("never")
        return item

    result = await chunk.run("0-2")
    assert (result["done"], result["failed"]) == ("0,2", "1")
    assert chunk.folder.results("0-2") == {0: 0, 2: 2}


class Odd(BaseModel):
    value: int

    @field_serializer("value")
    def _write(self, value: int) -> int:  # noqa: ARG002  # as pydantic calls it
        raise RuntimeError("no words for it")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "the result is not JSON: "),
        (float("nan"), "the result"),
        (2**70, "the result"),
        (Odd(value=1), "no words for it"),
        ("x" * (256 * 1024 - 1), "the limit is 262144; let the handler store what is"),
    ],
)
async def test_what_cannot_be_stored_fails_its_item_alone_and_at_once(
    chunk: Chunk, value: object, said: str
) -> None:
    runs: list[int] = []

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> Any:
        runs.append(item)
        return value if item == 1 else item

    result = await chunk.run("0-2", item_retries=3)
    assert (result["done"], result["failed"], runs) == ("0,2", "1", [0, 1, 2])
    [error] = result["errors"]
    assert (error["type"], error["category"]) == ("ResultRefused", "Validation")
    assert said in error["message"]


async def test_a_result_may_have_256_kib_as_json(chunk: Chunk) -> None:
    value = "x" * (256 * 1024 - 2)

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> str:
        return value

    result = await chunk.run("0")
    assert (result["done"], result["failed"]) == ("0", "")
    assert chunk.folder.results("0") == {0: value}


async def test_an_item_is_done_only_once_its_result_is_stored(
    chunk: Chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asyncjob.app.items.FLUSH_SECONDS", 0.01)

    @chunk.app.item_handler("thumb", concurrency=2)
    async def thumb(job: ItemContext, item: int) -> int:
        await asyncio.sleep(0.01)
        return item

    await chunk.run()
    assert len(chunk.sink.stored) > 1
    assert all(set(done) <= stored for done, stored in chunk.sink.stored)


async def test_a_stopped_attempt_stores_what_it_has_and_its_successor_the_rest(
    chunk: Chunk,
) -> None:
    reached, runs = asyncio.Event(), list[int]()

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        runs.append(item)
        if item == 3 and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        return item

    task = asyncio.create_task(chunk.run())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert chunk.folder.results("0-9") == {0: 0, 1: 1, 2: 2}
    assert (await chunk.run(attempt=2, checkpoint=chunk.sink.last))["done"] == "0-9"
    assert runs == [0, 1, 2, 3, *range(3, 10)]
    assert chunk.folder.names("0") == ["7-0-1-job-uid-0.jsonl", "7-0-2-job-uid-0.jsonl"]
    assert chunk.folder.results("0-9") == {item: item for item in range(10)}


async def test_the_name_of_an_object_says_when_the_job_of_its_chunk_was_created(
    chunk: Chunk,
) -> None:
    """A chunk that is deleted and created again has the generation of the one before."""

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        return item

    await chunk.run("0", created_at="2026-01-01T00:00:00Z")
    assert chunk.folder.names("0") == ["7-1767225600-1-job-uid-0.jsonl"]


async def test_of_two_attempts_that_ran_an_item_the_later_one_counts(chunk: Chunk) -> None:
    attempt = 0

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> list[int]:
        return [attempt, item]

    for attempt in (1, 2):
        await chunk.run("0-1", attempt=attempt)
    lost = ChunkReport(ItemRanges.parse("0"))
    attempt = 3
    work = ItemRanges.parse("0-1")
    await chunk.run("0-1", attempt=3, checkpoint=lost.checkpoint(work))
    assert chunk.folder.results("0-1") == {0: [2, 0], 1: [3, 1]}


async def test_what_was_not_answered_is_written_again_under_another_name(chunk: Chunk) -> None:
    fails = [StoreUnavailableError("away"), StoreUnavailableError("away")]

    def refuse() -> None:
        if fails:
            raise fails.pop()

    chunk.folder.before_write = refuse

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        return item

    assert (await chunk.run("0-2"))["done"] == "0-2"
    names = [name for name, _ in chunk.folder.writes]
    assert names == [f"7-0-1-job-uid-{number}.jsonl" for number in range(3)]
    assert len({data for _, data in chunk.folder.writes}) == 1
    assert chunk.folder.results("0-2") == {0: 0, 1: 1, 2: 2}


async def test_a_store_that_refuses_ends_the_attempt_for_good(chunk: Chunk) -> None:
    def refuse() -> None:
        raise StoreRefusedError("no bucket")

    chunk.folder.before_write = refuse

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        return item

    with pytest.raises(ResultsRefused, match="results of items cannot be stored: no bucket"):
        await chunk.run()
    assert read_checkpoint(chunk.sink.last, ItemRanges.parse("0-9")).done == ItemRanges()


async def test_a_store_that_stays_away_ends_the_attempt_and_keeps_what_was_stored(
    chunk: Chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_results, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(item_results, "OBJECT_BYTES", 1)
    monkeypatch.setattr(item_results, "WAITING_BYTES", 1)
    runs: list[int] = []

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        runs.append(item)
        if item == 5:
            chunk.folder.before_write = away
        return item

    def away() -> None:
        raise StoreUnavailableError("away")

    with pytest.raises(ResultsNotStored, match="results of items cannot be stored: away"):
        await chunk.run()
    assert runs == list(range(6))
    assert read_checkpoint(chunk.sink.last, ItemRanges.parse("0-9")).done == ItemRanges.parse("0-4")
    assert chunk.folder.results("0-9") == {item: item for item in range(5)}


async def test_a_store_that_hangs_ends_the_attempt_before_its_time_is_up(chunk: Chunk) -> None:
    chunk.remaining = item_results.MARGIN_SECONDS + 0.2
    chunk.folder.hangs = True

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        chunk.remaining = item_results.MARGIN_SECONDS
        return item

    with pytest.raises(ResultsNotStored, match="did not answer in time"):
        await chunk.run()


async def test_a_store_that_answers_is_not_to_blame_for_how_little_time_is_left(
    chunk: Chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asyncjob.app.items.FLUSH_SECONDS", 0.01)
    chunk.remaining = item_results.MARGIN_SECONDS - 1
    chunk.folder.seconds = 0.15
    reached = asyncio.Event()

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> int:
        if item == 3 and not reached.is_set():
            await asyncio.sleep(0.05)
            reached.set()
            await asyncio.Event().wait()
        return item

    task = asyncio.create_task(chunk.run())
    await reached.wait()
    assert chunk.folder.writes == []
    task.cancel()  # as a worker does when the time is up
    with pytest.raises(asyncio.CancelledError):
        await task
    assert chunk.folder.results("0-9") == {0: 0, 1: 1, 2: 2}
    assert (await chunk.run(attempt=2, checkpoint=chunk.sink.last))["done"] == "0-9"


async def test_a_large_chunk_has_several_objects_and_writes_little_twice(
    chunk: Chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_results, "OBJECT_BYTES", 1000)
    monkeypatch.setattr(item_results, "WAITING_BYTES", 300)

    @chunk.app.item_handler("thumb", concurrency=2)
    async def thumb(job: ItemContext, item: int) -> str:
        return "x" * 100

    await chunk.run("0-99")
    assert len(chunk.folder.objects) > 5
    assert max(map(len, chunk.folder.objects.values())) < 2000
    assert chunk.folder.results("0-99") == dict.fromkeys(range(100), "x" * 100)


@pytest.mark.parametrize(
    "refusal",
    [StoreRefusedError("this worker has no store"), AddressError("not below where results go")],
)
async def test_a_folder_where_results_may_not_go_ends_the_chunk_before_an_item_runs(
    chunk: Chunk, refusal: Exception
) -> None:
    chunk.files.refusal = refusal

    @chunk.app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        raise AssertionError("an item has run")

    with pytest.raises(ResultsRefused, match=f"results.uri: {refusal}"):
        await chunk.run()


async def test_without_a_worker_results_have_nowhere_to_go() -> None:
    with pytest.raises(StoreRefusedError, match="only workers store results of items"):
        NO_FILES.results(FOLDER)
