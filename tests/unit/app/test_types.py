"""The API as type checkers see it: an ignore that is not needed fails `make lint`."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, assert_type

from asyncjob import Child, Event, JobContext, JobEnded, JobEvent, WorkerApp, WorkerEvent
from asyncjob.app import ChildSubmission, ChildView, JobInfo, JobParent, Resources, open_resources

app = WorkerApp()


@app.handler("typed")
async def typed(job: JobContext, payload: int, *, text: str) -> str:
    return text * payload


async def children(job: JobContext) -> Sequence[ChildView]:
    submission = job.submit("typed", 1, key="k")
    assert_type(submission, ChildSubmission)
    child = await submission
    assert_type(child, Child)
    assert_type(await child.wait(1.0, check=True), ChildView)
    assert_type(child.wait().result(), ChildView)
    assert_type(submission.result(), Child)
    assert_type(job.parent, JobParent | None)
    return await job.children()


@app.handler("resumes")
async def resumes(job: JobContext, payload: list[str]) -> int:
    start: int = job.last_checkpoint or 0
    return len(payload[start:])


@app.on(Event.SUCCEEDED, Event.RELEASED)
def ended(event: JobEnded, *, text: str) -> None: ...


@app.on(Event.CLAIMED, Event.SUCCEEDED)
async def either(event: JobEvent) -> None: ...


@app.on(Event.WORKER_STARTED)
def of_worker(event: WorkerEvent) -> None: ...


@app.on(Event.CLAIMED)  # type: ignore[type-var]  # a claim is no end
def too_early(event: JobEnded) -> None: ...


@app.on(Event.WORKER_STOPPING)  # type: ignore[type-var]  # a worker is no job
def no_job(event: JobEvent) -> None: ...


class FakeSubmitter:
    """Takes the orders of a test."""

    def submit(self, order: Any) -> Future[Any]:
        return self._filled(order.name)

    def wait(self, child: Any, timeout: float | None) -> Future[Any]:  # noqa: ARG002  # the seam
        return self._filled(timeout)

    def list(self) -> Future[Any]:
        return self._filled([])

    def stop(self) -> None: ...

    def _filled(self, value: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(value)
        return future


async def test_handlers_stay_callable_as_they_are_written() -> None:
    job = JobContext(JobInfo("ns", "n", "u", "t", "q", 1), _sink(), remaining=lambda: 1.0)
    assert_type(await typed(job, 2, text="ab"), str)
    assert await typed(job, 2, text="ab") == "abab"


async def test_resources_have_their_declared_types() -> None:
    async with open_resources(app, overrides={str: "text"}) as resources:
        assert_type(resources, Resources)
        assert_type(resources.get(str), str)
        assert resources.get(str) == "text"


def test_anybody_may_stand_in_for_what_submits() -> None:
    info = JobInfo("ns", "n", "u", "t", "q", 1)
    job = JobContext(info, _sink(), remaining=lambda: 1.0, children=FakeSubmitter())
    submission = job.submit("typed", 1, name="given")
    assert submission.name == "given"
    assert isinstance(submission.result(), Child)
    assert list(asyncio.run(_listed(job))) == []


async def _listed(job: JobContext) -> Sequence[ChildView]:
    return await job.children()


def _sink() -> Any:
    return None
