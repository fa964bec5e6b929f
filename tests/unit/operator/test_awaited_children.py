"""Jobs that are parked for their children: they are woken from state, in whatever order it came."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from asyncjob.errors import ForbiddenError
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import park, status_fields
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.waits import WaitedChild, WaitKind, WaitView
from asyncjob.names import array_path, job_path
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.core.retention import by_queue, plan_removals
from support.objects.snapshots import stamp
from support.parts.operator_harness import OperatorHarness


@pytest.fixture
def harness() -> OperatorHarness:
    return OperatorHarness()


def wait_for(*names: str, until: str = "") -> WaitView:
    children = tuple(WaitedChild(name, f"uid-{name}") for name in names)
    return WaitView(WaitKind.CHILDREN, f"children {names[0]}", until, children=children)


def park_for(harness: OperatorHarness, name: str, *waiting: WaitView) -> None:
    """Let a running job park, as its worker does."""
    obj = harness.get(name)
    timed: dict[str, Any] = {
        one.key: {"kind": one.kind, "until": one.until} for one in waiting if one.until
    }
    change = park(read_job(obj), timed, waiting, now=stamp(harness.now))
    fields = status_fields(change, obj["status"])
    status = {**obj["status"], **fields}
    kept = {key: value for key, value in status.items() if value is not None}
    harness.store(name, {**obj, "status": orjson.loads(orjson.dumps(kept))})


def family(harness: OperatorHarness, *children: str) -> None:
    harness.create("p")
    harness.start("p")
    for name in children:
        harness.create(name, parent="p")


A_PATH = job_path("ns", "a")
WAITS = "Pending WaitingForChildren waits for children a"
WOKEN = "Queued WaitOver"


async def test_a_parent_is_woken_once_all_that_it_waits_for_have_finished(
    harness: OperatorHarness,
) -> None:
    family(harness, "a", "b")
    park_for(harness, "p", wait_for("a", "b"))
    await harness.settle()
    harness.end("a")
    await harness.settle()
    assert harness.state("p") == WAITS
    harness.end("b", "DeadLetter", "NotRetryable")
    await harness.settle()
    assert harness.state("p") == WOKEN
    assert "waiting" not in harness.status("p")
    assert not [one for one in harness.session.requests if one[:2] == ("GET", A_PATH)]


async def test_a_child_that_ended_before_the_park_was_written_wakes_its_parent_at_once(
    harness: OperatorHarness,
) -> None:
    family(harness, "a")
    harness.end("a")
    await harness.settle()
    park_for(harness, "p", wait_for("a"))
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_any_wait_that_is_over_wakes_the_job(harness: OperatorHarness) -> None:
    family(harness, "a", "b")
    park_for(harness, "p", wait_for("a"), wait_for("b"))
    harness.end("b", "Cancelled", "CancelRequested")
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_a_deleted_child_is_over(harness: OperatorHarness) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a"))
    await harness.settle()
    harness.session.requests.clear()
    harness.delete("a")
    await harness.settle()
    assert harness.state("p") == WOKEN
    assert not [one for one in harness.session.requests if one[:2] == ("GET", A_PATH)]


async def test_a_job_of_the_childs_name_is_not_that_child(harness: OperatorHarness) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a"))
    harness.delete("a")
    harness.create("a")
    obj: Any = harness.get("a")
    obj["metadata"]["uid"] = "uid-other"
    harness.store("a", obj)
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_what_the_operator_has_not_seen_is_read_before_it_counts_as_gone(
    harness: OperatorHarness,
) -> None:
    harness.blind = True
    family(harness, "a")
    park_for(harness, "p", wait_for("a"))
    harness.blind = False
    harness.observer.on_update(harness.get("p"), just_changed=False)
    await harness.settle()
    assert harness.state("p") == WAITS
    harness.end("a")
    await harness.settle()  # at once: that it was not over has cost no pause
    assert harness.state("p") == WOKEN


async def test_children_that_are_not_seen_yet_are_read_up_to_the_first_that_is_not_over(
    harness: OperatorHarness,
) -> None:
    harness.blind = True
    names = [f"c{number}" for number in range(9)]
    family(harness, *names)
    park_for(harness, "p", wait_for(*names))
    harness.blind = False
    harness.session.requests.clear()
    harness.observer.on_update(harness.get("p"), just_changed=False)
    await harness.settle()
    paths = {job_path("ns", name) for name in names}
    assert len([one for one in harness.session.requests if one[1] in paths]) == 1


async def test_an_operator_that_begins_later_wakes_whom_the_one_before_has_not(
    harness: OperatorHarness,
) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a"))
    harness.blind = True
    harness.end("a")
    harness.blind = False
    harness.restart()
    for name in ("p", "a"):
        harness.observer.on_update(harness.get(name), just_changed=False)
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_a_wait_for_children_with_a_limit_is_over_by_time_and_marked(
    harness: OperatorHarness,
) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a", until=stamp(60)))
    await harness.settle()
    await harness.pass_time(59)
    assert harness.state("p").startswith(WAITS)
    await harness.pass_time(3)
    assert harness.state("p") == WOKEN
    assert harness.status("p")["waits"]["children a"]["over"] is True


async def test_children_that_ended_in_time_are_not_marked_late(harness: OperatorHarness) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a", until=stamp(60)))
    await harness.settle()
    harness.end("a")
    harness.now = 100
    await harness.settle()
    assert harness.state("p") == WOKEN
    assert "over" not in harness.status("p")["waits"]["children a"]


async def test_a_parked_parent_that_is_cancelled_takes_its_children_along_if_it_is_to(
    harness: OperatorHarness,
) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a"))
    harness.change_spec("p", cancel=True, cancelCascade=True)
    await harness.settle()
    assert harness.status("p")["phase"] == harness.status("a")["phase"] == "Cancelled"
    assert "waiting" not in harness.status("p")


async def test_a_suspended_parent_is_held_once_its_children_have_ended(
    harness: OperatorHarness,
) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a"))
    harness.change_spec("p", suspend=True)
    harness.end("a")
    await harness.settle()
    assert harness.state("p").startswith("Pending Suspended")
    harness.change_spec("p", suspend=False)
    await harness.settle()
    assert "p" in harness.claimable()


async def test_children_of_an_unfinished_parent_are_kept(harness: OperatorHarness) -> None:
    family(harness, "a")
    harness.create("free")
    harness.end("a")
    harness.end("free")
    await harness.settle()
    feeds_parent = harness.caches.dependency_graph.feeds_parent
    kept = {one.name for one in harness.caches.store.finished() if feeds_parent(one)}
    assert kept == {"a"}
    harness.end("p")
    await harness.settle()
    assert not any(feeds_parent(one) for one in harness.caches.store.finished())


async def test_no_limit_takes_children_of_unfinished_parents_but_that_of_the_namespace(
    harness: OperatorHarness,
) -> None:
    for name in "abcd":
        harness.create(name)
        harness.end(name)
    await harness.settle()
    known = {one.name: one for one in harness.caches.store.finished()}
    free, children = [known["a"], known["b"]], [known["c"], known["d"]]

    def removed(limit: int) -> list[str]:
        options = RetentionOptions(namespace_limit=limit)
        return [one.name for one in plan_removals(by_queue(free), [], options, children, 0.0).jobs]

    assert removed(4) == []
    assert removed(3) == ["a"]
    assert removed(2) == ["a", "b"]
    assert removed(1) == ["a", "b", "c"]


async def test_old_children_go_before_dead_letters_and_what_others_are_deduplicated_by(
    harness: OperatorHarness,
) -> None:
    for name in ("keyed", "dead", "free", "old", "young"):
        harness.create(name)
        harness.end(name)
    await harness.settle()
    known = {one.name: one for one in harness.caches.store.finished()}
    wall, options = known["free"].completed_at + 100_000.0, RetentionOptions(min_age=3600.0)
    free = [
        replace(known["keyed"], has_dedup_key=True, completed_at=wall - 10),
        replace(known["dead"], phase=Phase.DEAD_LETTER),
        known["free"],
    ]
    children = [replace(known["young"], completed_at=wall - 10), known["old"]]

    def removed(limit: int) -> list[str]:
        beyond = replace(options, namespace_limit=limit)
        return [one.name for one in plan_removals(by_queue(free), [], beyond, children, wall).jobs]

    assert removed(0) == ["free", "old", "keyed", "dead", "young"]
    assert removed(3) == ["free", "old"]


async def test_nobody_is_left_in_the_index_of_those_who_wait(harness: OperatorHarness) -> None:
    family(harness, "a")
    park_for(harness, "p", wait_for("a"))
    assert harness.caches.store.relations.awaiting.members("uid-a") == ["uid-p"]
    harness.end("a")
    await harness.settle()
    assert harness.caches.store.relations.awaiting.members("uid-a") == []


# ---- arrays

SORTED = array_path("ns", "sorted")


def wait_for_array(*jobs: str, kind: str = "AsyncArray") -> WaitView:
    array = WaitedChild("sorted", "uid-sorted", kind)
    children = (*(WaitedChild(name, f"uid-{name}") for name in jobs), array)
    return WaitView(WaitKind.CHILDREN, "child sorted", children=children)


def reads_of(harness: OperatorHarness, path: str) -> int:
    return len([one for one in harness.session.requests if one[:2] == ("GET", path)])


WAITS_FOR_ARRAY = "Pending WaitingForChildren waits for child sorted"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Cancelled"])
async def test_a_parent_is_woken_once_its_array_has_ended(
    harness: OperatorHarness, phase: str
) -> None:
    family(harness, "a")
    harness.store_array("sorted", "Running", "p")
    park_for(harness, "p", wait_for_array("a"))
    await harness.settle()
    harness.store_array("sorted", "Running", "p")
    harness.end("a")
    await harness.settle()
    assert harness.state("p") == WAITS_FOR_ARRAY
    assert not reads_of(harness, SORTED)
    harness.store_array("sorted", phase, "p")
    await harness.settle()
    assert harness.state("p") == WOKEN


@pytest.mark.parametrize("seen", [True, False])
async def test_an_array_that_ended_before_the_park_wakes_its_parent_at_once(
    harness: OperatorHarness, *, seen: bool
) -> None:
    family(harness)
    harness.blind = not seen
    harness.store_array("sorted", "Succeeded", "p")
    harness.blind = False
    park_for(harness, "p", wait_for_array())
    await harness.settle()
    assert harness.state("p") == WOKEN
    assert reads_of(harness, SORTED) == (0 if seen else 1)


@pytest.mark.parametrize("seen", [True, False])
async def test_an_array_that_ended_in_time_is_not_marked_late(
    harness: OperatorHarness, *, seen: bool
) -> None:
    family(harness)
    park_for(harness, "p", replace(wait_for_array(), until=stamp(60)))
    harness.blind = not seen
    harness.store_array("sorted", "Succeeded", "p")
    harness.blind = False
    harness.now = 100
    await harness.settle()
    assert harness.state("p") == WOKEN
    assert "over" not in harness.status("p")["waits"]["child sorted"]


@pytest.mark.parametrize("seen", [True, False])
async def test_an_array_that_has_not_ended_in_time_is_late(
    harness: OperatorHarness, *, seen: bool
) -> None:
    family(harness)
    harness.blind = not seen
    harness.store_array("sorted", "Running", "p")
    harness.blind = False
    park_for(harness, "p", replace(wait_for_array(), until=stamp(60)))
    await harness.settle()
    await harness.pass_time(59)
    assert harness.state("p").startswith(WAITS_FOR_ARRAY)
    await harness.pass_time(3)
    assert harness.state("p") == WOKEN
    assert harness.status("p")["waits"]["child sorted"]["over"] is True


@pytest.mark.parametrize("wait", [wait_for("a"), wait_for_array()], ids=["job", "array"])
async def test_the_limit_of_a_wait_holds_though_its_children_cannot_be_read(
    harness: OperatorHarness, wait: WaitView
) -> None:
    harness.blind = True
    family(harness, "a")
    harness.store_array("sorted", "Running", "p")
    park_for(harness, "p", replace(wait, until=stamp(60)))
    harness.blind = False
    for path in (A_PATH, SORTED):
        error = ForbiddenError("no", status=403, reason="Forbidden")
        harness.session.fail("GET", path, error)
    harness.observer.on_update(harness.get("p"), just_changed=False)
    await harness.settle()
    for _ in range(40):
        await harness.pass_time(30)
    assert harness.state("p") == WOKEN
    assert harness.status("p")["waits"][wait.key]["over"] is True


async def test_a_suspended_parent_is_held_once_its_array_has_ended(
    harness: OperatorHarness,
) -> None:
    family(harness)
    harness.store_array("sorted", "Running", "p")
    park_for(harness, "p", wait_for_array())
    harness.change_spec("p", suspend=True)
    await harness.settle()
    harness.store_array("sorted", "Failed", "p")
    await harness.settle()
    assert harness.claimable() == []
    harness.change_spec("p", suspend=False)
    await harness.settle()
    assert harness.claimable() == ["p"]


async def test_the_deadline_of_a_parent_ends_its_wait_for_an_array(
    harness: OperatorHarness,
) -> None:
    harness.create("p", deadlineSeconds=600)
    harness.start("p")
    harness.store_array("sorted", "Running", "p")
    park_for(harness, "p", wait_for_array())
    await harness.settle()
    await harness.pass_time(3600)
    assert harness.state("p").startswith("Cancelled DeadlineExceeded")
    assert "waiting" not in harness.status("p")


async def test_an_array_that_only_a_newer_version_can_read_wakes_its_parent(
    harness: OperatorHarness,
) -> None:
    family(harness)
    harness.store_array("sorted", "Running", "p")
    park_for(harness, "p", wait_for_array())
    await harness.settle()
    harness.store_array("sorted", "Failed", "p", reason="OfTheFuture")
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_such_an_array_is_read_where_it_is_not_known(harness: OperatorHarness) -> None:
    family(harness)
    harness.blind = True
    harness.store_array("sorted", "Failed", "p", reason="OfTheFuture")
    harness.blind = False
    park_for(harness, "p", wait_for_array())
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_an_answer_that_is_late_by_a_deletion_brings_no_array_back(
    harness: OperatorHarness,
) -> None:
    family(harness)
    harness.store_array("sorted", "Running", "p")
    old = harness.session.objects[SORTED]
    harness.delete_array("sorted")
    harness.arrays.on_update(old)
    park_for(harness, "p", wait_for_array())
    await harness.settle()
    assert harness.state("p") == WOKEN
    assert not reads_of(harness, SORTED)


async def test_an_array_that_is_seen_later_than_its_parent_costs_no_request(
    harness: OperatorHarness,
) -> None:
    family(harness)
    harness.blind = True
    harness.store_array("sorted", "Running", "p")
    harness.blind = False
    park_for(harness, "p", wait_for_array())
    harness.arrays.on_update(harness.session.objects[SORTED])
    harness.session.requests.clear()
    await harness.settle()
    assert harness.state("p") == WAITS_FOR_ARRAY
    assert not harness.session.requests


async def test_an_array_that_is_not_seen_yet_is_read_and_known_from_then_on(
    harness: OperatorHarness,
) -> None:
    family(harness)
    harness.blind = True
    harness.store_array("sorted", "Running", "p")
    harness.blind = False
    park_for(harness, "p", wait_for_array())
    await harness.settle()
    await harness.settle()
    assert harness.state("p") == WAITS_FOR_ARRAY
    reads = reads_of(harness, SORTED)
    harness.observer.evaluate("uid-p")
    await harness.settle()
    assert reads_of(harness, SORTED) == reads  # one more would be asked for again and again
    harness.store_array("sorted", "Failed", "p")
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_an_array_whose_end_is_seen_before_the_answer_to_a_read_wakes_its_parent(
    harness: OperatorHarness,
) -> None:
    family(harness)
    harness.store_array("sorted", "Running", "p")
    old = harness.session.objects[SORTED]
    park_for(harness, "p", wait_for_array())
    harness.store_array("sorted", "Succeeded", "p")
    harness.arrays.on_update(old)
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_a_deleted_array_is_over(harness: OperatorHarness) -> None:
    family(harness)
    harness.store_array("sorted", "Running", "p")
    park_for(harness, "p", wait_for_array())
    await harness.settle()
    harness.delete_array("sorted")
    await harness.settle()
    assert harness.state("p") == WOKEN


async def test_a_job_of_the_arrays_name_says_nothing_about_the_array(
    harness: OperatorHarness,
) -> None:
    family(harness, "sorted")
    harness.store_array("sorted", "Running", "p")
    park_for(harness, "p", wait_for_array())
    harness.end("sorted")
    await harness.settle()
    assert harness.state("p") == WAITS_FOR_ARRAY


async def test_children_of_a_kind_that_is_not_known_are_never_over(
    harness: OperatorHarness,
) -> None:
    family(harness)
    park_for(harness, "p", wait_for_array(kind="AsyncTree"))
    await harness.settle()
    assert harness.state("p") == WAITS_FOR_ARRAY
