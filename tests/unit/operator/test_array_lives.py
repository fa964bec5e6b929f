"""The whole life of an array, with an operator that dies at each of its requests, one by one.

Each request either never arrives, or arrives and is never answered, or arrives when its sender is
long gone. Whatever dies, each item is counted once, and the next operator finishes the array.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any, Final

import pytest

from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.phases import Phase
from support.parts.array_world import ArrayRun, play, raw_array

People = Mapping[int, Callable[[ArrayRun], object]]


def delete_a_chunk(world: ArrayRun) -> None:
    for name in list(world.jobs)[:1]:
        del world.jobs[name]


def ask(**spec: Any) -> Callable[[ArrayRun], object]:
    return methodcaller("ask", **spec)


def redrive(number: int, *, failing: frozenset[int]) -> Callable[[ArrayRun], object]:
    def correct(world: ArrayRun) -> None:
        world.failing = failing
        world.ask(redrive=number)

    return correct


def mend(world: ArrayRun) -> None:
    """Put the file right and have the array go on."""
    assert world.status["phase"] == "Failed", world.status
    assert world.status["reason"] == "ItemsUnreadable"
    assert world.status["failed"] == 0
    world.unreadable = world.changed = False
    world.ask(redrive=1)


def mend_store(world: ArrayRun) -> None:
    """Have the store take results again and the array go on."""
    assert world.status["phase"] == "Failed", world.status
    assert world.status["reason"] == "ResultsNotStored"
    assert world.status["failed"] == 0
    world.store_refuses = False
    world.ask(redrive=1)


def see_it_wait(world: ArrayRun) -> None:
    assert world.status["phase"] == "Pending", world.status
    assert "open" not in world.status
    assert world.runs == {}


def end_dependency(phase: Phase) -> Callable[[ArrayRun], object]:
    def end(world: ArrayRun) -> None:
        see_it_wait(world)
        world.dependency = phase

    return end


def start_after_all(world: ArrayRun) -> None:
    """Have the job succeed that the array depends on, and the array start."""
    assert world.status["phase"] == "Failed", world.status
    assert world.status["reason"] == "DependencyFailed"
    assert world.runs == {}
    world.dependency = Phase.SUCCEEDED
    world.ask(redrive=1)


@dataclass(frozen=True)
class Life:
    """One array's life without deaths: what it is asked, and how it has to end."""

    phase: str
    failed: str = ""
    succeeded: int = 0
    spec: Mapping[str, Any] = field(default_factory=dict)
    failing: frozenset[int] = frozenset()
    killing: frozenset[int] = frozenset()
    hanging: frozenset[int] = frozenset()
    people: People = field(default_factory=dict)
    records: int | None = None
    """Of the file of the items, if they are in one."""

    at_first: Mapping[str, object] = field(default_factory=dict)
    """How the world differs at first, by its fields."""

    exact: bool = True
    """Whether the counts are known whenever the operator dies; a cancel may come at any item."""

    again: bool = False
    """Whether items are run again, because of what people do."""

    sizes: range | None = None
    """Which sizes of chunks it may have come to choose, where that is checked."""

    def world(self) -> ArrayRun:
        spec = {"items": {"count": 23}, "chunkSize": 5, "parallelism": 2, **self.spec}
        if self.records is not None:
            spec["items"] = {"from": {"uri": "memory://items/rows.csv"}}
        if spec["chunkSize"] is None:
            del spec["chunkSize"]
        run = ArrayRun(
            raw_array(**spec), self.failing, self.killing, self.hanging, records=self.records or 0
        )
        for name, value in self.at_first.items():
            setattr(run, name, value)
        return run


ADAPTS: Final = {"items": {"count": 60}, "chunkSize": None, "parallelism": 3}
SKIPS: Final = {**ADAPTS, "items": {"count": 60, "skip": "0-9,20,50-59"}}
KEPT: Final = {"results": {"uri": "memory://results"}}
DEPENDS: Final = {"dependsOn": [{"name": "fetch"}]}
WAITS: Final = {"dependency": Phase.QUEUED}


LIVES = {
    "all items succeed": Life("Succeeded", succeeded=23),
    "items stand in the array": Life(
        "Succeeded", succeeded=4, spec={"items": {"inline": ["a", "b", "c", "d"]}, "chunkSize": 3}
    ),
    "some items are done already": Life(
        "Succeeded", succeeded=23, spec={"items": {"count": 23, "skip": "0-6,9,15-16,21-22"}}
    ),
    "of those that are left some fail": Life(
        "Failed",
        "8,11",
        21,
        {"items": {"count": 23, "skip": "0-6,9,18-20"}},
        failing=frozenset({8, 11}),
    ),
    "all items are done already": Life(
        "Succeeded", succeeded=23, spec={"items": {"count": 23, "skip": "0-22"}}
    ),
    "some items fail": Life("Failed", "3,11-12", 20, failing=frozenset({3, 11, 12})),
    "no more fail than may": Life(
        "Succeeded", "3,11", 21, {"maxFailed": 2}, failing=frozenset({3, 11})
    ),
    "an item ends its worker": Life("Failed", "7", 22, killing=frozenset({7})),
    "two items end their workers": Life("Failed", "7,9", 21, killing=frozenset({7, 9})),
    "a chunk is deleted": Life(
        "Succeeded", "", 23, people={1: delete_a_chunk, 3: delete_a_chunk}, again=True
    ),
    "it is suspended for a while": Life(
        "Succeeded", "", 23, people={1: ask(suspend=True), 12: ask(suspend=False)}
    ),
    "it is created suspended": Life(
        "Succeeded", "", 23, {"suspend": True}, people={9: ask(suspend=False)}
    ),
    "failed items are run again twice": Life(
        "Succeeded",
        "",
        23,
        failing=frozenset({3, 11}),
        people={
            40: redrive(1, failing=frozenset({3})),
            80: redrive(2, failing=frozenset()),
        },
        again=True,
    ),
    "it is cancelled": Life("Cancelled", people={1: ask(cancel=True)}, exact=False),
    "it is cancelled at once": Life("Cancelled", people={0: ask(cancel=True)}, exact=False),
    "items are in a file": Life("Succeeded", succeeded=23, records=23),
    "some items of a file fail": Life("Failed", "3", 22, failing=frozenset({3}), records=23),
    "an item of a file ends its worker": Life(
        "Failed", "7", 22, killing=frozenset({7}), records=23
    ),
    "the job that finds the records is deleted": Life(
        "Succeeded",
        succeeded=23,
        records=23,
        people={0: delete_a_chunk, 1: delete_a_chunk},
        again=True,
    ),
    "the file has no records": Life("Succeeded", records=0),
    "the file cannot be read at first": Life(
        "Succeeded",
        succeeded=23,
        records=23,
        at_first={"unreadable": True},
        people={40: mend},
    ),
    "the file is another one for a while": Life(
        "Succeeded", succeeded=23, records=23, at_first={"changed": True}, people={40: mend}
    ),
    "it is cancelled before its file is read": Life(
        "Cancelled", records=23, people={0: ask(cancel=True)}, exact=False
    ),
    "it chooses how many items a chunk has": Life(
        "Succeeded", succeeded=60, spec=ADAPTS, sizes=range(11, 61)
    ),
    "items take a minute each": Life(
        "Succeeded",
        succeeded=40,
        spec={**ADAPTS, "items": {"count": 40}},
        at_first={"item_seconds": 60.0},
        sizes=range(1, 4),
    ),
    "two items hang": Life("Failed", "3,18", 21, hanging=frozenset({3, 18})),
    "two of many items hang": Life("Failed", "7,31", 58, ADAPTS, hanging=frozenset({7, 31})),
    "of those that are left one hangs": Life("Failed", "31", 59, SKIPS, hanging=frozenset({5, 31})),
    "one item hangs and one ends its worker": Life(
        "Failed", "7,31", 58, ADAPTS, killing=frozenset({31}), hanging=frozenset({7})
    ),
    "the store refuses results at first": Life(
        "Succeeded", "", 23, KEPT, at_first={"store_refuses": True}, people={40: mend_store}
    ),
    "the store refuses the results of those that are left": Life(
        "Succeeded",
        succeeded=60,
        spec={**SKIPS, **KEPT},
        at_first={"store_refuses": True},
        people={40: mend_store},
    ),
    "it waits for its time": Life(
        "Succeeded", "", 23, {"notBefore": "2027-01-15T08:00:05Z"}, people={7: see_it_wait}
    ),
    "it waits for a job": Life(
        "Succeeded", "", 23, DEPENDS, at_first=WAITS, people={9: end_dependency(Phase.SUCCEEDED)}
    ),
    "it waits for a job, and all items are done already": Life(
        "Succeeded",
        succeeded=23,
        spec={**DEPENDS, "items": {"count": 23, "skip": "0-22"}},
        at_first=WAITS,
        people={9: end_dependency(Phase.SUCCEEDED)},
    ),
    "it is cancelled while it waits": Life(
        "Cancelled", spec=DEPENDS, at_first=WAITS, people={5: ask(cancel=True)}, exact=False
    ),
    "it is suspended while it waits": Life(
        "Succeeded",
        succeeded=23,
        spec=DEPENDS,
        at_first=WAITS,
        people={
            2: ask(suspend=True),
            6: end_dependency(Phase.SUCCEEDED),
            12: ask(suspend=False),
        },
    ),
    "the job that it waits for fails at first": Life(
        "Succeeded",
        succeeded=23,
        spec=DEPENDS,
        at_first=WAITS,
        people={4: end_dependency(Phase.DEAD_LETTER), 40: start_after_all},
    ),
    "that job fails while it is suspended": Life(
        "Succeeded",
        succeeded=23,
        spec={**DEPENDS, "suspend": True},
        at_first=WAITS,
        people={
            4: end_dependency(Phase.DEAD_LETTER),
            40: start_after_all,
            49: see_it_wait,
            50: ask(suspend=False),
        },
    ),
    "too many fail": Life(
        "Failed", spec={"maxFailedPercent": 10}, failing=frozenset(range(20)), exact=False
    ),
}


def check(life: Life, world: ArrayRun) -> None:
    status = world.status
    assert status["phase"] == life.phase
    assert world.most_objects <= 2 * status.get("parallelism", 2)
    assert world.jobs == {}
    assert life.sizes is None or status["chunkSize"] in life.sizes
    if life.exact:
        assert status.get("failedItems", "") == life.failed
        assert status["failed"] == len(ItemRanges.parse(life.failed))
        assert status["succeeded"] == life.succeeded
        assert status["next"] == status["total"]


def check_runs(life: Life, world: ArrayRun) -> None:
    """Each item that comes to its end has been run once, and a file has been read once."""
    source = world.array["spec"]["items"]
    wanted = ItemRanges.between(0, world.status["total"])
    wanted -= ItemRanges.parse(source.get("skip", ""))
    wanted -= ItemRanges.of(life.killing | life.hanging)
    assert world.runs == dict.fromkeys(wanted if life.exact else world.runs, 1)
    if life.exact:
        assert world.indexed == ("from" in source)


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_an_array_ends_as_its_items_do(life: Life) -> None:
    world = life.world()
    play(world, life.people)
    check(life, world)
    if not life.again:
        check_runs(life, world)


@pytest.mark.parametrize("how", ["before", "after", "late"])
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_whatever_request_is_the_operators_last_each_item_is_counted_once(
    life: Life, how: str
) -> None:
    undisturbed = life.world()
    play(undisturbed, life.people)
    for number in range(undisturbed.requests):
        world = life.world()
        world.died_at, world.how = number, how
        play(world, life.people)
        check(life, world)
        if not life.again and life.exact:
            check_runs(life, world)


def test_an_item_that_ends_its_worker_is_alone_to_fail_and_says_why() -> None:
    world = ArrayRun(raw_array(items={"count": 1000}, chunkSize=100, parallelism=3), killing={357})
    play(world)
    assert world.status["failedItems"] == "357"
    [error] = world.status["errors"]
    assert (error["item"], error["type"], error["category"]) == (357, "Crash", "Crash")


def test_a_handful_of_requests_is_enough_for_a_thousand_items() -> None:
    world = ArrayRun(raw_array(items={"count": 10_000}, chunkSize=500, parallelism=20))
    play(world)
    # One write cuts all twenty chunks, one notes or counts them; each is created, read and deleted.
    assert world.requests <= 20 * 3 + 4


@pytest.mark.parametrize(("size", "seconds"), [(1_000, 0.5), (10_000, 5.0)])
def test_an_array_with_large_items_is_written_less_often(size: int, seconds: float) -> None:
    world = ArrayRun(raw_array(items={"inline": ["x" * size] * 4}, chunkSize=1, parallelism=1))
    play(world)
    # The end of each of four chunks is one write.
    assert 4 * seconds <= world.now <= 4 * (seconds + 0.6) + 1.2


def test_where_too_many_have_failed_no_further_chunk_is_cut() -> None:
    world = ArrayRun(
        raw_array(items={"count": 1000}, chunkSize=10, parallelism=2, maxFailed=5),
        failing=range(1000),
    )
    play(world)
    assert (world.status["phase"], world.status["reason"]) == ("Failed", "TooManyFailed")
    assert world.status["next"] == 20


def test_a_finished_array_is_deleted_after_its_time() -> None:
    world = ArrayRun(raw_array(items={"count": 3}, ttlSecondsAfterFinished=30))
    operator = play(world)
    assert not operator.deleted
    world.pass_time(31)
    operator.reconcile()
    assert operator.deleted
