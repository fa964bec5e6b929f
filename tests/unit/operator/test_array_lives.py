"""The whole life of an array, with an operator that dies at each of its requests, one by one.

Each request either never arrives, or arrives and is never answered, or arrives when its sender is
long gone. Whatever dies, each item is counted once, and the next operator finishes the array.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
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


@dataclass(frozen=True)
class Life:
    """One array's life without deaths: what it is asked, and how it has to end."""

    phase: str
    failed: str = ""
    succeeded: int = 0
    spec: Mapping[str, Any] = field(default_factory=dict)
    failing: frozenset[int] = frozenset()
    killing: frozenset[int] = frozenset()
    people: People = field(default_factory=dict)
    records: int = 0
    """Of the file of the items."""

    broken: Mapping[str, bool] = field(default_factory=dict)
    """What is wrong with the file at first."""

    exact: bool = True
    """Whether the counts are known whenever the operator dies; a cancel may come at any item."""

    def world(self) -> ArrayRun:
        spec = {"items": {"count": 23}, "chunkSize": 5, "parallelism": 2, **self.spec}
        if self.records or self.broken:
            spec["items"] = {"from": {"uri": "memory://items/rows.csv"}}
        run = ArrayRun(raw_array(**spec), self.failing, self.killing, records=self.records)
        for name, value in self.broken.items():
            setattr(run, name, value)
        return run


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
    "a chunk is deleted": Life("Succeeded", "", 23, people={1: delete_a_chunk, 3: delete_a_chunk}),
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
    ),
    "it is cancelled": Life("Cancelled", people={1: ask(cancel=True)}, exact=False),
    "it is cancelled at once": Life("Cancelled", people={0: ask(cancel=True)}, exact=False),
    "items are in a file": Life("Succeeded", succeeded=23, records=23),
    "some items of a file fail": Life("Failed", "3", 22, failing=frozenset({3}), records=23),
    "an item of a file ends its worker": Life(
        "Failed", "7", 22, killing=frozenset({7}), records=23
    ),
    "the job that finds the records is deleted": Life(
        "Succeeded", succeeded=23, records=23, people={0: delete_a_chunk, 1: delete_a_chunk}
    ),
    "the file has no records": Life("Succeeded", broken={"unreadable": False}),
    "the file cannot be read at first": Life(
        "Succeeded",
        succeeded=23,
        records=23,
        broken={"unreadable": True},
        people={40: mend},
    ),
    "the file is another one for a while": Life(
        "Succeeded", succeeded=23, records=23, broken={"changed": True}, people={40: mend}
    ),
    "it is cancelled before its file is read": Life(
        "Cancelled", records=23, people={0: ask(cancel=True)}, exact=False
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
    if life.exact:
        assert status.get("failedItems", "") == life.failed
        assert status["failed"] == len(ItemRanges.parse(life.failed))
        assert status["succeeded"] == life.succeeded
        assert status["next"] == status["total"]


def check_runs(life: Life, world: ArrayRun) -> None:
    """Each item has been run once, and if they are in a file it has been read once."""
    source = world.array["spec"]["items"]
    wanted = ItemRanges.between(0, world.status["total"])
    wanted -= ItemRanges.parse(source.get("skip", ""))
    assert world.runs == dict.fromkeys(wanted if life.exact else world.runs, 1)
    assert world.indexed == ("from" in source)


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_an_array_ends_as_its_items_do(life: Life) -> None:
    world = life.world()
    play(world, life.people)
    check(life, world)
    if not life.killing and not life.people:
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
        if not life.killing and not life.people and life.exact:
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
