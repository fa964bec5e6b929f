"""What an export says of an array: which items are done, and which run again all the same."""

from copy import deepcopy
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.counting import MAX_RANGES
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.skipped_items import remaining_items, unskipped_items

ROWS = {"uri": "s3://bucket/rows.csv", "format": "CSV"}
INDEX = {"records": 9, "sizeBytes": 90, "version": "v1", "every": 1000, "offsets": [0]}


def exported(items: dict[str, Any], **status: Any) -> dict[str, Any]:
    """Return an array as a file of an export has it."""
    return {
        "metadata": {"name": "thumbs", "namespace": "ns", "uid": "u"},
        "spec": {"type": "thumb", "parallelism": 3, "items": items},
        "status": status,
    }


def skipped(count: int, **status: Any) -> tuple[str, int]:
    """Return what is skipped of so many items, and how many that are done run again."""
    items, again = remaining_items(exported({"count": count}, **status))
    assert items == {"count": count, **({"skip": items["skip"]} if "skip" in items else {})}
    return str(items.get("skip", "")), again


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ""),
        ({"next": 0, "succeeded": 0}, ""),
        ({"next": 4, "succeeded": 4}, "0-3"),
        ({"next": 4, "succeeded": 3, "failedItems": "1"}, "0,2-3"),
        ({"next": 4, "succeeded": 3, "requeued": "0"}, "1-3"),
        ({"next": 6, "succeeded": 2, "suspects": ["0-1", "4-5"]}, "2-3"),
        ({"next": 6, "succeeded": 3, "open": [{"name": "c", "items": "3-5"}]}, "0-2"),
        ({"next": 2, "succeeded": 0, "open": [{"name": "c", "items": "0-1"}]}, ""),
    ],
    ids=[
        "new",
        "begun",
        "done",
        "failed",
        "to be run again",
        "suspects",
        "in a chunk",
        "all in a chunk",
    ],
)
def test_what_next_has_passed_is_skipped_unless_it_is_told_elsewhere(
    status: dict[str, Any], expected: str
) -> None:
    assert skipped(9, **status) == (expected, 0)


def test_where_failed_items_are_not_listed_all_that_succeeded_run_again() -> None:
    known = {"next": 6, "failedItems": "1", "failedUnlisted": 2}
    assert skipped(9, succeeded=3, **known) == ("", 3)
    before = exported({"count": 9, "skip": "0,3-4,7-8"}, succeeded=3, **known)
    assert remaining_items(before) == ({"count": 9, "skip": "0,3-4,7-8"}, 0)
    before = exported({"count": 9, "skip": "0,7-8"}, succeeded=3, **known)
    assert remaining_items(before) == ({"count": 9, "skip": "0,7-8"}, 2)


def test_what_was_skipped_stays_so_whether_next_has_passed_it_or_not() -> None:
    before = exported({"count": 9, "skip": "1,7"}, next=3, succeeded=2, failedItems="2")
    assert remaining_items(before) == ({"count": 9, "skip": "0-1,7"}, 0)
    assert remaining_items(exported({"count": 9, "skip": "7"})) == ({"count": 9, "skip": "7"}, 0)


def test_of_more_ranges_than_a_spec_has_room_for_the_longest_are_skipped_in_order() -> None:
    # Each range is three items long, but for the first, one in the middle, and the last.
    short = {0: 1, 500: 2, MAX_RANGES + 1: 1}
    ranges = tuple((5 * at, 5 * at + short.get(at, 3) - 1) for at in range(MAX_RANGES + 2))
    done = ItemRanges(ranges)
    end = ranges[-1][1] + 1
    others = str(ItemRanges.between(0, end) - done)
    notation, again = skipped(9000, next=end, succeeded=len(done), requeued=others)
    kept = ItemRanges(ranges[1:-1])
    assert (notation, len(kept.ranges)) == (str(kept), MAX_RANGES)
    assert again == 2


def test_a_status_that_counts_less_than_it_lists_has_nothing_run_again() -> None:
    assert skipped(9, next=4, succeeded=1) == ("0-3", 0)


@pytest.mark.parametrize(
    ("source", "status", "expected"),
    [
        (ROWS, {}, {"from": ROWS}),
        (ROWS, {"index": INDEX}, {"from": ROWS}),
        (
            ROWS,
            {"index": INDEX, "next": 4, "succeeded": 4},
            {"from": {**ROWS, "version": "v1"}, "skip": "0-3"},
        ),
        (
            {**ROWS, "version": "v0"},
            {"index": INDEX, "next": 4, "succeeded": 4},
            {"from": {**ROWS, "version": "v0"}, "skip": "0-3"},
        ),
    ],
    ids=["not indexed", "nothing done", "done", "of a version that was given"],
)
def test_records_of_a_file_are_skipped_in_the_version_that_was_indexed(
    source: dict[str, Any], status: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert remaining_items(exported({"from": source}, **status)) == (expected, 0)


def test_records_that_were_skipped_before_there_is_an_index_stay_so_in_any_version() -> None:
    items = {"from": ROWS, "skip": "0-3"}
    assert remaining_items(exported(items)) == (items, 0)


def test_what_a_later_version_says_of_other_things_does_not_matter() -> None:
    later = {"phase": "Paused", "reason": "ByALaterVersion", "errors": ["?"], "startTime": 7}
    assert skipped(9, next=3, succeeded=3, **later) == ("0-2", 0)


@pytest.mark.parametrize(
    "status",
    [
        {"failedItems": "5-3"},
        {"requeued": "one"},
        {"suspects": ["5-3"]},
        {"open": [{"name": "c", "items": "5-3"}]},
        {"index": {**INDEX, "version": ""}},
    ],
)
def test_a_status_that_no_operator_has_written_is_refused(status: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"5-3|interval notation|index"):
        skipped(9, next=9, succeeded=9, **status)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ({"count": 9}, {"count": 9}),
        ({"inline": [1, 2], "skip": "0"}, {"inline": [1, 2]}),
        ({"from": ROWS}, {"from": ROWS}),
        ({"from": {**ROWS, "version": "v1"}, "skip": "0-3"}, {"from": ROWS}),
    ],
)
def test_of_an_array_of_which_all_runs_no_version_and_nothing_skipped_is_left(
    items: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert unskipped_items(exported(items, next=4, succeeded=4)) == expected


def test_the_export_stays_as_it_is() -> None:
    items = {"from": {**ROWS, "version": "v1"}, "skip": "0-3"}
    array = exported(items, next=6, succeeded=6, index=INDEX)
    before = deepcopy(array)
    assert remaining_items(array)[0]["skip"] == "0-5"
    assert "skip" not in unskipped_items(array)
    assert array == before
