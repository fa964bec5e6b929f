"""Jobs that depend on arrays start once these have ended, and say until then what they wait for."""

import pytest

from asyncjob.names import array_path
from asyncjob_operator.core.options import DecisionOptions
from support.parts.operator_harness import OperatorHarness

THUMBS = {"array": "thumbs"}
ANY = {"array": "thumbs", "outcome": "Any"}
WAITS = "Pending WaitingForDependency waiting for "
GIVEN_UP = "DeadLetter DependencyFailed cannot start: "


@pytest.fixture
def harness() -> OperatorHarness:
    made = OperatorHarness(DecisionOptions(missing_dependency_timeout=60))
    made.list_arrays()
    return made


async def test_a_job_starts_once_the_array_that_it_names_has_succeeded(
    harness: OperatorHarness,
) -> None:
    harness.create("a", THUMBS)
    harness.create("thumbs")  # a job of that name is another thing
    harness.end("thumbs")
    await harness.settle()
    assert harness.state("a") == f"{WAITS}array thumbs (does not exist)"
    for phase in ("Pending", "Running"):
        harness.store_array("thumbs", phase)
        await harness.settle()
        assert harness.state("a") == f"{WAITS}array thumbs"
    harness.store_array("thumbs", "Succeeded")
    await harness.settle()
    assert harness.claimable() == ["a"]


async def test_what_has_failed_is_as_a_dead_letter_is(harness: OperatorHarness) -> None:
    harness.create("a", THUMBS)
    harness.create("tidy", ANY)
    harness.store_array("thumbs", "Running")
    await harness.settle()
    harness.store_array("thumbs", "Failed", reason="ItemsFailed")
    await harness.settle()
    assert harness.state("a") == f"{GIVEN_UP}array thumbs has failed (ItemsFailed)"
    assert harness.claimable() == ["tidy"]
    harness.store_array("thumbs", "Running", reason="Redriven")
    harness.change_spec("a", redrive=1)
    await harness.settle()
    assert harness.state("a") == f"{WAITS}array thumbs"
    harness.store_array("thumbs", "Succeeded")
    await harness.settle()
    assert harness.claimable() == ["a", "tidy"]


async def test_what_was_cancelled_fails_who_waits_for_it(harness: OperatorHarness) -> None:
    harness.store_array("thumbs", "Cancelled", reason="CancelRequested")
    harness.create("a", THUMBS)
    harness.create("tidy", ANY)
    await harness.settle()
    assert harness.state("a") == f"{GIVEN_UP}array thumbs was cancelled (CancelRequested)"
    assert harness.claimable() == ["tidy"]


async def test_a_failure_is_read_live_before_it_is_acted_on(harness: OperatorHarness) -> None:
    harness.store_array("thumbs", "Failed")
    harness.blind = True  # the news that it was redriven is late
    harness.store_array("thumbs", "Running")
    harness.blind = False
    harness.create("a", THUMBS)
    await harness.settle()
    assert harness.status("a")["phase"] != "DeadLetter"
    await harness.pass_time(5)
    assert harness.state("a") == f"{WAITS}array thumbs"


async def test_an_array_that_is_deleted_is_waited_for_as_long_as_one_that_never_was(
    harness: OperatorHarness,
) -> None:
    harness.store_array("thumbs", "Running")
    harness.create("a", THUMBS)
    harness.create("b", {"array": "nowhere"})
    await harness.settle()
    await harness.pass_time(30)
    harness.delete_array("thumbs")
    await harness.settle()
    assert harness.state("a") == f"{WAITS}array thumbs (does not exist)"
    await harness.pass_time(30)
    lost = "array nowhere does not exist; waited 60 s for arrays that do not exist"
    assert harness.state("b") == GIVEN_UP + lost
    assert harness.state("a") == f"{WAITS}array thumbs (does not exist)"
    await harness.pass_time(30)
    assert harness.status("a")["phase"] == "DeadLetter"


async def test_an_array_that_only_the_watch_does_not_know_is_not_missing(
    harness: OperatorHarness,
) -> None:
    harness.create("a", THUMBS)
    await harness.settle()
    harness.blind = True
    harness.store_array("thumbs", "Running")
    harness.blind = False
    await harness.pass_time(61)
    assert harness.status("a")["phase"] == "Pending"
    await harness.pass_time(5)
    assert harness.state("a") == f"{WAITS}array thumbs"


async def test_after_a_restart_nothing_is_said_to_be_missing_before_arrays_are_listed(
    harness: OperatorHarness,
) -> None:
    harness.create("a", THUMBS)
    harness.create("b", {"array": "nowhere"})
    harness.store_array("thumbs", "Running")
    await harness.settle()
    before = [harness.get(name)["metadata"]["resourceVersion"] for name in ("a", "b")]
    harness.restart()
    await harness.settle()
    assert harness.state("b") == f"{WAITS}array nowhere"
    await harness.pass_time(1000)
    assert harness.state("b") == f"{WAITS}array nowhere"
    harness.list_arrays()
    await harness.settle()
    assert harness.get("a")["metadata"]["resourceVersion"] == before[0]
    assert harness.state("b") == f"{WAITS}array nowhere (does not exist)"
    await harness.pass_time(60)
    assert harness.status("b")["phase"] == "DeadLetter"


async def test_late_news_of_an_array_of_the_same_name_starts_nobody(
    harness: OperatorHarness,
) -> None:
    harness.store_array("thumbs", "Succeeded")
    old = harness.get_array("thumbs")
    harness.delete_array("thumbs")
    harness.create("a", THUMBS)
    fresh = {**old, "metadata": {**old["metadata"], "uid": "uid-new"}, "status": {}}
    harness.arrays.on_update(harness.session.put(array_path("ns", "thumbs"), fresh))
    harness.arrays.on_update(old)
    await harness.settle()
    assert harness.state("a") == f"{WAITS}array thumbs"


async def test_who_waits_is_forgotten_once_it_has_started(harness: OperatorHarness) -> None:
    harness.create("a", THUMBS)
    relations = harness.caches.store.relations
    assert relations.dependents_on("AsyncArray") == ["uid-a"]
    harness.store_array("thumbs", "Succeeded")
    await harness.settle()
    harness.start("a")
    assert relations.dependents_on("AsyncArray") == []
    assert not relations._dependents._groups
