"""Chunks of arrays in processes of their own, as if their items ran in the worker."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from asyncjob.app.context import Stop
from asyncjob.lifecycle.arrays.chunks import ChunkReport, ChunkWork, read_checkpoint, read_result
from asyncjob.lifecycle.arrays.item_index import ItemsFile, chunk_file, index_payload, read_index
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import BUILT_IN_POLICY
from asyncjob.offload import Address, StoreUnavailableError
from asyncjob_worker.execution.object_store import ObjectStoreClient
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import OffloadSettings
from support.apps.items import app
from support.parts.isolation import PATIENCE, IsolatedAttempts, begin_with, is_left, job, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

TARGET = "support.apps.items:app"
NO_DELAY = {"initialDelaySeconds": 0, "jitter": 0}


class Chunks:
    """Runs chunks whose items leave their traces in a folder."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = self.readable = folder
        self.attempts = IsolatedAttempts(app=app, begin=begin_with(TARGET), **settings)

    def work(self, items: str, orders: dict[int, str] | None = None, **changes: Any) -> ChunkWork:
        payload = {"folder": str(self.folder), **{str(k): v for k, v in (orders or {}).items()}}
        return ChunkWork(
            *("thumbs", "uid", ItemRanges.parse(items), payload),
            **{"retry": NO_DELAY, "item_retries": 0, **changes},
        )

    async def run(self, of: HeldJob) -> PhaseChange:
        move = await self.attempts.run(of)
        assert move
        return move

    async def report(self, type_: str, work: ChunkWork) -> ChunkReport:
        """Run a chunk to its end and return what it reports."""
        move = await self.run(chunk(type_, work))
        assert move.target is Phase.SUCCEEDED, move
        return read_result(move.fields["result"], work.items)

    def trace(self, word: str = "") -> list[list[str]]:
        """Return word, array, number, attempt and more of what the items have noted."""
        file = self.folder / "trace"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split(" ") for line in lines if line.startswith(word)]

    def items(self, word: str) -> list[int]:
        return sorted(int(line[2]) for line in self.trace(word))


def chunk(type_: str, work: ChunkWork, **changes: Any) -> HeldJob:
    return job(f"{type_}/items", work.to_json(), **changes)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chunks]:
    """One set of processes for all tests that leave theirs alive."""
    data = tmp_path_factory.mktemp("data")
    chunks = Chunks(data, offload=OffloadSettings(prefixes=(Address.parse(f"file://{data}"),)))
    chunks.readable = data
    yield chunks
    await chunks.attempts.close()


@pytest.fixture
def chunks(shared: Chunks, tmp_path: Path) -> Chunks:
    shared.folder = tmp_path
    return shared


@pytest.fixture
def readable(shared: Chunks) -> Path:
    """Return a folder that workers may read items from."""
    return shared.readable


async def test_items_run_in_the_process_of_their_chunk_with_its_resources(chunks: Chunks) -> None:
    report = await chunks.report("apart", chunks.work("0-9", {3: "fail"}))
    assert (str(report.done), str(report.failed)) == ("0-2,4-9", "3")
    assert report.errors[0].message == "3 is wrong"
    assert chunks.items("begin") == list(range(10))
    processes = {(line[4], line[5]) for line in chunks.trace("begin")}
    assert len(processes) == 1
    [(pid, pool)] = processes
    assert int(pid) == int(pool) != os.getpid()


async def test_what_is_not_of_the_type_of_the_items_fails_alone(chunks: Chunks) -> None:
    work = chunks.work("0-2", inline=(1, "no number", 3))
    report = await chunks.report("apart", work)
    assert (str(report.done), str(report.failed)) == ("0,2", "1")
    assert report.errors[0].category == "Validation"


async def test_an_item_that_hangs_fails_by_its_time_limit(chunks: Chunks) -> None:
    work = chunks.work("0-3", {1: "wait"}, item_timeout_seconds=1)
    report = await chunks.report("apart", work)
    assert (str(report.done), report.errors[0].category) == ("0,2-3", "Timeout")


async def test_sync_items_run_in_threads_of_the_process(chunks: Chunks) -> None:
    report = await chunks.report("apart-threads", chunks.work("0-9"))
    assert str(report.done) == "0-9"
    assert str(os.getpid()) not in {line[4] for line in chunks.trace("begin")}


async def test_an_item_beyond_the_memory_limit_fails_alone(chunks: Chunks) -> None:
    report = await chunks.report("apart-threads", chunks.work("0-5", {1: "400", 4: "50"}))
    assert (str(report.done), str(report.failed)) == ("0,2-5", "1")
    assert report.errors[0].message == "out of memory: memory_mib=300"


async def test_threads_that_there_is_no_memory_for_fail_the_attempt_and_no_item(
    chunks: Chunks,
) -> None:
    move = await chunks.run(chunk("apart-crowded", chunks.work("0-99")))
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    assert "cannot start 64 threads for items" in str(move.fields["message"])
    assert "raise memory_mib=300" in str(move.fields["message"])
    assert chunks.trace() == []


async def begun(
    chunks: Chunks, of: HeldJob, count: int, word: str = "begin"
) -> "asyncio.Task[PhaseChange]":
    """Start a chunk and wait until so many items have begun."""
    task = asyncio.ensure_future(chunks.run(of))
    await until(lambda: len(chunks.trace(word)) >= count, "items have begun")
    return task


@pytest.mark.parametrize("type_", ["apart", "apart-threads"])
async def test_a_chunk_that_is_stopped_saves_what_is_done_and_goes_on_from_it(
    chunks: Chunks, type_: str
) -> None:
    work = chunks.work("0-9", {4: "wait", 5: "wait", 6: "wait"})
    of = chunk(type_, work)
    task = await begun(chunks, of, 6 if type_ == "apart" else 7)
    of.stop(Stop.DRAINING)
    move = await task
    assert (move.target, move.reason) == (Phase.QUEUED, Reason.RELEASED)
    saved = of.latest_report.checkpoint
    assert str(read_checkpoint(saved, work.items).done) == "0-3"
    move = await chunks.run(chunk(type_, chunks.work("0-9"), checkpoint=saved))
    assert read_result(move.fields["result"], work.items).done == work.items
    assert set(chunks.items("done")) == set(range(10))
    assert [chunks.items("begin").count(one) for one in range(4)] == [1, 1, 1, 1]


async def test_progress_reaches_the_worker(chunks: Chunks) -> None:
    of = chunk("apart", chunks.work("0-9", {3: "fail"}))
    await chunks.run(of)
    assert of.latest_report.progress == {"percent": 100, "message": "10 of 10 items, 1 failed"}


async def test_a_process_that_dies_is_a_crash_after_which_the_rest_is_run(tmp_path: Path) -> None:
    chunks = Chunks(tmp_path)
    work = chunks.work("0-9", {5: "exit"})
    of = chunk("apart", work)
    move = await chunks.run(of)
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_CRASHED)
    saved = of.latest_report.checkpoint
    assert str(read_checkpoint(saved, work.items).done) == "0-4,6-9"
    healthy = chunks.work("0-9")
    move = await chunks.run(chunk("apart", healthy, checkpoint=saved))
    assert move.target is Phase.SUCCEEDED
    assert [one for one in range(10) if chunks.items("begin").count(one) != 1] == [5]
    await chunks.attempts.close()


async def test_a_death_leaves_the_chunks_of_other_processes_alone(tmp_path: Path) -> None:
    chunks = Chunks(tmp_path)
    other = chunk("apart", chunks.work("10-11", {10: "wait"}))
    beside = await begun(chunks, other, 2)
    last = {**BUILT_IN_POLICY.to_json(), "maxCrashes": 0}
    move = await chunks.run(chunk("apart", chunks.work("0-3", {2: "segfault"}), effective=last))
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.CRASH_BUDGET_EXHAUSTED)
    error: Any = move.fields["error"]
    assert error["category"] == "Crash"
    assert "the handler's process died by SIGSEGV" in error["message"]
    assert not beside.done()
    other.stop(Stop.DRAINING)
    assert (await beside).reason is Reason.RELEASED
    await chunks.attempts.close()


async def test_an_item_that_lets_nothing_else_run_ends_with_the_time_limit(tmp_path: Path) -> None:
    chunks = Chunks(tmp_path, stop_grace_seconds=0.05)
    await chunks.report("apart", chunks.work("100"))  # to start a process takes long
    limited = {**BUILT_IN_POLICY.to_json(), "executionTimeoutSeconds": 3}
    of = chunk("apart", chunks.work("0-9", {7: "deaf"}), effective=limited)
    task = await begun(chunks, of, 1, "deaf")
    pid = int(chunks.trace("begin")[0][4])
    move = await task
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.EXECUTION_TIMEOUT)
    assert not is_left(pid)
    await chunks.attempts.close()


async def test_records_of_a_file_are_read_by_the_worker(chunks: Chunks, readable: Path) -> None:
    lines = [json.dumps({"name": f"row-{one}", "size": one}) for one in range(3000)]
    lines[1500] = "{broken"
    file = readable / "rows.jsonl"
    file.write_text("\n".join(lines))
    report = await chunks.report("apart-rows", await of_file(chunks, file, "0-9,1495-1505"))
    assert str(report.failed) == "1500"
    assert "record 1500" in report.errors[0].message
    names = sorted((int(line[2]), line[-1]) for line in chunks.trace("row"))
    expected = [*range(10), *range(1495, 1500), *range(1501, 1506)]
    assert names == [(one, f"row-{one}") for one in expected]


async def test_a_file_that_has_changed_stops_the_chunk(chunks: Chunks, readable: Path) -> None:
    file = readable / "moving.jsonl"
    file.write_text('{"name": "a"}\n' * 10)
    work = await of_file(chunks, file, "0-9")
    file.write_text('{"name": "b"}\n' * 11)
    move = await chunks.run(chunk("apart-rows", work))
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)
    error: Any = move.fields["error"]
    assert error["type"] == "ItemsUnreadable"
    assert "has changed" in error["message"]
    assert chunks.trace() == []


async def test_a_file_that_the_worker_may_not_read_is_not_read_in_the_process_either(
    chunks: Chunks, readable: Path, tmp_path: Path
) -> None:
    allowed = readable / "allowed.jsonl"
    allowed.write_text('{"name": "a"}\n' * 10)
    work = await of_file(chunks, allowed, "0-9")
    assert work.file is not None
    secret = tmp_path / "secret.jsonl"
    secret.write_text(allowed.read_text())
    elsewhere = replace(work, file=replace(work.file, file=ItemsFile(f"file://{secret}")))
    move = await chunks.run(chunk("apart-rows", elsewhere))
    error: Any = move.fields["error"]
    assert (move.target, error["type"]) == (Phase.DEAD_LETTER, "ItemsUnreadable")
    assert "is not below what may be read" in error["message"]


async def test_a_store_that_does_not_answer_is_asked_again_later(
    chunks: Chunks, readable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = readable / "away.jsonl"
    file.write_text('{"name": "a"}\n' * 10)
    work = await of_file(chunks, file, "0-9")

    async def away(*_: object) -> bytes:
        raise StoreUnavailableError("the store does not answer")

    monkeypatch.setattr(ObjectStoreClient, "read_part", away)
    move = await chunks.run(chunk("apart-rows", work))
    error: Any = move.fields["error"]
    assert (move.target, error["type"]) == (Phase.RETRYING, "StoreUnavailableError")
    assert error["message"] == "the store does not answer"


async def test_a_chunk_that_is_stopped_while_it_reads_waits_no_longer(
    chunks: Chunks, readable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = readable / "slow.jsonl"
    file.write_text('{"name": "a"}\n' * 10)
    work = await of_file(chunks, file, "0-9")
    asked = asyncio.Event()

    async def hang(*_: object) -> bytes:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(ObjectStoreClient, "read_part", hang)
    of = chunk("apart-rows", work)
    task = asyncio.ensure_future(chunks.run(of))
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
        of.stop(Stop.DRAINING)
        assert (await task).reason is Reason.RELEASED


async def of_file(chunks: Chunks, file: Path, items: str) -> ChunkWork:
    """Return the work on records of a file whose index the worker has made."""
    source = ItemsFile(f"file://{file}")
    move = await chunks.run(job("apart-rows/index", index_payload("thumbs", "uid", source)))
    index = read_index(move.fields["result"])
    assert index is not None
    wanted = ItemRanges.parse(items)
    return replace(chunks.work(items), file=chunk_file(source, index, wanted))
