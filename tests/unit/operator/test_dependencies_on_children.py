"""Jobs that depend on the children of another, and cancels that go down to children."""

from typing import Any

import pytest

from support.snapshots import raw
from support.world import World

ANY = {"outcome": "Any"}
GIVEN_UP = "DeadLetter DependencyFailed cannot start: "


@pytest.fixture
def world() -> World:
    return World()


async def test_children_that_are_waited_for_hold_the_job_back_and_then_let_it_through(
    world: World,
) -> None:
    world.create("p")
    world.create("sum", {"name": "p", "children": True})
    world.start("p")
    world.create("c1", parent="p")
    world.create("c2", parent="p")
    world.end("p")
    await world.settle()
    assert world.state("sum").endswith("waiting for children of p")
    world.end("c1")
    world.end("c2")
    await world.settle()
    assert world.claimable() == ["sum"]


async def test_a_child_that_fails_counts_unless_any_end_does(world: World) -> None:
    world.create("p")
    world.create("strict", {"name": "p", "children": True})
    world.create("lax", {"name": "p", "children": True, **ANY})
    world.start("p")
    world.create("c1", parent="p")
    world.create("c2", parent="p")
    await world.settle()
    world.end("c1", "DeadLetter", "NotRetryable")
    await world.settle()
    assert world.state("strict") == f"{GIVEN_UP}c1 is a dead letter (NotRetryable)"
    assert world.state("lax").endswith("waiting for p")
    world.end("c2")
    world.end("p")
    await world.settle()
    assert world.claimable() == ["lax"]


@pytest.mark.parametrize("phase", ["Queued", "DeadLetter"])
async def test_a_child_not_seen_yet_is_found_by_a_live_list(world: World, phase: str) -> None:
    world.create("p")
    world.create("sum", {"name": "p", "children": True})
    await world.settle()
    world.start("p")
    world.blind = True
    world.create("c", parent="p")
    if phase != "Queued":
        world.end("c", phase, "NotRetryable")
    world.blind = False
    world.end("p")
    await world.settle()
    await world.pass_time(61)
    assert world.claimable() == (["c"] if phase == "Queued" else [])
    assert ("sum" in world.claimable()) is False
    assert world.status("sum")["phase"] == ("Pending" if phase == "Queued" else "DeadLetter")


async def test_a_cancel_that_cascades_takes_along_children_and_those_who_wait(world: World) -> None:
    world.create("p", cancelCascade=True)
    world.start("p")
    world.create("child", parent="p")
    world.create("running", parent="p")
    world.start("running")
    world.create("grandchild", parent="child")
    world.create("next", "p")
    world.create("after-next", "next")
    world.create("cleanup", {"name": "p", **ANY})
    world.create("stranger")
    await world.settle()
    world.change_spec("p", cancel=True)
    await world.settle()
    for name in ("child", "grandchild", "next", "after-next"):
        assert world.state(name).startswith("Cancelled CancelRequested"), name
    assert world.state("grandchild").endswith("cancelled by spec.cancel, with child")
    assert world.get("running")["spec"]["cancel"] is True
    assert world.status("running")["phase"] == "Running"
    world.end("p", "Cancelled", "CancelRequested")
    await world.settle()
    assert world.claimable() == ["cleanup", "stranger"]


async def test_a_child_that_comes_late_concerns_nobody_who_was_let_through(world: World) -> None:
    world.create("p")
    world.create("sum", {"name": "p", "children": True})
    world.end("p")
    await world.settle()
    world.create("late", parent="p", cancel=True, cancelCascade=True)
    await world.settle()
    assert world.claimable() == ["sum"]


async def test_a_cancel_that_does_not_cascade_leaves_children_alone(world: World) -> None:
    world.create("p")
    world.create("child", parent="p")
    world.change_spec("p", cancel=True)
    await world.settle()
    assert world.status("p")["phase"] == "Cancelled"
    assert world.claimable() == ["child"]
    world.change_spec("p", cancelCascade=True)
    await world.settle()
    assert world.status("child")["phase"] == "Cancelled"


async def test_a_job_that_comes_after_the_cascade_goes_with_it_too(world: World) -> None:
    world.create("p", cancel=True, cancelCascade=True)
    await world.settle()
    world.create("late", parent="p")
    world.create("next", "p")
    await world.settle()
    assert {world.status(name)["phase"] for name in ("late", "next")} == {"Cancelled"}


async def test_a_parent_in_another_namespace_is_none(world: World) -> None:
    elsewhere: Any = raw("p", spec={"cancel": True, "cancelCascade": True})
    elsewhere["metadata"]["namespace"] = "elsewhere"
    world.observer.on_update(elsewhere, just_changed=True)
    world.create("child", parent="p")
    child = world.observer.store.get("uid-child")
    assert child
    assert world.observer.dependency_graph.dependencies(child).parent is None


async def test_success_in_spite_of_a_cancel_takes_nobody_along(world: World) -> None:
    world.create("p")
    world.end("p")
    world.blind = True
    world.change_spec("p", cancel=True, cancelCascade=True)
    world.blind = False
    world.restart()
    world.create("child", parent="p")
    world.create("next", "p")
    await world.settle()
    assert world.claimable() == ["child", "next"]


async def test_that_a_job_cascades_is_confirmed_by_a_live_read(world: World) -> None:
    world.create("p", cancel=True, cancelCascade=True)
    await world.settle()
    world.blind = True
    world.change_spec("p", cancelCascade=False)
    world.blind = False
    world.create("child", parent="p")
    await world.settle()
    await world.pass_time(61)
    assert world.claimable() == ["child"]
