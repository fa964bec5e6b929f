"""What jobs and arrays of the fake cluster depend on; contract tests compare it with real ones."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from asyncjob import Fail, ItemContext, JobContext, WorkerApp
from asyncjob.errors import InvalidError
from asyncjob.models.job import Dependency
from asyncjob.testing import ArrayPhase, ArrayReason, FakeCluster, Phase


class Row:
    """An app, and in which order its handlers have run."""

    def __init__(self) -> None:
        self.app, self.order = WorkerApp(), list[str]()
        self.is_failing = False

        @self.app.handler("note")
        async def note(job: JobContext) -> None:
            if self.is_failing:
                raise Fail("no")
            self.order.append(job.name)

        @self.app.item_handler("item")
        async def item(_: ItemContext, number: int) -> None:
            self.order.append(f"item {number}")

        @self.app.handler("parent")
        async def parent(job: JobContext) -> None:
            await job.submit("note", name="child")


@pytest.fixture
def row() -> Row:
    return Row()


@pytest.fixture
async def cluster(row: Row) -> AsyncIterator[FakeCluster]:
    async with FakeCluster(row.app) as running:
        yield running


async def test_each_starts_after_what_it_depends_on(row: Row, cluster: FakeCluster) -> None:
    needs = [Dependency(array="middle")]
    last = await cluster.submit("note", name="last", depends_on=needs)
    await cluster.run_until_idle()
    assert last.message == "waiting for array middle (does not exist)"
    middle = await cluster.submit_array("item", 2, name="middle", depends_on=["first"])
    await cluster.run_until_idle()
    assert last.message == "waiting for array middle"
    assert (middle.phase, middle.reason) == (
        ArrayPhase.PENDING,
        ArrayReason.WAITING_FOR_DEPENDENCY,
    )
    assert middle.message == "waiting for first (does not exist)"
    await cluster.submit("note", name="first")
    await cluster.run_until_idle()
    assert row.order == ["first", "item 0", "item 1", "last"]
    assert middle.status.admitted


async def test_an_array_starts_at_its_time_and_no_sooner(cluster: FakeCluster) -> None:
    at = cluster.clock.now + timedelta(seconds=60)
    array = await cluster.submit_array("item", 1, not_before=at)
    await cluster.advance(59)
    assert (array.reason, array.chunks) == (ArrayReason.NOT_BEFORE, [])
    await cluster.advance(1)
    assert array.phase is ArrayPhase.SUCCEEDED


async def test_until_its_time_an_array_asks_nothing_of_what_it_depends_on(
    row: Row, cluster: FakeCluster
) -> None:
    row.is_failing = True
    at = cluster.clock.now + timedelta(seconds=60)
    array = await cluster.submit_array("item", 1, depends_on=["first"], not_before=at)
    await cluster.submit("note", name="first")
    await cluster.advance(59)
    assert array.reason == "NotBefore"
    await cluster.advance(1)
    assert array.reason is ArrayReason.DEPENDENCY_FAILED


async def test_what_cannot_start_fails_and_waits_again_once_it_is_redriven(
    row: Row, cluster: FakeCluster
) -> None:
    row.is_failing = True
    first = await cluster.submit("note", name="first")
    array = await cluster.submit_array("item", 1, name="array", depends_on=["first"])
    last = await cluster.submit("note", name="last", depends_on=[{"array": "array"}])
    await cluster.run_until(lambda: last.phase is Phase.DEAD_LETTER)
    assert (array.phase, array.reason) == (ArrayPhase.FAILED, ArrayReason.DEPENDENCY_FAILED)
    assert array.message == "cannot start: first is a dead letter (NotRetryable)"
    assert last.message == "cannot start: array array has failed (DependencyFailed)"
    row.is_failing = False
    await first.redrive()
    await array.redrive()
    await cluster.run_until(lambda: array.phase is not ArrayPhase.FAILED)
    assert array.phase is ArrayPhase.PENDING
    await last.redrive()
    await cluster.run_until_idle()
    assert row.order == ["first", "item 0", "last"]


async def test_what_takes_any_end_starts_after_a_failure(row: Row, cluster: FakeCluster) -> None:
    array = await cluster.submit_array("item", 1, name="array", suspend=True)
    any_end = {"array": "array", "outcome": "Any"}
    tidy = await cluster.submit("note", name="tidy", depends_on=[any_end])
    strict = await cluster.submit("note", name="strict", depends_on=[{"array": "array"}])
    await cluster.run_until_idle()
    await array.cancel()
    await cluster.run_until_idle()
    assert (tidy.phase, strict.phase) == (Phase.SUCCEEDED, Phase.DEAD_LETTER)
    assert strict.message == "cannot start: array array was cancelled (CancelRequested)"


async def test_children_of_a_job_are_waited_for(row: Row, cluster: FakeCluster) -> None:
    needs = [Dependency(name="parent", children=True)]
    await cluster.submit("note", name="last", depends_on=needs)
    await cluster.submit("parent", name="parent")
    await cluster.run_until_idle()
    assert row.order == ["child", "last"]


async def test_an_array_that_waits_can_be_suspended_and_cancelled(cluster: FakeCluster) -> None:
    array = await cluster.submit_array("item", 1, depends_on=["first"])
    await cluster.run_until_idle()
    await array.suspend()
    await cluster.submit("note", name="first")
    await cluster.run_until_idle()
    assert (array.reason, array.chunks) == (ArrayReason.SUSPENDED, [])
    await array.cancel()
    await cluster.run_until_idle()
    assert array.phase is ArrayPhase.CANCELLED


async def test_what_depends_on_itself_is_refused(cluster: FakeCluster) -> None:
    with pytest.raises(InvalidError, match=r"spec\.depends-on-others"):
        await cluster.submit("note", name="a", depends_on=["a"])
    with pytest.raises(InvalidError, match=r"array\.depends-on-others"):
        await cluster.submit_array("item", 1, name="a", depends_on=[{"array": "a"}])
