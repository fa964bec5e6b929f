"""Item handlers, run as a worker runs them but for the cluster."""

import asyncio
import threading
import time
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from asyncjob.app import (
    Fail,
    HandlerError,
    Isolation,
    ItemContext,
    JobContext,
    Retry,
    WorkerApp,
)
from asyncjob.app.context import JobInfo
from asyncjob.app.items import FLUSH_SECONDS
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import ChunkReport, ChunkWork, read_checkpoint
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges

NO_DELAY = {"initialDelaySeconds": 0, "jitter": 0}


class Sink:
    """Keeps what a chunk reports."""

    def __init__(self) -> None:
        self.checkpoints: list[Json] = []
        self.messages: list[str | None] = []

    def progress(self, percent: int, message: str | None) -> None:
        self.messages.append(f"{percent} %: {message}")

    def checkpoint(self, value: Json) -> None:
        self.checkpoints.append(value)


def work_of(items: str, **changes: Any) -> ChunkWork:
    return ChunkWork("thumbs", "uid", ItemRanges.parse(items), **{"retry": NO_DELAY, **changes})


async def run(
    app: WorkerApp, work: ChunkWork, sink: Sink | None = None, checkpoint: Json = None
) -> Any:
    handler = app.handlers["thumb/items"]
    info = JobInfo("ns", "chunk", "job-uid", handler.type, "default", 1, last_checkpoint=checkpoint)
    context = JobContext(info, sink or Sink(), remaining=lambda: 60.0)
    return await handler.function(context, handler.read_payload(work.to_json()))


async def test_each_item_is_given_to_the_handler_once() -> None:
    app, seen = WorkerApp(), list[tuple[int, str, int]]()

    @app.item_handler("thumb", concurrency=3)
    async def thumb(job: ItemContext, item: int) -> None:
        seen.append((item, job.key, job.attempt))

    sink = Sink()
    result = await run(app, work_of("0-4,9"), sink)
    assert sorted(seen) == [(item, f"uid/{item}", 1) for item in (0, 1, 2, 3, 4, 9)]
    assert result == {"done": "0-4,9", "failed": "", "errors": []}
    assert sink.messages == ["100 %: 6 of 6 items"]


async def test_an_item_has_what_all_items_of_the_array_share() -> None:
    app, seen = WorkerApp(), list[Json]()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext) -> None:
        seen.append(job.payload)

    await run(app, work_of("0-1", payload={"width": 200}))
    await run(app, work_of("2"))
    assert seen == [{"width": 200}, {"width": 200}, None]


async def test_at_most_concurrency_items_run_at_a_time() -> None:
    app, running, most = WorkerApp(), 0, 0

    @app.item_handler("thumb", concurrency=4)
    async def thumb(job: ItemContext) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await run(app, work_of("0-20"))
    assert most == 4


async def test_values_that_stand_in_the_array_are_checked_by_their_type() -> None:
    app, seen = WorkerApp(), list[int]()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        seen.append(item)

    result = await run(app, work_of("3,5-6", inline=(30, "no number", 60)))
    assert seen == [30, 60]
    assert (result["done"], result["failed"]) == ("3,6", "5")
    assert result["errors"][0]["category"] == "Validation"


async def test_a_failing_item_is_tried_as_often_as_it_may() -> None:
    app, tries = WorkerApp(), list[int]()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        tries.append(job.attempt)
        raise ValueError("not yet")

    result = await run(app, work_of("7", item_retries=2))
    assert tries == [1, 2, 3]
    assert result["errors"] == [
        {"item": 7, "type": "ValueError", "category": "Validation", "message": "not yet"}
    ]


@pytest.mark.parametrize("error", [Fail("never"), SystemExit(1), asyncio.CancelledError()])
async def test_what_is_final_is_not_tried_again_and_stops_no_other_item(
    error: BaseException,
) -> None:
    app, tries = WorkerApp(), list[int]()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        tries.append(item)
        if item == 1:
            raise error

    result = await run(app, work_of("0-2", item_retries=0))
    assert (tries, result["done"], result["failed"]) == ([0, 1, 2], "0,2", "1")


async def test_a_retry_that_is_asked_for_is_made() -> None:
    app = WorkerApp()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        if job.attempt == 1:
            raise Retry(after=0)

    assert (await run(app, work_of("0")))["done"] == "0"


async def test_categories_of_the_app_and_of_the_policy_count() -> None:
    app, tries = WorkerApp(), list[int]()
    app.categorize(KeyError, "Gone")

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        tries.append(item)
        raise KeyError("x")

    result = await run(app, work_of("0", retry={**NO_DELAY, "noRetryOn": ["Gone"]}))
    assert (tries, result["errors"][0]["category"]) == ([0], "Gone")


async def test_an_item_that_hangs_fails_by_its_time_limit() -> None:
    app = WorkerApp()

    @app.item_handler("thumb", concurrency=2)
    async def thumb(job: ItemContext, item: int) -> None:
        if item == 1:
            await asyncio.Event().wait()

    result = await run(app, work_of("0-2", item_retries=0, item_timeout_seconds=1))
    assert (result["done"], result["failed"]) == ("0,2", "1")
    assert result["errors"][0]["category"] == "Timeout"


async def test_an_attempt_goes_on_where_the_one_before_has_stopped() -> None:
    app, seen = WorkerApp(), list[int]()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        seen.append(item)

    work = work_of("0-9")
    before = ChunkReport(ItemRanges.parse("0-5"), ItemRanges.parse("7"))
    result = await run(app, work, checkpoint=before.checkpoint(work.items))
    assert seen == [6, 8, 9]
    assert (result["done"], result["failed"]) == ("0-6,8-9", "7")


async def test_a_chunk_that_is_stopped_saves_what_is_done() -> None:
    app, sink, reached = WorkerApp(), Sink(), asyncio.Event()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        if item == 3:
            reached.set()
            await asyncio.Event().wait()

    work = work_of("0-9")
    task = asyncio.create_task(run(app, work, sink))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert read_checkpoint(sink.checkpoints[-1], work.items).done == ItemRanges.parse("0-2")


async def test_what_is_done_is_saved_once_a_second_and_not_for_each_item() -> None:
    app, sink, release = WorkerApp(), Sink(), asyncio.Event()

    @app.item_handler("thumb", concurrency=2)
    async def thumb(job: ItemContext, item: int) -> None:
        if item == 99:
            await release.wait()

    work = work_of("0-199")
    task = asyncio.create_task(run(app, work, sink))
    await asyncio.sleep(FLUSH_SECONDS * 1.5)
    release.set()
    await task
    assert 1 <= len(sink.checkpoints) <= 3


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_items_that_await_nothing_leave_the_event_loop_to_others(concurrency: int) -> None:
    app = WorkerApp()

    @app.item_handler("thumb", concurrency=concurrency)
    async def thumb(job: ItemContext) -> None:
        compute(0.0005)

    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    await run(app, work_of("0-639"))
    heart.cancel()
    assert turns > 12  # a handful comes with the beginning and the end of a chunk


def compute(seconds: float) -> None:
    time.sleep(seconds)


async def test_sync_items_run_in_threads_and_are_waited_for() -> None:
    app, threads, sink = WorkerApp(), set[int](), Sink()
    barrier = threading.Barrier(2, timeout=10)

    @app.item_handler("thumb", concurrency=2)
    def thumb(job: ItemContext, item: int) -> None:
        threads.add(threading.get_ident())
        barrier.wait()

    assert (await run(app, work_of("0-3"), sink))["done"] == "0-3"
    assert threading.get_ident() not in threads
    assert len(threads) == 2


async def test_a_sync_handler_has_no_time_limit_for_an_item() -> None:
    app = WorkerApp()

    @app.item_handler("thumb")
    def thumb(job: ItemContext, item: int) -> None:
        """Do nothing."""

    with pytest.raises(Fail, match="itemTimeoutSeconds needs"):
        await run(app, work_of("0", item_timeout_seconds=1))


async def test_a_payload_that_is_no_chunk_is_refused() -> None:
    app = WorkerApp()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        """Do nothing."""

    with pytest.raises(Fail, match="not a chunk of an array"):
        await run(app, ChunkWork("a", "uid", ItemRanges()))


def refused(**options: Any) -> str:
    async def thumb(job: ItemContext, item: int) -> None:
        """Do nothing."""

    with pytest.raises(HandlerError) as caught:
        WorkerApp().item_handler("thumb", **options)(thumb)
    return str(caught.value)


def test_options_that_do_not_fit_are_refused_in_words() -> None:
    assert "concurrency is 0" in refused(concurrency=0)
    assert "concurrency is 65" in refused(concurrency=65)
    assert "isolation='thread' is unknown" in refused(isolation="thread")
    assert "memory_mib needs isolation='process'" in refused(memory_mib=64)
    assert "memory_mib=0 is not" in refused(isolation="process", memory_mib=0)


def test_the_chunks_of_an_isolated_handler_run_in_a_process_and_its_index_does_not() -> None:
    app = WorkerApp()

    @app.item_handler("thumb", isolation="process", memory_mib=64)
    def thumb(job: ItemContext, item: int) -> None:
        """Do nothing."""

    chunks, index = app.handlers["thumb/items"], app.handlers["thumb/index"]
    assert (chunks.isolation, chunks.memory_mib) == (Isolation.PROCESS, 64)
    assert chunks.inside_process().isolation is Isolation.LOOP
    assert index.isolation is Isolation.LOOP


def swell(item: int) -> int:
    """Check an item, as the type of a handler's parameter does."""
    if item == 0:
        raise MemoryError
    return item


async def test_an_item_for_which_there_is_no_memory_is_told_the_limit() -> None:
    app = WorkerApp()

    @app.item_handler("thumb", isolation="process", memory_mib=64)
    async def thumb(job: ItemContext, item: Annotated[int, AfterValidator(swell)]) -> None:
        raise MemoryError

    inside = app.handlers["thumb/items"].inside_process()
    info = JobInfo("ns", "chunk", "job-uid", inside.type, "default", 1)
    context = JobContext(info, Sink(), remaining=lambda: 60.0)
    work = work_of("0-1", item_retries=0).to_json()
    result = await inside.function(context, inside.read_payload(work))
    messages = [error["message"] for error in result["errors"]]
    assert messages == ["out of memory: memory_mib=64"] * 2


async def test_threads_that_cannot_be_started_fail_the_chunk_and_no_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, seen = WorkerApp(), list[int]()

    @app.item_handler("thumb", concurrency=8)
    def thumb(job: ItemContext, item: int) -> None:
        seen.append(item)

    before, start = threading.active_count(), threading.Thread.start

    def start_few(thread: threading.Thread) -> None:
        if threading.active_count() >= before + 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_few)
    with pytest.raises(RuntimeError, match="cannot start 8 threads for items: can't start") as told:
        await run(app, work_of("0-99"))
    assert "memory_mib" not in str(told.value), "the handler has no such limit"
    assert seen == []


def test_a_handler_of_jobs_is_no_handler_of_items() -> None:
    app = WorkerApp()
    with pytest.raises(HandlerError, match="the first parameter is the ItemContext"):

        @app.item_handler("thumb")
        async def thumb(job: JobContext, item: int) -> None:
            """Do nothing."""

    for type_ in ("thumb/items", "thumb/index", "thumb/store"):
        with pytest.raises(HandlerError, match=r"use @app.item_handler\('thumb'\)"):
            app.handler(type_)


def test_an_item_handler_takes_all_jobs_that_an_array_makes() -> None:
    app = WorkerApp()

    @app.item_handler("thumb")
    async def thumb(job: ItemContext, item: int) -> None:
        """Do nothing."""

    assert set(app.handlers) == {"thumb/items", "thumb/index", "thumb/store"}
