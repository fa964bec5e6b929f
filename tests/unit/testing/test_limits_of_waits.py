"""Limits of waits are timedeltas or seconds, whatever is waited for; anything else is told."""

from datetime import timedelta
from typing import Any

import pytest

from asyncjob import JobContext, SignalTimeout, StepError, WorkerApp
from asyncjob.testing import FakeCluster, run_handler

app = WorkerApp()
ASKED: dict[str, Any] = {}


@app.handler("idle")
async def idle(job: JobContext) -> None:
    await job.sleep("long", days=1)


@app.handler("signal")
async def signal(job: JobContext) -> str:
    try:
        await job.signal("go", timeout=ASKED["limit"])
    except SignalTimeout:
        return "late"
    return "come"


@app.handler("wait")
async def wait(job: JobContext) -> str:
    child = await job.submit("idle")
    try:
        await child.wait(timeout=ASKED["limit"])
    except TimeoutError:
        return "late"
    return "over"


@app.handler("gather")
async def gather(job: JobContext) -> str:
    child = await job.submit("idle")
    try:
        await job.gather(child, timeout=ASKED["limit"])
    except TimeoutError:
        return "late"
    return "over"


KINDS = ["signal", "wait", "gather"]


@pytest.mark.parametrize("type_", KINDS)
@pytest.mark.parametrize("limit", [60, 60.0, timedelta(minutes=1)])
async def test_a_limit_is_a_timedelta_or_seconds(
    monkeypatch: pytest.MonkeyPatch, type_: str, limit: Any
) -> None:
    monkeypatch.setitem(ASKED, "limit", limit)
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(type_)
        await cluster.run_until(lambda: job.phase.value == "Succeeded")
        assert (job.result, job.status.parks) == ("late", 1)
        assert 60 <= cluster.clock.elapsed < 62


@pytest.mark.parametrize("type_", KINDS)
@pytest.mark.parametrize(
    ("limit", "words"),
    [("5", "'5' is neither a timedelta nor seconds"), (-1, "-1.0 s is not between 0 and")],
)
async def test_what_is_no_limit_is_told(
    monkeypatch: pytest.MonkeyPatch, type_: str, limit: Any, words: str
) -> None:
    monkeypatch.setitem(ASKED, "limit", limit)
    run = await run_handler(app, type_)
    assert isinstance(run.error, StepError)
    assert words in str(run.error)
