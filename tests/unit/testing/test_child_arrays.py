"""Arrays that a handler submits with `job.map`: run, waited for, and found again, in the kit."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from asyncjob import Fail, ItemContext, JobContext, WorkerApp
from asyncjob.app.errors import ChildFailedError, SubmitConflictError, SubmitRefusedError
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.testing import FakeCluster, Phase, Reason, run_handler

app = WorkerApp()


@app.item_handler("thumb")
async def thumb(_: ItemContext, item: Any) -> None:
    await asyncio.sleep(10)
    if item == "bad":
        raise Fail("not an image")


@app.handler("double")
async def double(_: JobContext, number: int) -> int:
    await asyncio.sleep(300)
    return 2 * number


@app.handler("album")
async def album(job: JobContext, rows: list[Any] | int) -> Any:
    array = await job.map("thumb", rows, chunk_size=1, parallelism=1, item_retries=0)
    view = await array.wait()
    return [view.phase, view.items.total, view.items.succeeded, view.items.failed_items]


@app.handler("album-sync")
def album_sync(job: JobContext, rows: list[Any] | int) -> Any:
    view = job.map("thumb", rows, chunk_size=1, item_retries=0).result().wait().result()
    return [view.phase, view.items.total, view.items.succeeded, view.items.failed_items]


@app.handler("both")
async def both(job: JobContext) -> Any:
    child = await job.submit("double", 4)
    array = await job.map("thumb", 3)
    one, many = await job.gather(child, array, check=True)
    return [one.result, many.items.succeeded, [seen.name == child.name for seen in [one, many]]]


@app.handler("strict")
async def strict(job: JobContext) -> None:
    array = await job.map("thumb", ["bad"], item_retries=0)
    await array.wait(check=True)


@app.handler("hurried")
async def hurried(job: JobContext) -> str:
    array = await job.map("thumb", 3, chunk_size=1, parallelism=1)
    try:
        await array.wait(timeout=15)
    except TimeoutError as error:
        return str(error).replace(array.name, "<array>")
    return "ended"


@app.handler("clashes")
async def clashes(job: JobContext) -> None:
    await job.map("thumb", 1, key="same")
    await job.map("thumb", 2, key="same")


ASKED: dict[str, Any] = {}


@app.handler("wrong")
async def wrong(job: JobContext) -> None:
    await job.map(**ASKED)


@pytest.mark.parametrize("type_", ["album", "album-sync"])
async def test_an_array_is_run_and_its_counts_come_back(type_: str) -> None:
    run = await run_handler(app, type_, ["a", "bad", "c"])
    assert run.result == [ArrayPhase.FAILED, 3, 2, "1"]


@pytest.mark.parametrize("type_", ["album", "album-sync"])
async def test_the_job_parks_for_its_array_and_goes_on_with_its_end(type_: str) -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(type_, 3)
        await cluster.run_until(lambda: job.status.waiting)
        assert (job.phase, job.reason) == (Phase.PENDING, Reason.WAITING_FOR_CHILDREN)
        [wait] = job.status.waiting or []
        [awaited] = wait.children or []
        [array] = cluster.arrays
        assert (awaited.name, awaited.kind) == (array.name, "AsyncArray")
        assert wait.key == f"array {array.name}"
        await cluster.run_until_idle()
        assert job.phase is Phase.SUCCEEDED
        assert job.result == ["Succeeded", 3, 3, ""]
        assert len(cluster.arrays) == 1


async def test_jobs_and_arrays_are_gathered_together() -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("both")
        await cluster.run_until_idle()
        assert job.result == [8, 3, [True, False]]
        assert job.status.parks == 1


async def test_an_array_has_the_queue_and_priority_of_its_job_and_an_end() -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("album", 2, queue="images", priority=7)
        await cluster.run_until_idle()
        [array] = cluster.arrays
        spec = array.model.spec
        assert (spec.queue, spec.priority) == ("images", 7)
        assert spec.ttl_seconds_after_finished == timedelta(days=7).total_seconds()
        assert array.model.metadata.labels == {"asyncjob.dev/parent": job.uid}


async def test_the_failure_of_an_array_is_that_of_a_job_if_it_is_checked() -> None:
    run = await run_handler(app, "strict")
    assert isinstance(run.error, ChildFailedError)
    assert str(run.error).startswith("array ")
    assert "ended as Failed" in str(run.error)


async def test_a_wait_for_an_array_has_its_limit() -> None:
    run = await run_handler(app, "hurried")
    assert run.result == "array <array> has not finished within 15 s"
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("hurried")
        await cluster.run_until_idle()
        assert job.result == "array <array> has not finished within 15 s"
        assert job.status.parks == 1


async def test_two_arrays_of_one_key_are_one_only_if_they_are_the_same() -> None:
    run = await run_handler(app, "clashes")
    assert isinstance(run.error, SubmitConflictError)
    assert "key 'same' was used by this job for a child with other content" in str(run.error)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"type_": "thumb", "items": []}, "items.inline"),
        ({"type_": "thumb", "items": 0}, "items.count"),
        ({"type_": "thumb", "items": ""}, "items.from.uri"),
        ({"type_": "no type", "items": 1}, "type"),
        ({"type_": "thumb", "items": [float("nan")]}, "the items"),
        ({"type_": "thumb", "items": ["x" * 300_000]}, "put the items into a file"),
        ({"type_": "thumb", "items": 1, "payload": "x" * 70_000}, "let the items say where"),
        ({"type_": "thumb", "items": 1, "chunk_size": 0}, "chunkSize"),
        (
            {"type_": "thumb", "items": 1, "max_failed": 1, "max_failed_percent": 1},
            "give maxFailed or maxFailedPercent, not both",
        ),
    ],
)
async def test_what_cannot_be_an_array_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], complaint: str
) -> None:
    for name, value in options.items():
        monkeypatch.setitem(ASKED, name, value)
    run = await run_handler(app, "wrong")
    assert isinstance(run.error, SubmitRefusedError)
    assert complaint in str(run.error)
