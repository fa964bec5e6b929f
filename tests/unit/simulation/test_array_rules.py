"""Where the items of an array are, as the simulation reads it, and what it takes for broken."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob_simulation.array_rules import (
    COUNTED,
    DONE,
    INNOCENT,
    ONE_PLACE,
    ArrayRules,
    items_in,
    places_of,
)

OPEN = {"phase": "Running", "total": 6, "next": 4, "succeeded": 0}
CHUNKS = [{"name": "a", "items": "0-1"}, {"name": "b", "items": "2-3"}]


@pytest.mark.parametrize(
    ("notation", "items"), [("", []), ("3", [3]), ("3,11-12", [3, 11, 12]), ("0-2", [0, 1, 2])]
)
def test_a_notation_names_items(notation: str, items: list[int]) -> None:
    assert items_in(notation) == frozenset(items)


def test_what_is_nowhere_else_counts_as_done() -> None:
    places = places_of({**OPEN, "open": CHUNKS[1:], "failedItems": "1", "succeeded": 1})
    assert (set(places.counted), set(places.twice)) == ({0}, set())


def test_what_is_in_two_places_is_noticed() -> None:
    assert places_of({**OPEN, "open": CHUNKS, "requeued": "1", "suspects": ["3"]}).twice == {1, 3}


def promises(*statuses: dict[str, Any], done: int = 0, failed: int = 0) -> list[str]:
    """Return what is broken by these statuses, where so many items are done, and have failed."""
    broken: list[str] = []
    runs = SimpleNamespace(
        done={("uid", item) for item in range(done)},
        failed={("uid", item) for item in range(failed)},
    )
    rules = ArrayRules(
        cast("Any", None),
        cast("Any", runs),
        lambda _: None,
        lambda promise, *_: broken.append(promise),
    )
    was: dict[str, Any] = {}
    for status in statuses:
        array = {"metadata": {"name": "array", "uid": "uid"}, "status": status}
        rules._on_status(array, was)
        was = status
    return broken


CUT = {**OPEN, "open": CHUNKS}
FIRST_DONE = {**OPEN, "open": CHUNKS[1:], "succeeded": 2}


def test_a_life_in_which_nothing_is_wrong() -> None:
    failed = {**OPEN, "open": CHUNKS[1:], "succeeded": 1, "failedItems": "0"}
    assert promises(CUT, FIRST_DONE, done=2) == []
    assert promises(CUT, failed, done=2, failed=1) == []


def test_an_item_that_stands_alone_in_the_end_may_fail_for_the_death_of_its_worker() -> None:
    blamed = {**OPEN, "open": CHUNKS[1:], "succeeded": 1, "failedItems": "1"}
    assert promises(CUT, blamed, done=1) == []


@pytest.mark.parametrize(
    ("statuses", "done", "promise"),
    [
        pytest.param((CUT, FIRST_DONE), 1, DONE, id="no handler has ended it"),
        pytest.param((CUT, FIRST_DONE, CUT), 2, COUNTED, id="it is given out again"),
        pytest.param((CUT, {**FIRST_DONE, "succeeded": 1}), 2, ONE_PLACE, id="it does not add up"),
        pytest.param(
            (CUT, {**OPEN, "open": CHUNKS[1:], "failedItems": "0-1"}),
            0,
            INNOCENT,
            id="two fail that have not failed",
        ),
    ],
)
def test_a_broken_promise_is_noticed(
    statuses: tuple[dict[str, Any], ...], done: int, promise: str
) -> None:
    assert promise in promises(*statuses, done=done)
