"""Jobs that depend on the children of another, and cancels that go down to children."""

from typing import Any

import pytest

from support.objects.snapshots import raw
from support.parts.operator_harness import OperatorHarness

ANY = {"outcome": "Any"}
GIVEN_UP = "DeadLetter DependencyFailed cannot start: "


@pytest.fixture
def harness() -> OperatorHarness:
    return OperatorHarness()


async def test_children_that_are_waited_for_hold_the_job_back_and_then_let_it_through(
    harness: OperatorHarness,
) -> None:
    harness.create("p")
    harness.create("sum", {"name": "p", "children": True})
    harness.start("p")
    harness.create("c1", parent="p")
    harness.create("c2", parent="p")
    harness.end("p")
    await harness.settle()
    assert harness.state("sum").endswith("waiting for children of p")
    harness.end("c1")
    harness.end("c2")
    await harness.settle()
    assert harness.claimable() == ["sum"]


async def test_a_child_that_fails_counts_unless_any_end_does(harness: OperatorHarness) -> None:
    harness.create("p")
    harness.create("strict", {"name": "p", "children": True})
    harness.create("lax", {"name": "p", "children": True, **ANY})
    harness.start("p")
    harness.create("c1", parent="p")
    harness.create("c2", parent="p")
    await harness.settle()
    harness.end("c1", "DeadLetter", "NotRetryable")
    await harness.settle()
    assert harness.state("strict") == f"{GIVEN_UP}c1 is a dead letter (NotRetryable)"
    assert harness.state("lax").endswith("waiting for p")
    harness.end("c2")
    harness.end("p")
    await harness.settle()
    assert harness.claimable() == ["lax"]


@pytest.mark.parametrize("phase", ["Queued", "DeadLetter"])
async def test_a_child_not_seen_yet_is_found_by_a_live_list(
    harness: OperatorHarness, phase: str
) -> None:
    harness.create("p")
    harness.create("sum", {"name": "p", "children": True})
    await harness.settle()
    harness.start("p")
    harness.blind = True
    harness.create("c", parent="p")
    if phase != "Queued":
        harness.end("c", phase, "NotRetryable")
    harness.blind = False
    harness.end("p")
    await harness.settle()
    await harness.pass_time(61)
    assert harness.claimable() == (["c"] if phase == "Queued" else [])
    assert ("sum" in harness.claimable()) is False
    assert harness.status("sum")["phase"] == ("Pending" if phase == "Queued" else "DeadLetter")


async def test_a_cancel_that_cascades_takes_along_children_and_those_who_wait(
    harness: OperatorHarness,
) -> None:
    harness.create("p", cancelCascade=True)
    harness.start("p")
    harness.create("child", parent="p")
    harness.create("running", parent="p")
    harness.start("running")
    harness.create("grandchild", parent="child")
    harness.create("next", "p")
    harness.create("after-next", "next")
    harness.create("cleanup", {"name": "p", **ANY})
    harness.create("stranger")
    await harness.settle()
    harness.change_spec("p", cancel=True)
    await harness.settle()
    for name in ("child", "grandchild", "next", "after-next"):
        assert harness.state(name).startswith("Cancelled CancelRequested"), name
    assert harness.state("grandchild").endswith("cancelled by spec.cancel, with child")
    assert harness.get("running")["spec"]["cancel"] is True
    assert harness.status("running")["phase"] == "Running"
    harness.end("p", "Cancelled", "CancelRequested")
    await harness.settle()
    assert harness.claimable() == ["cleanup", "stranger"]


async def test_a_child_that_comes_late_concerns_nobody_who_was_let_through(
    harness: OperatorHarness,
) -> None:
    harness.create("p")
    harness.create("sum", {"name": "p", "children": True})
    harness.end("p")
    await harness.settle()
    harness.create("late", parent="p", cancel=True, cancelCascade=True)
    await harness.settle()
    assert harness.claimable() == ["sum"]


async def test_a_cancel_that_does_not_cascade_leaves_children_alone(
    harness: OperatorHarness,
) -> None:
    harness.create("p")
    harness.create("child", parent="p")
    harness.change_spec("p", cancel=True)
    await harness.settle()
    assert harness.status("p")["phase"] == "Cancelled"
    assert harness.claimable() == ["child"]
    harness.change_spec("p", cancelCascade=True)
    await harness.settle()
    assert harness.status("child")["phase"] == "Cancelled"


async def test_a_job_that_comes_after_the_cascade_goes_with_it_too(
    harness: OperatorHarness,
) -> None:
    harness.create("p", cancel=True, cancelCascade=True)
    await harness.settle()
    harness.create("late", parent="p")
    harness.create("next", "p")
    await harness.settle()
    assert {harness.status(name)["phase"] for name in ("late", "next")} == {"Cancelled"}


async def test_a_parent_in_another_namespace_is_none(harness: OperatorHarness) -> None:
    elsewhere: Any = raw("p", spec={"cancel": True, "cancelCascade": True})
    elsewhere["metadata"]["namespace"] = "elsewhere"
    harness.observer.on_update(elsewhere, just_changed=True)
    harness.create("child", parent="p")
    child = harness.caches.store.get("uid-child")
    assert child
    assert harness.caches.dependency_graph.dependencies(child).parent is None


async def test_success_in_spite_of_a_cancel_takes_nobody_along(harness: OperatorHarness) -> None:
    harness.create("p")
    harness.end("p")
    harness.blind = True
    harness.change_spec("p", cancel=True, cancelCascade=True)
    harness.blind = False
    harness.restart()
    harness.create("child", parent="p")
    harness.create("next", "p")
    await harness.settle()
    assert harness.claimable() == ["child", "next"]


async def test_that_a_job_cascades_is_confirmed_by_a_live_read(harness: OperatorHarness) -> None:
    harness.create("p", cancel=True, cancelCascade=True)
    await harness.settle()
    harness.blind = True
    harness.change_spec("p", cancelCascade=False)
    harness.blind = False
    harness.create("child", parent="p")
    await harness.settle()
    await harness.pass_time(61)
    assert harness.claimable() == ["child"]
