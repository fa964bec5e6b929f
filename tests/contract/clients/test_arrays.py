"""Arrays: submitted, waited for, controlled and listed the same by every client."""

from collections.abc import Iterator

import pytest

from asyncjob.client import Jobs
from asyncjob.client.errors import (
    ArrayExistsError,
    ArrayFailedError,
    ArrayGoneError,
    ArrayNotFoundError,
    InvalidRequestError,
    InvalidSubmissionError,
    JobStateError,
    NotCancellableError,
    WaitTimeoutError,
)
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.names import array_path
from asyncjob.rest.arrays import ArrayInfo, ArraySelection, ArraySubmission
from contract.clients.full_stack import FullStack, ScenarioScope
from contract.clients.test_lists_and_queues import WITHIN, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

QUEUE = "items"


@pytest.fixture(scope="module")
def _worker(full_stack: FullStack) -> None:
    """Run item handlers; the other worker knows none."""
    options = (f"--queue={QUEUE}", "--concurrency=4")
    worker = full_stack.ns.worker("worker-items", *options, app="support.apps.items:app")
    full_stack.ns.until_log(worker, "worker started", within=60)


@pytest.fixture
def items(_worker: None, full_stack: FullStack) -> Iterator[FullStack]:
    yield full_stack
    for name in ("failing", "gate"):
        (full_stack.ns.folder / name).unlink(missing_ok=True)


def test_an_array_is_run_to_its_end(jobs: Jobs, scope: ScenarioScope, items: FullStack) -> None:
    name, seen = scope.name("all"), list[ArrayInfo]()
    done = jobs.submit_array("note", 120, name=name, queue=QUEUE, chunk_size=50)
    assert (done.name, done.created, done.phase) == (name, True, "Pending")
    array = jobs.wait_for_array(name, WITHIN, poll_seconds=0.2, on_change=seen.append)
    assert (array.phase, array.succeeded, array.failed) == (ArrayPhase.SUCCEEDED, 120, 0)
    assert (array.percent, array.open_chunks, array.finished) == (100, 0, True)
    assert seen[-1] == array
    assert array.completed_at
    assert array.spec
    assert array.spec.items.count == 120
    assert jobs.failed_items(name).items == ""
    with pytest.raises(NotCancellableError):
        jobs.cancel_array(name)
    with pytest.raises(JobStateError, match="only a failed array"):
        jobs.redrive_array(name)


def test_items_are_handed_over_and_failed_ones_run_again(
    jobs: Jobs, scope: ScenarioScope, items: FullStack
) -> None:
    name = scope.name("picky")
    failing = items.ns.folder / "failing"
    failing.write_text("30 50")
    jobs.submit_array(
        "picky", (10 * number for number in range(1, 6)), name=name, queue=QUEUE, chunk_size=2
    )
    with pytest.raises(ArrayFailedError, match="2 of 5 items failed, 3 are done") as caught:
        jobs.wait_for_array(name, WITHIN, raise_on_failure=True, poll_seconds=0.2)
    assert caught.value.array.reason == "ItemsFailed"
    failed = jobs.failed_items(name)
    assert (failed.failed, failed.items, list(failed.numbers)) == (2, "2,4", [2, 4])
    assert {one.message for one in failed.errors} == {"item 30 is wrong", "item 50 is wrong"}
    with pytest.raises(NotCancellableError, match="has failed: nothing of it runs; redrive it"):
        jobs.cancel_array(name)
    failing.write_text("50")
    asked = jobs.redrive_array(name)
    assert not asked.finished
    array = jobs.wait_for_array(name, WITHIN, poll_seconds=0.2)
    assert (array.phase, array.succeeded, array.failed) == (ArrayPhase.FAILED, 4, 1)
    failing.write_text("")
    jobs.redrive_array(name)
    assert jobs.wait_for_array(name, WITHIN, poll_seconds=0.2).phase is ArrayPhase.SUCCEEDED


def test_an_array_is_suspended_resumed_and_cancelled(jobs: Jobs, scope: ScenarioScope) -> None:
    name = scope.name("held")
    jobs.submit_array("note", 10, name=name, queue=scope.queue, chunk_size=10, suspend=True)
    assert jobs.array(name).suspended
    assert not jobs.resume_array(name).suspended
    until(lambda: jobs.array(name).open_chunks == 1)
    assert jobs.suspend_array(name).suspended
    until(lambda: jobs.array(name).reason == "Suspended")
    with pytest.raises(WaitTimeoutError, match="has not ended in time: it is Running"):
        jobs.wait_for_array(name, 0.5, poll_seconds=0.1)
    assert jobs.cancel_array(name).spec
    array = jobs.wait_for_array(name, WITHIN, poll_seconds=0.2)
    assert (array.phase, array.cancelling) == (ArrayPhase.CANCELLED, False)
    assert jobs.cancel_array(name).phase is ArrayPhase.CANCELLED


def test_the_same_submission_again_is_the_same_array(jobs: Jobs, scope: ScenarioScope) -> None:
    name = scope.name("once")
    wanted = ArraySubmission.model_validate(
        {"type": "note", "name": name, "queue": scope.queue, "items": {"count": 5}}
    )
    assert jobs.submit_array(wanted).created
    again = jobs.submit_array(wanted)
    assert (again.name, again.created) == (name, False)
    with pytest.raises(ArrayExistsError, match=f"another array is called {name}"):
        jobs.submit_array("note", 6, name=name, queue=scope.queue)
    unnamed = [jobs.submit_array("note", 5, queue=scope.queue).name for _ in range(2)]
    assert len({*unnamed, name}) == 3


def test_arrays_are_listed_newest_first_in_pages_and_by_filter(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    names = [scope.name(f"listed{number}") for number in range(3)]
    for name in names:
        jobs.submit_array("note", 5, name=name, queue=scope.queue, labels=scope.label)
    mine = ArraySelection(label=scope.selector)
    until(lambda: {one.name for one in jobs.arrays(mine)} == {*names})
    found = list[ArrayInfo]()
    for size in (1, 2, 200):
        found = list(jobs.arrays(mine, page_size=size))
        assert sorted(one.name for one in found) == names
        order = [(one.created_at, one.uid) for one in found]
        assert order == sorted(order, reverse=True)
    assert found[0].spec is None
    assert found[0].total == 5
    for matching in ({"type": "note"}, {"queue": scope.queue}, {"phase": ["Pending", "Running"]}):
        chosen = ArraySelection.model_validate({"label": scope.selector, **matching})
        assert len(list(jobs.arrays(chosen))) == 3
    for other in ({"type": "other"}, {"queue": "other"}, {"phase": ["Succeeded"]}):
        chosen = ArraySelection.model_validate({"label": scope.selector, **other})
        assert list(jobs.arrays(chosen)) == []
    with pytest.raises(InvalidRequestError):
        list(jobs.arrays(ArraySelection(label="a=b=c")))


def test_what_cannot_be_an_array_is_refused_with_the_field(jobs: Jobs) -> None:
    for field, items, options in (
        ("items.count", 0, {}),
        ("items.inline", [], {}),
        ("items.inline", ["x" * 300_000], {}),
        ("payload", 1, {"payload": "x" * 70_000}),
        ("chunkSize", 1, {"chunk_size": 0}),
        ("maxFailedPercent", 1, {"max_failed": 1, "max_failed_percent": 1}),
        ("labels.asyncjob.dev/mine", 1, {"labels": {"asyncjob.dev/mine": "x"}}),
        ("name", 1, {"name": "No Name"}),
        ("items", "abc", {}),
    ):
        with pytest.raises(InvalidSubmissionError) as caught:
            jobs.submit_array("note", items, **options)
        assert field in {one.field for one in caught.value.errors}, caught.value


def test_an_array_that_is_not_there_or_goes_is_told_apart(jobs: Jobs, scope: ScenarioScope) -> None:
    name = scope.name("gone")
    for ask in (
        jobs.array,
        jobs.failed_items,
        jobs.cancel_array,
        jobs.suspend_array,
        jobs.resume_array,
        jobs.redrive_array,
        jobs.wait_for_array,
    ):
        for missing in (name, "No Name"):
            with pytest.raises(ArrayNotFoundError):
                ask(missing)
    jobs.submit_array("note", 5, name=name, queue=scope.queue)

    def delete(_: ArrayInfo) -> None:
        api = scope.full_stack.ns.api
        api.delete(array_path(scope.full_stack.namespace, name))

    with pytest.raises(ArrayGoneError):
        jobs.wait_for_array(name, WITHIN, poll_seconds=0.5, on_change=delete)
