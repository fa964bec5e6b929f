"""Which of the results in a store count, and in which order they are read."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.item_results import (
    CHUNKS_PER_FOLDER,
    ItemResultsError,
    ResultReader,
    ResultTarget,
    object_path,
    read_result_target,
    result_line,
    results_folder,
)


class Objects:
    """Objects in memory; `reads` are the names of those that were read."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, bytes]] = {}
        self.reads: list[str] = []
        self.before_read: Callable[[], None] = lambda: None

    def put(
        self,
        results: dict[int, str],
        *,
        generation: int = 1,
        attempt: int = 1,
        uid: str = "a",
        number: int = 0,
        created: int = 0,
    ) -> None:
        folder, name = object_path(generation, created, attempt, uid, number)
        data = b"".join(result_line(item, value.encode()) for item, value in results.items())
        self.found.setdefault(folder, {})[name] = data

    def names(self, folder: str) -> list[str]:
        return sorted(self.found.get(folder, {}) if folder else self.found)

    def read(self, folder: str, name: str) -> bytes:
        self.before_read()
        self.reads.append(name)
        return self.found[folder][name]


@pytest.fixture
def objects() -> Objects:
    return Objects()


def read(objects: Objects, done: str, read_ahead: int = 1000) -> list[tuple[int, Json]]:
    reader = ResultReader(objects, ItemRanges.parse(done), read_ahead=read_ahead)
    return [(one.item, one.result) for one in reader]


LINE = len(b'{"item":10,"result":1}')
"""The bytes that are kept of an item with two digits and a result with one."""


def reads(objects: Objects, items: list[list[int]], done: str, lines: int, spare: int = 0) -> int:
    """Return how often objects are read if there is room for so many lines, and `spare` bytes.

    Each list has the items of one object, the oldest first, which is read last at the beginning.
    """
    for number, its_items in enumerate(items):
        objects.put(dict.fromkeys(its_items, str(number)), generation=number + 1)
    owner = {item: number for number, its_items in enumerate(items) for item in its_items}
    expected = [(item, owner[item]) for item in ItemRanges.parse(done)]
    assert read(objects, done, read_ahead=lines * LINE + spare) == expected
    return len(objects.reads)


def test_results_come_in_the_order_of_the_items_whatever_the_order_they_were_stored_in(
    objects: Objects,
) -> None:
    objects.put({5: "5", 3: "3"}, generation=2)
    objects.put({4: "4", 0: "[0]"}, generation=1)
    assert read(objects, "0,3-5") == [(0, [0]), (3, 3), (4, 4), (5, 5)]


@pytest.mark.parametrize(
    "later",
    [
        {"generation": 2},
        {"generation": 10},
        {"generation": CHUNKS_PER_FOLDER},
        {"generation": 10 * CHUNKS_PER_FOLDER},
        {"attempt": 2},
        {"attempt": 10},
        {"number": 1},
        {"number": 10},
        {"created": 1_767_225_600, "uid": "0"},
    ],
    ids=str,
)
def test_of_several_runs_of_an_item_the_last_one_counts(objects: Objects, later: Any) -> None:
    objects.put({0: '"first"', 1: '"first"'})
    objects.put({0: '"later"'}, **later)
    assert read(objects, "0-1") == [(0, "later"), (1, "first")]


def test_folders_are_numbers_of_which_ten_comes_after_two(objects: Objects) -> None:
    objects.put({0: '"second"'}, generation=2 * CHUNKS_PER_FOLDER)
    objects.put({0: '"tenth"'}, generation=10 * CHUNKS_PER_FOLDER)
    assert read(objects, "0") == [(0, "tenth")]


def test_items_that_are_not_done_have_no_result_whatever_is_stored(objects: Objects) -> None:
    objects.put(dict.fromkeys(range(10), "1"))
    assert read(objects, "2,4") == [(2, 1), (4, 1)]
    assert read(objects, "") == []


def test_done_items_without_a_result_are_named(objects: Objects) -> None:
    objects.put({0: "0", 3: "3"})
    reader = ResultReader(objects, ItemRanges.parse("0-4,9"))
    assert not reader.missing  # nothing was looked for yet
    assert [one.item for one in reader] == [0, 3]
    assert str(reader.missing) == "1-2,4,9"
    objects.found = {}
    reader = ResultReader(objects, ItemRanges.parse("7"))
    assert [*reader] == []
    assert str(reader.missing) == "7"


def test_what_else_is_in_the_folders_is_passed_over(objects: Objects) -> None:
    objects.put({0: "0"})
    objects.found["0"] |= {".1-0-1-a-0.jsonl.4f2a": b'{"item":0,', "notes.txt": b"?"}
    objects.found["other"] = {"1-0-1-a-0.jsonl": b"?"}
    assert read(objects, "0") == [(0, 0)]


@pytest.mark.parametrize(
    "line",
    [b'{"item":0,"resu', b"[]", b'{"result":1}', b'{"item":"0"}', b'{"item":true}', b'{"item":-1}'],
)
def test_an_object_of_ours_with_other_content_is_an_error(objects: Objects, line: bytes) -> None:
    objects.put({0: "0"})
    objects.found["0"]["1-0-1-a-0.jsonl"] += line
    with pytest.raises(ItemResultsError, match="holds something else than results"):
        read(objects, "0")


def test_objects_are_read_once_if_there_is_room_and_else_as_often_as_their_items_come(
    objects: Objects,
) -> None:
    size = 100
    for number in range(4):
        start = number * size
        values = dict.fromkeys(range(start, start + size), '"xxxxxxxxxx"')
        objects.put(values, generation=number + 1)
    expected = [(item, "x" * 10) for item in range(4 * size)]
    assert read(objects, f"0-{4 * size - 1}", read_ahead=100_000) == expected
    assert len(objects.reads) == 4
    objects.reads.clear()
    assert read(objects, f"0-{4 * size - 1}", read_ahead=5000) == expected
    assert 4 < len(objects.reads) <= 8


def test_no_more_is_held_than_there_is_room_for(objects: Objects) -> None:
    """Items of two objects take turns, and there is room for one of them."""
    objects.put(dict.fromkeys(range(0, 20, 2), "1"), generation=1)
    objects.put(dict.fromkeys(range(1, 20, 2), "2"), generation=2)
    expected = [(item, 1 + item % 2) for item in range(20)]
    assert read(objects, "0-19", read_ahead=1) == expected
    assert len(objects.reads) == 2 + 19


THREE = [[*range(10, 20)], [*range(20, 30)], [*range(30, 40)]]


def test_what_just_fits_is_read_once(objects: Objects) -> None:
    assert reads(objects, THREE, "10-39", lines=30) == 3


def test_for_a_byte_too_many_the_object_read_first_is_dropped_and_no_other(
    objects: Objects,
) -> None:
    assert reads(objects, THREE, "10-39", lines=30, spare=-1) == 3 + 1


@pytest.mark.parametrize("done", ["11,13,15,17-18", "12-16", "10-14", "15-19"])
def test_only_items_that_are_done_take_room(objects: Objects, done: str) -> None:
    assert reads(objects, [*THREE[:1], [20]], f"{done},20", lines=6) == 2


def test_results_that_were_taken_make_room_for_others(objects: Objects) -> None:
    """The newest is dropped at first. Once the oldest is used up, the two others fit."""
    items = [[*range(10, 20)], [*range(20, 40, 2)], [*range(21, 40, 2)]]
    assert reads(objects, items, "10-39", lines=20) == 3 + 1


def test_results_that_were_taken_take_no_room_when_their_object_is_read_again(
    objects: Objects,
) -> None:
    """Of the older object five are taken, of the newer three; then five and seven just fit."""
    older = [10, 11, 12, 13, 14, 18, 20, 22, 24, 26]
    newer = [15, 16, 17, 19, 21, 23, 25, 27, 28, 29]
    assert reads(objects, [older, newer], "10-29", lines=12) == 2 + 2


def test_the_object_that_was_used_last_is_dropped_last(objects: Objects) -> None:
    """The second and the third take turns, and there is room for them, but for no more."""
    items = [[*range(30, 40)], [*range(10, 30, 2)], [*range(11, 30, 2)]]
    assert reads(objects, items, "10-39", lines=20) == 3 + 2


def test_there_is_room_for_64_mib_unless_said_otherwise() -> None:
    """So much is not read here, which would take a second: other bounds hold to the byte."""
    assert signature(ResultReader).parameters["read_ahead"].default == 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("generation", "folder"), [(1, "0"), (999, "0"), (1000, "1"), (1999, "1"), (2000, "2")]
)
def test_a_folder_has_the_objects_of_a_thousand_chunks(generation: int, folder: str) -> None:
    assert object_path(generation, 7, 2, "u", 3) == (folder, f"{generation}-7-2-u-3.jsonl")


def test_a_result_that_is_lost_while_it_is_read_is_an_error(objects: Objects) -> None:
    objects.put({0: "0"}, generation=1)
    objects.put({1: "1"}, generation=2)
    objects.put({2: "2"}, generation=3)

    def lose() -> None:
        if len(objects.reads) == 3:
            objects.found["0"] = dict.fromkeys(objects.found["0"], b"")

    objects.before_read = lose
    with pytest.raises(ItemResultsError, match="has lost the result of item"):
        read(objects, "0-2", read_ahead=1)


def test_the_folder_is_named_by_the_array_s_uid() -> None:
    assert results_folder({"results": {"uri": "s3://b/results/ns/"}}, "u") == "s3://b/results/ns/u"
    assert results_folder({}, "u") == ""


@pytest.mark.parametrize("stored", [{}, {"folder": "s3://b"}, {"generation": 1}])
def test_a_target_that_no_operator_has_written_is_refused(stored: dict[str, Json]) -> None:
    with pytest.raises(ValueError, match="no folder or no generation"):
        read_result_target(stored)


def test_a_target_is_read_as_it_was_written() -> None:
    target = ResultTarget("s3://b/u", 3)
    assert read_result_target(target.to_json()) == target
