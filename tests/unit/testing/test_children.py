"""Child jobs of a handler under test: seen, run, waited for on the fake clock."""

import asyncio
from typing import Any

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app.errors import SubmitConflictError, SubmitRefusedError
from asyncjob.testing import FakeCluster, Phase, Reason, run_handler

app = WorkerApp()


@app.handler("double")
async def double(job: JobContext, payload: int) -> int:
    await asyncio.sleep(100)
    return 2 * payload


@app.handler("sums")
async def sums(job: JobContext, payload: list[int]) -> Any:
    children = [await job.submit("double", each) for each in payload]
    seen = [await child.wait(check=True) for child in children]
    assert {child.name for child in seen} == {child.name for child in await job.children()}
    return sum(child.result for child in seen if isinstance(child.result, int))


@app.handler("sums-sync")
def sums_sync(job: JobContext, payload: list[int]) -> Any:
    children = [job.submit("double", each).result() for each in payload]
    return [child.wait().result().result for child in children]


@app.handler("submits")
async def submits(job: JobContext, payload: dict[str, Any]) -> None:
    job.submit("unknown", **payload)


@app.handler("waits")
async def waits(job: JobContext, payload: float | None) -> str:
    child = await job.submit("unknown", key="one")
    await job.progress(50)
    try:
        await child.wait(payload)
    except TimeoutError as error:
        return str(error).replace(child.name, "<child>")
    return "finished"


@app.handler("clashes")
async def clashes(job: JobContext) -> None:
    await job.submit("unknown", 1, key="same")
    await job.submit("unknown", 2, key="same")


@pytest.mark.parametrize(("type_", "result"), [("sums", 6), ("sums-sync", [2, 4])])
async def test_children_run_and_their_results_come_back(type_: str, result: Any) -> None:
    run = await run_handler(app, type_, [1, 2], queue="own", priority=3)
    assert run.result == result
    assert [child.phase for child in run.children] == [Phase.SUCCEEDED] * 2
    spec = run.children[0].model.spec
    assert (spec.queue, spec.priority) == ("own", 3)
    assert run.clock.elapsed == 100


async def test_what_is_submitted_and_not_waited_for_is_there_at_the_end() -> None:
    run = await run_handler(app, "submits", {"payload": [1], "not_before": "2027-01-01T00:00:00Z"})
    (child,) = run.children
    assert (run.outcome.phase, child.model.spec.payload) == (Phase.SUCCEEDED, [1])
    assert child.model.spec.not_before == "2027-01-01T00:00:00Z"


async def test_waiting_has_its_time_limit_on_the_fake_clock() -> None:
    run = await run_handler(app, "waits", 30)
    assert run.result == "child <child> has not finished within 30.0 s"
    assert run.clock.elapsed == 30


async def test_a_cancelled_parent_stops_waiting_and_leaves_its_child_alone() -> None:
    async with run_handler(app, "waits", None) as run:
        await run.until(lambda: run.progress)
        await run.cancel()
    assert run.outcome.reason is Reason.CANCEL_REQUESTED
    assert [child.phase for child in run.children] == [Phase.QUEUED]


async def test_an_attempt_after_a_crash_finds_the_children_of_the_one_before() -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("sums", [1, 2])
        await cluster.run_until(lambda: len(job.children) == 2)
        await job.crash()
        await cluster.run_until_idle()
        assert (job.result, len(job.children), job.attempt) == (6, 2, 2)


async def test_submissions_that_cannot_be_right_fail_as_on_a_worker() -> None:
    clash = await run_handler(app, "clashes")
    assert isinstance(clash.error, SubmitConflictError)
    bad = await run_handler(app, "submits", {"priority": 5000})
    assert isinstance(bad.error, SubmitRefusedError)
