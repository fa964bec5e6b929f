"""Sets of items in interval notation, compared with plain sets; and what chunks report by them."""

import random

import pytest

from asyncjob.lifecycle.arrays.chunks import (
    ChunkReport,
    ChunkWork,
    ItemError,
    chunk_name,
    read_checkpoint,
    read_chunk_work,
    read_result,
)
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges

GENERATOR = random.Random(7)
SETS = [frozenset(GENERATOR.sample(range(40), GENERATOR.randint(0, 40))) for _ in range(60)]


@pytest.mark.parametrize("one", SETS[:30])
def test_a_set_comes_back_from_its_notation(one: frozenset[int]) -> None:
    ranges = ItemRanges.of(one)
    assert set(ranges) == one
    assert len(ranges) == len(one)
    assert ItemRanges.parse(str(ranges)) == ranges
    assert [item in ranges for item in range(45)] == [item in one for item in range(45)]
    assert [ranges.position(item) for item in sorted(one)] == list(range(len(one)))


@pytest.mark.parametrize(("one", "other"), list(zip(SETS[:30], SETS[30:], strict=True)))
def test_unions_intersections_and_differences_are_those_of_sets(
    one: frozenset[int], other: frozenset[int]
) -> None:
    left, right = ItemRanges.of(one), ItemRanges.of(other)
    assert (left | right) == ItemRanges.of(one | other)
    assert (left & right) == ItemRanges.of(one & other)
    assert (left - right) == ItemRanges.of(one - other)


@pytest.mark.parametrize("one", SETS)
def test_halves_are_all_of_it_and_the_first_is_no_smaller(one: frozenset[int]) -> None:
    ranges = ItemRanges.of(one)
    first, second = ranges.halves()
    assert sorted([*first, *second]) == sorted(one)
    assert len(first) - len(second) in {0, 1}


def test_the_first_items_keep_to_number_and_ranges() -> None:
    ranges = ItemRanges.parse("0-4,10-14,20")
    assert str(ranges.first_items(7, 5)) == "0-4,10-11"
    assert str(ranges.first_items(7, 1)) == "0-4"
    assert str(ranges.first_items(0, 5)) == ""


def test_touching_ranges_become_one() -> None:
    assert str(ItemRanges.parse("5-6,0-3,4,6-9")) == "0-9"
    assert str(ItemRanges.between(3, 3)) == ""
    assert str(ItemRanges.between(3, 6)) == "3-5"


@pytest.mark.parametrize("text", ["1-", "-1", "a", "3-1", "1,,2", "1;2", "1,", "12345678901"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|notation"):
        ItemRanges.parse(text)


WORK = ItemRanges.parse("0-9,20-29,35")
REPORT = ChunkReport(
    ItemRanges.parse("0-3,20,35"),
    ItemRanges.parse("5,29"),
    (ItemError(5, "ValueError", "Internal", "no"),),
)


def test_a_report_comes_back_from_a_checkpoint_and_from_a_result() -> None:
    assert read_checkpoint(REPORT.checkpoint(WORK), WORK) == REPORT
    assert read_result(REPORT.result(), WORK) == REPORT


def test_a_checkpoint_is_as_large_as_its_chunk_and_not_as_what_is_done() -> None:
    work = ItemRanges.between(0, 10_000)
    scattered = ItemRanges.of(range(0, 10_000, 2))
    assert len(str(ChunkReport(scattered).checkpoint(work))) < 3500


@pytest.mark.parametrize(
    "stored",
    [None, "x", [], {"done": 7}, {"done": "?"}, {"done": "AAAA=="}, {"done": "/////////w=="}],
)
def test_a_checkpoint_that_cannot_be_read_counts_for_nothing(stored: object) -> None:
    assert read_checkpoint(stored, WORK) == ChunkReport()  # type: ignore[arg-type]


def test_a_result_about_items_of_others_counts_for_nothing() -> None:
    report = read_result({"done": "0-100000", "failed": "5,1000", "errors": [{"item": 1000}]}, WORK)
    assert report == ChunkReport(WORK - ItemRanges.of([5]), ItemRanges.of([5]))
    assert read_result({"done": "everything"}, WORK) == ChunkReport()


def test_an_item_that_is_done_and_failed_has_failed() -> None:
    assert read_result({"done": "5", "failed": "5"}, WORK).failed == ItemRanges.of([5])
    both = ChunkReport(ItemRanges.of([5]), ItemRanges.of([5]))
    assert read_checkpoint(both.checkpoint(WORK), WORK).done == ItemRanges()


def test_work_comes_back_from_a_payload() -> None:
    inline = ChunkWork("a", "uid", ItemRanges.parse("3,5"), {"b": 1}, ("x", None), 2, 30, {"c": 1})
    for work in (inline, ChunkWork("a", "uid", WORK)):
        assert read_chunk_work(work.to_json()) == work


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({}, "has none"),
        ({"items": "x"}, "notation"),
        ({"items": "1-3", "values": [1]}, "1 for 3 items"),
    ],
)
def test_a_payload_that_is_no_chunk_is_refused(payload: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_chunk_work(payload)  # type: ignore[arg-type]


def test_the_name_of_a_chunk_is_a_name_whatever_the_arrays_is() -> None:
    names = {
        chunk_name(array, uid, first, generation)
        for array in ("a", "a" * 253, "a.b-" * 13)
        for uid in ("1", "2")
        for first in (0, 500)
        for generation in (1, 2)
    }
    assert len(names) == 24
    assert max(map(len, names)) <= 63
    assert not [name for name in names if "--" in name or ".-" in name]
