"""Arrays in the fake cluster; what they have in common with real ones is in the contract tests."""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from asyncjob import Fail, ItemContext, JobContext, WorkerApp
from asyncjob.errors import AlreadyExistsError, InvalidError, ObjectNotFoundError
from asyncjob.models import AsyncArray
from asyncjob.testing import (
    ArrayPhase,
    ArrayReason,
    FakeArray,
    FakeCluster,
    NotFakedError,
    Phase,
    StuckError,
)


class Items:
    """An app, and what its item handlers have seen."""

    def __init__(self) -> None:
        self.app = WorkerApp()
        self.runs = Counter[int]()
        self.seen: list[Any] = []
        self.bad: set[int] = set()
        self.gate = asyncio.Event()

        @self.app.item_handler("note", concurrency=4)
        async def note(job: ItemContext, item: Any) -> None:
            if job.number in self.bad:
                raise Fail(f"{job.number} is wrong")
            self.runs[job.number] += 1
            self.seen.append((item, job.payload))

        @self.app.item_handler("slow")
        async def slow(job: ItemContext, item: int) -> None:
            await asyncio.sleep(10)
            self.runs[item] += 1

        @self.app.item_handler("gated")
        async def gated(job: ItemContext, item: int) -> None:
            await self.gate.wait()
            self.runs[item] += 1

        @self.app.item_handler("threaded", concurrency=3)
        def threaded(job: ItemContext, item: int) -> None:
            time.sleep(0.02)
            self.runs[item] += 1

        @self.app.handler("single")
        async def single(job: JobContext) -> str:
            return "done"


@pytest.fixture
def items() -> Items:
    return Items()


async def run_array(items: Items, *args: Any, **options: Any) -> FakeArray:
    async with FakeCluster(items.app) as cluster:
        array = await cluster.submit_array(*args, **options)
        await cluster.run_until_idle()
        assert not cluster.jobs
        return array


async def test_each_item_is_run_once_and_no_chunk_is_left(items: Items) -> None:
    array = await run_array(items, "note", 25, chunk_size=4, parallelism=2)
    assert items.runs == Counter(range(25))
    assert (array.phase, array.total, array.succeeded, array.failed) == (
        ArrayPhase.SUCCEEDED,
        25,
        25,
        0,
    )
    assert array.status.generation == 7


async def test_items_and_payload_are_given_as_they_are(items: Items) -> None:
    given = ["a", {"b": None}, None, [1]]
    await run_array(items, "note", iter(given), {"shared": None}, chunk_size=3)
    assert sorted(items.seen, key=str) == sorted(
        [(item, {"shared": None}) for item in given], key=str
    )


async def test_what_items_return_is_kept_where_the_array_says_so(items: Items) -> None:
    runs = Counter[int]()

    @items.app.item_handler("double", concurrency=3)
    async def double(job: ItemContext, item: int) -> dict[str, int]:
        runs[item] += 1
        if item == 5 and runs[item] == 1:
            raise Fail("not yet")
        if item == 6:
            await job.chunk.checkpoint(None)
        return {"twice": 2 * item, "run": runs[item]}

    async with FakeCluster(items.app) as cluster:
        results = {"uri": "s3://bucket/results/default"}
        array = await cluster.submit_array("double", 9, chunk_size=4, results=results)
        other = await cluster.submit_array("double", 2, chunk_size=4)
        await cluster.run_until_idle()
        expected = [(item, {"twice": 2 * item}) for item in range(9) if item != 5]
        runs_before = dict(runs)
        assert [(one.item, one.result) for one in array.results] == [
            (item, {**result, "run": 1}) for item, result in expected
        ]
        assert other.results == ()
        await array.redrive()
        await cluster.run_until_idle()
        assert array.phase is ArrayPhase.SUCCEEDED
        assert runs - Counter(runs_before) == Counter({5: 1})
        assert array.results[5].result == {"twice": 10, "run": 2}


async def test_failed_items_are_listed_and_a_redrive_runs_only_them(items: Items) -> None:
    items.bad = {3, 4, 9}
    async with FakeCluster(items.app) as cluster:
        array = await cluster.submit_array("note", 12, chunk_size=5, name="thumbs")
        await cluster.run_until_idle()
        assert (array.phase, array.reason) == (ArrayPhase.FAILED, ArrayReason.ITEMS_FAILED)
        assert (array.failed_items, array.failed) == ([3, 4, 9], 3)
        assert [(one.item, one.message) for one in array.errors][-1] == (9, "9 is wrong")
        assert array.message == "3 of 12 items have failed"
        items.bad = {9}
        await array.redrive()
        await cluster.run_until_idle()
        assert (array.failed_items, array.succeeded) == ([9], 11)
        items.bad = set()
        await array.redrive()
        await cluster.run_until_idle()
    assert array.phase is ArrayPhase.SUCCEEDED
    assert items.runs == Counter(range(12))


async def test_no_chunk_is_cut_once_too_many_items_have_failed(items: Items) -> None:
    items.bad = {0, 1}
    array = await run_array(items, "note", 100, chunk_size=2, parallelism=1, max_failed=1)
    assert array.reason is ArrayReason.TOO_MANY_FAILED
    assert array.status.next == 2


async def test_a_suspended_array_goes_on_when_it_is_resumed(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        array = await cluster.submit_array("note", 5, suspend=True)
        await cluster.run_until_idle()
        assert (array.reason, array.chunks) == (ArrayReason.SUSPENDED, [])
        await array.resume()
        await cluster.run_until_idle()
        assert array.phase is ArrayPhase.SUCCEEDED


async def test_suspended_in_mid_run_its_waiting_chunks_are_not_claimed(items: Items) -> None:
    async with FakeCluster(items.app, concurrency=1) as cluster:
        array = await cluster.submit_array("slow", 4, chunk_size=1, parallelism=3)
        await cluster.run_until(lambda: any(one.phase is Phase.RUNNING for one in array.chunks))
        await array.suspend()
        await cluster.run_until_idle()
        assert sum(items.runs.values()) == 1
        assert {one.phase for one in array.chunks} == {Phase.PENDING}
        await array.resume()
        await cluster.run_until_idle()
    assert items.runs == Counter(range(4))


async def test_a_cancelled_array_keeps_what_is_done(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        array = await cluster.submit_array("slow", 6, chunk_size=3, parallelism=1)
        await cluster.advance(25)
        await array.cancel()
        await cluster.run_until_idle()
        assert (array.phase, array.succeeded) == (ArrayPhase.CANCELLED, 2)
        assert not cluster.jobs


async def test_a_chunk_whose_worker_dies_goes_on_from_its_checkpoint(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        array = await cluster.submit_array("slow", 4, chunk_size=4)
        await cluster.advance(25)
        await array.chunks[0].crash()
        await cluster.run_until_idle()
    assert array.phase is ArrayPhase.SUCCEEDED
    assert items.runs == Counter(range(4))


async def test_chunks_leave_a_place_for_single_jobs(items: Items) -> None:
    async with FakeCluster(items.app, concurrency=4) as cluster:
        array = await cluster.submit_array("slow", 8, chunk_size=2)
        await cluster.run_until(lambda: len(array.chunks) == 4)
        job = await cluster.submit("single")
        await cluster.advance(1)
        running = [one for one in array.chunks if one.phase is Phase.RUNNING]
        assert (len(running), job.phase) == (3, Phase.SUCCEEDED)


async def test_items_that_wait_for_something_real_are_not_timed_out(items: Items) -> None:
    array = await run_array(items, "threaded", 10, timeout=1)
    assert (array.phase, array.succeeded) == (ArrayPhase.SUCCEEDED, 10)


async def test_items_that_are_done_already_are_not_run(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        manifest = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncArray",
            "metadata": {"name": "rest"},
            "spec": {"type": "note", "items": {"count": 9, "skip": "0-3,6"}, "chunkSize": 2},
        }
        await cluster.apply(manifest)
        await cluster.run_until_idle()
        array = cluster.array("rest")
        assert (array.phase, array.succeeded) == (ArrayPhase.SUCCEEDED, 9)
    assert set(items.runs) == {4, 5, 7, 8}


@pytest.mark.parametrize("options", [{}, {"memory_mib": 64}])
async def test_chunks_with_a_process_of_their_own_run_here(options: dict[str, Any]) -> None:
    app, runs = WorkerApp(), Counter[str]()

    @app.resource
    def width() -> int:
        return 7

    @app.item_handler("typed", concurrency=2, isolation="process", **options)
    async def typed(job: ItemContext, item: str, *, width: int) -> None:
        await asyncio.sleep(10)
        runs[item * width] += 1

    async with FakeCluster(app) as cluster:
        array = await cluster.submit_array("typed", ["a", 5, "c"], chunk_size=2)
        await cluster.advance(5)
        await array.chunks[0].crash()
        await cluster.run_until_idle()
        assert (array.phase, array.failed_items) == (ArrayPhase.FAILED, [1])
    assert runs == Counter({"a" * 7: 1, "c" * 7: 1})


async def test_an_item_that_waits_for_what_never_comes_is_an_error(items: Items) -> None:
    async with FakeCluster(items.app, patience=0.1) as cluster:
        await cluster.submit_array("gated", 2)
        with pytest.raises(StuckError):
            await cluster.run_until_idle()
        items.gate.set()
        await cluster.run_until_idle()
    assert items.runs == Counter(range(2))


async def test_what_clients_would_not_send_fails_the_array(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        spec = {"type": "note", "items": {"count": 1}, "payload": "x" * 70_000}
        await cluster.apply(manifest(spec))
        await cluster.run_until_idle()
        assert cluster.array("big").reason is ArrayReason.PAYLOAD_TOO_LARGE


def manifest(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncArray",
        "metadata": {"name": "big"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"items": {}}, "exactly one of count, inline and from"),
        ({"items": {"count": 1, "inline": [1]}}, "exactly one of count, inline and from"),
        ({"items": {"count": 0}}, "greater than or equal to 1"),
        ({"items": {"count": 1}, "maxFailed": 1, "maxFailedPercent": 1}, "exclude each other"),
        ({"items": {"count": 1}, "redrive": 1}, "cannot be set at creation"),
        ({"items": {"count": 1}, "chunks": 1}, 'unknown field "spec.chunks"'),
    ],
)
async def test_what_the_api_server_refuses_is_refused(
    items: Items, spec: dict[str, Any], words: str
) -> None:
    async with FakeCluster(items.app) as cluster:
        with pytest.raises(InvalidError, match=words):
            await cluster.apply(manifest({"type": "note", **spec}))
        assert not cluster.arrays


async def test_only_control_fields_are_changed(items: Items) -> None:
    spec = {"type": "note", "items": {"count": 1}}
    async with FakeCluster(items.app) as cluster:
        await cluster.apply(manifest(spec))
        for change, words in (
            ({"items": {"count": 2}}, "only suspend, cancel, redrive can be changed"),
            ({"redrive": 1}, "once it has failed"),
        ):
            with pytest.raises(InvalidError, match=words):
                await cluster.apply(manifest({**spec, **change}))
        await cluster.apply(manifest({**spec, "cancel": True}))
        with pytest.raises(InvalidError, match="cannot be reverted"):
            await cluster.apply(manifest(spec))


async def test_a_redrive_never_decreases(items: Items) -> None:
    items.bad = {0}
    async with FakeCluster(items.app) as cluster:
        array = await cluster.submit_array("note", 1)
        await cluster.run_until_idle()
        await array.redrive()
        await cluster.run_until_idle()
        with pytest.raises(InvalidError, match="must not decrease"):
            await cluster.apply({**array.manifest, "spec": {**child(array), "redrive": 0}})


def child(array: FakeArray) -> Any:
    return array.manifest["spec"]


async def test_files_of_items_are_not_faked(items: Items) -> None:
    spec = {"type": "note", "items": {"from": {"uri": "s3://bucket/a.jsonl"}}}
    async with FakeCluster(items.app) as cluster:
        with pytest.raises(NotFakedError, match="reads no files"):
            await cluster.apply(manifest(spec))


async def test_a_name_is_taken_once(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        first = await cluster.submit_array("note", 1, name="one")
        with pytest.raises(AlreadyExistsError):
            await cluster.submit_array("note", 1, name="one")
        with pytest.raises(ObjectNotFoundError):
            cluster.array("two")
        assert [array.name for array in cluster.arrays] == [first.name] == ["one"]
        assert isinstance(first.model, AsyncArray)
        assert repr(first) == "<FakeArray one: Pending, 0 of 1 items done, 0 failed>"


@pytest.mark.parametrize("given", ["abc", True, 2.5, b"x"])
async def test_items_are_a_number_or_a_list(items: Items, given: Any) -> None:
    async with FakeCluster(items.app) as cluster:
        with pytest.raises(TypeError, match="neither a number of items nor a list"):
            await cluster.submit_array("note", given)


async def test_an_unknown_option_is_refused(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        with pytest.raises(TypeError, match="an array has no chunks"):
            await cluster.submit_array("note", 1, chunks=1)


async def test_nobody_changes_a_chunk_that_is_deleted(items: Items) -> None:
    async with FakeCluster(items.app) as cluster:
        array = await cluster.submit_array("note", 1)
        await cluster.run_until(lambda: array.chunks)
        chunk = array.chunks[0]
        await cluster.run_until_idle()
        with pytest.raises(ObjectNotFoundError):
            await chunk.cancel()


async def test_a_failed_array_is_not_cancelled() -> None:
    app = WorkerApp()

    @app.item_handler("note")
    async def note(job: ItemContext, item: int) -> None:
        raise Fail("no")

    async with FakeCluster(app) as cluster:
        array = await cluster.submit_array("note", 2)
        await cluster.run_until_idle()
        assert array.phase is ArrayPhase.FAILED
        with pytest.raises(InvalidError, match="cancel-unended"):
            await array.cancel()
