"""Arrays that wait: for a time, for jobs, and for one another. No chunk is created before."""

from typing import Any

import pytest

from asyncjob_operator.core.options import DecisionOptions
from support.objects.snapshots import stamp
from support.parts.operator_harness import OperatorHarness

CHILDREN = {"name": "fetch", "children": True}
WAITS = "Pending WaitingForDependency waiting for "
FAILED = "Failed DependencyFailed cannot start: "
THUMBS = "uid-thumbs"


@pytest.fixture
def harness() -> OperatorHarness:
    made = OperatorHarness(DecisionOptions(missing_dependency_timeout=60))
    made.list_arrays()
    return made


def status(harness: OperatorHarness, name: str = "thumbs") -> dict[str, Any]:
    found: dict[str, Any] = harness.get_array(name)["status"]
    return found


async def test_an_array_waits_for_a_job_and_starts_with_the_write_that_admits_it(
    harness: OperatorHarness,
) -> None:
    harness.create_array("thumbs", "fetch")
    await harness.settle()
    assert harness.array_state("thumbs") == f"{WAITS}fetch (does not exist)"
    harness.create("fetch")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"{WAITS}fetch"
    assert (harness.chunks(), status(harness).get("admitted")) == ([], None)
    harness.end("fetch")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == "Running"
    assert status(harness)["admitted"] is True
    assert len(harness.chunks()) == 1
    assert not harness.caches.dependency_graph._waiting_arrays._arrays
    assert not harness.caches.dependency_graph._waiting_arrays._dependents._groups


async def test_no_index_job_is_created_before(harness: OperatorHarness) -> None:
    harness.create_array("thumbs", "fetch")
    harness.ask_array("thumbs", items={"from": {"uri": "s3://a/b.csv"}})
    harness.create("fetch")
    await harness.pass_time(1)
    assert harness.chunks() == []
    harness.end("fetch")
    await harness.pass_time(1)
    assert len(harness.chunks()) == 1
    assert status(harness)["open"][0]["items"] == ""


async def test_an_array_starts_at_its_time(harness: OperatorHarness) -> None:
    harness.create_array("thumbs", notBefore=stamp(30))
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"Pending NotBefore starts at {stamp(30)}"
    await harness.pass_time(28)
    assert harness.chunks() == []
    await harness.pass_time(2)
    assert harness.array_state("thumbs") == "Running"


async def test_until_its_time_nothing_is_asked_of_what_an_array_depends_on(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.create_array("thumbs", "fetch", notBefore=stamp(300))
    harness.create_array("lost", "nowhere", notBefore=stamp(300))
    harness.end("fetch", "DeadLetter", "RetriesExhausted")
    await harness.pass_time(200)
    assert status(harness)["reason"] == status(harness, "lost")["reason"] == "NotBefore"
    harness.change_spec("fetch", redrive=1)
    await harness.pass_time(101)
    assert harness.array_state("thumbs") == f"{WAITS}fetch"
    assert harness.array_state("lost") == f"{WAITS}nowhere (does not exist)"
    await harness.pass_time(59)
    assert status(harness, "lost")["phase"] == "Pending"
    await harness.pass_time(2)
    assert status(harness, "lost")["reason"] == "DependencyFailed"


async def test_a_name_may_be_that_of_a_job_and_of_an_array(harness: OperatorHarness) -> None:
    harness.create("fetch")
    harness.store_array("fetch", "Succeeded")
    harness.create("resize")
    harness.store_array("resize", "Running")
    harness.create_array("thumbs", "fetch")
    harness.create_array("other", {"array": "resize"})
    harness.create_array("both", "fetch", {"array": "fetch"})
    harness.end("resize")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == harness.array_state("both") == f"{WAITS}fetch"
    assert harness.array_state("other") == f"{WAITS}array resize"
    harness.end("fetch")
    harness.store_array("resize", "Succeeded")
    await harness.pass_time(1)
    assert [harness.array_state(name) for name in ("thumbs", "other", "both")] == ["Running"] * 3


async def test_an_array_waits_for_an_array(harness: OperatorHarness) -> None:
    harness.create_array("thumbs", {"array": "fetch"})
    harness.store_array("fetch", "Running")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"{WAITS}array fetch"
    harness.store_array("fetch", "Succeeded")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == "Running"


async def test_a_failed_dependency_fails_an_array_which_waits_again_once_it_is_redriven(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.create_array("thumbs", "fetch", ttlSecondsAfterFinished=10_000)
    harness.create_array("tidy", {"name": "fetch", "outcome": "Any"})
    await harness.pass_time(1)
    harness.end("fetch", "DeadLetter", "RetriesExhausted")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"{FAILED}fetch is a dead letter (RetriesExhausted)"
    assert (status(harness)["next"], harness.array_state("tidy")) == (0, "Running")
    harness.change_spec("fetch", redrive=1)
    harness.ask_array("thumbs", redrive=1)
    await harness.pass_time(1)
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"{WAITS}fetch"
    assert status(harness).get("redrives", 0) == 1
    assert "completionTime" not in status(harness)
    harness.end("fetch")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == "Running"


async def test_an_array_that_is_redriven_before_what_it_depends_on_fails_once_more(
    harness: OperatorHarness,
) -> None:
    harness.store_array("fetch", "Failed", reason="ItemsFailed")
    harness.create_array("thumbs", {"array": "fetch"})
    await harness.pass_time(1)
    harness.ask_array("thumbs", redrive=1)
    await harness.pass_time(1)
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"{FAILED}array fetch has failed (ItemsFailed)"
    assert status(harness).get("redrives", 0) == 1
    harness.store_array("fetch", "Succeeded")
    harness.ask_array("thumbs", redrive=2)
    await harness.pass_time(1)
    await harness.pass_time(1)
    assert harness.array_state("thumbs").startswith("Running Redriven")


async def test_a_failed_dependency_fails_an_array_that_is_suspended(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.create_array("thumbs", "fetch", suspend=True)
    await harness.pass_time(1)
    harness.end("fetch", "Cancelled", "CancelRequested")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"{FAILED}fetch was cancelled (CancelRequested)"


async def test_a_job_that_is_deleted_is_waited_for_as_one_that_never_was(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.create_array("thumbs", "fetch")
    await harness.pass_time(1)
    harness.delete("fetch")
    await harness.pass_time(1)
    await harness.pass_time(58)
    assert harness.array_state("thumbs") == f"{WAITS}fetch (does not exist)"
    await harness.pass_time(2)
    assert status(harness)["reason"] == "DependencyFailed"


async def test_what_never_comes_fails_an_array_but_not_while_it_is_suspended(
    harness: OperatorHarness,
) -> None:
    harness.create_array("thumbs", "fetch", suspend=True)
    await harness.pass_time(100)
    assert status(harness)["reason"] == "Suspended"
    harness.ask_array("thumbs", suspend=False)
    await harness.pass_time(59)
    assert harness.array_state("thumbs") == f"{WAITS}fetch (does not exist)"
    await harness.pass_time(2)
    assert harness.array_state("thumbs") == (
        f"{FAILED}fetch does not exist; waited 60 s for jobs that do not exist"
    )


async def test_it_can_be_cancelled_and_suspended_while_it_waits(harness: OperatorHarness) -> None:
    harness.create("fetch")
    for name in ("thumbs", "other"):
        harness.create_array(name, "fetch")
    await harness.pass_time(1)
    harness.ask_array("thumbs", cancel=True)
    harness.ask_array("other", suspend=True)
    await harness.pass_time(1)
    assert status(harness)["phase"] == "Cancelled"
    harness.end("fetch")
    await harness.pass_time(1)
    assert status(harness, "other")["reason"] == "Suspended"
    harness.ask_array("other", suspend=False)
    await harness.pass_time(1)
    assert harness.array_state("other") == "Running"
    assert len(harness.chunks()) == 1


async def test_a_cancel_that_cascades_cancels_the_arrays_that_wait(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.create_array("thumbs", "fetch")
    harness.create_array("tidy", {"name": "fetch", "outcome": "Any"})
    await harness.pass_time(1)
    harness.change_spec("fetch", cancel=True, cancelCascade=True)
    await harness.settle()
    await harness.pass_time(1)
    assert status(harness)["phase"] == "Cancelled"
    assert harness.array_state("tidy") == "Running"


async def test_children_are_waited_for_and_listed_before_it_starts(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.create("part", parent="fetch")
    harness.create_array("thumbs", CHILDREN)
    harness.end("fetch")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == f"{WAITS}children of fetch"
    harness.blind = True  # a child is created before the end of the last one that is known
    harness.create("late", parent="fetch")
    harness.blind = False
    harness.end("part")
    await harness.pass_time(1)
    await harness.pass_time(5)
    assert harness.array_state("thumbs") == f"{WAITS}children of fetch"
    harness.end("late")
    await harness.pass_time(5)
    assert harness.array_state("thumbs") == "Running"


@pytest.mark.parametrize("order", ["abc", "cba", "bac"])
async def test_jobs_and_arrays_that_wait_for_one_another_are_given_up(
    harness: OperatorHarness, order: str
) -> None:
    for name in order:
        if name == "b":
            harness.create_array("b", "c")
        else:
            harness.create(name, {"array": "b"} if name == "a" else "a")
    await harness.pass_time(1)
    await harness.pass_time(1)
    words = "cannot start: jobs wait for one another: "
    ways = {"a": "a → array b → c → a", "c": "c → a → array b → c"}
    for name, way in ways.items():
        assert harness.state(name) == f"DeadLetter DependencyFailed {words}{way}"
    assert harness.array_state("b") == f"Failed DependencyFailed {words}array b → c → a → array b"


async def test_an_array_that_waits_for_itself_is_given_up(harness: OperatorHarness) -> None:
    harness.create_array("thumbs", {"array": "thumbs"})  # past the rule that refuses it
    await harness.pass_time(1)
    words = "jobs wait for one another: array thumbs → array thumbs"
    assert harness.array_state("thumbs") == f"{FAILED}{words}"


async def test_a_job_and_an_array_are_kept_while_an_array_waits_for_them(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.store_array("first", "Running")
    harness.create_array("thumbs", "fetch", {"array": "first"})
    await harness.pass_time(1)
    harness.end("fetch")
    found = harness.caches.store.find("uid-fetch")
    assert found is not None
    graph, first = harness.caches.dependency_graph, harness.arrays.locate("ns/uid-first")
    assert first is not None
    assert (graph.is_needed(found), graph.is_array_needed(first)) == (True, True)
    harness.store_array("first", "Succeeded")
    await harness.pass_time(1)
    assert (graph.is_needed(found), graph.is_array_needed(first)) == (False, False)


async def test_an_array_that_is_deleted_waits_no_more(harness: OperatorHarness) -> None:
    harness.create_array("thumbs", "fetch")
    harness.delete_array("thumbs")
    waiting = harness.caches.dependency_graph._waiting_arrays
    assert (waiting._arrays, waiting._dependents._groups) == ({}, {})


async def test_an_operator_that_starts_goes_on_where_the_last_one_was(
    harness: OperatorHarness,
) -> None:
    harness.create("fetch")
    harness.create_array("thumbs", "fetch")
    await harness.pass_time(1)
    version = harness.get_array("thumbs")["metadata"]["resourceVersion"]
    harness.restart()
    harness.list_arrays()
    await harness.settle()
    assert harness.get_array("thumbs")["metadata"]["resourceVersion"] == version
    harness.end("fetch")
    await harness.pass_time(1)
    assert harness.array_state("thumbs") == "Running"


def test_waiting_is_not_idle(harness: OperatorHarness) -> None:
    harness.create_array("thumbs", "fetch")
    harness.now += 1000
    [stats] = harness.arrays.stats(lambda _namespace, _queue: False)
    assert stats.idle_seconds == 0
