"""Items that are done already are counted and not run."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.advance import MAX_CHUNK_RANGES
from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.item_ranges import NO_ITEMS, ItemRanges
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.skipped_items import done_items
from asyncjob.lifecycle.arrays.state import ArrayState, read_array
from asyncjob_operator.core.arrays.decide import next_state
from support.objects.arrays import RUNNING, entry, ranges, scattered, snapshot, stored, under_way
from support.objects.snapshots import at

INDEX = ItemIndex(25, 250, "v1", 1000, (0,))


def after(state: ArrayState = RUNNING, skip: str = "", **spec: Any) -> ArrayState:
    """Return the state after a decision about an array of 100 items, some of them skipped."""
    wanted = {"items": {"count": 100, "skip": skip}, **spec}
    return next_state(snapshot(state, spec=wanted), at(5))


def opened(state: ArrayState) -> list[str]:
    return [str(one.items) for one in state.open]


@pytest.mark.parametrize(
    ("skip", "chunks", "next_", "succeeded"),
    [
        ("", ["0-9", "10-19", "20-29"], 30, 0),
        ("0-39", ["40-49", "50-59", "60-69"], 70, 40),
        ("5-14", ["0-4,15-19", "20-29", "30-39"], 40, 10),
        ("30-49", ["0-9", "10-19", "20-29"], 50, 20),
        ("0-84", ["85-94", "95-99"], 100, 85),
        ("0-84,95-99", ["85-94"], 100, 90),
        ("0-3,5-99", ["4"], 100, 99),
        ("9,3-4,0-4", ["5-8,10-15", "16-25", "26-35"], 36, 6),
    ],
)
def test_chunks_are_cut_around_them_and_what_next_has_passed_is_counted(
    skip: str, chunks: list[str], next_: int, succeeded: int
) -> None:
    state = after(ArrayState(total=100), skip)
    assert opened(state) == chunks
    assert (state.next, state.succeeded, state.total) == (next_, succeeded, 100)
    assert sum(len(one.items) for one in state.open) + state.succeeded == state.next


def test_a_chunk_has_as_many_ranges_as_the_list_has_room_for() -> None:
    spec = {"items": {"count": 100, "skip": str(scattered(50))}, "chunkSize": 100}
    state = next_state(snapshot(spec=spec), at(5))
    assert [len(one.items.ranges) for one in state.open] == [MAX_CHUNK_RANGES, MAX_CHUNK_RANGES, 10]
    assert (state.next, state.succeeded) == (100, 50)


def test_where_the_size_of_chunks_adapts_the_last_ones_are_small_for_what_is_left() -> None:
    wanted = {"items": {"count": 100_000, "skip": "0-49999,50012-99999"}, "chunkSize": None}
    state = next_state(snapshot(replace(RUNNING, total=100_000), spec=wanted), at(5))
    alone = {"items": {"count": 12}, "chunkSize": None}
    few = next_state(snapshot(replace(RUNNING, total=12), spec=alone), at(5))
    assert [len(one.items) for one in state.open] == [len(one.items) for one in few.open]
    assert state.open[0].items.ranges[0][0] == 50_000


def test_an_array_that_is_done_altogether_ends_without_a_chunk() -> None:
    state = after(ArrayState(total=100), "0-99")
    assert (state.phase, state.succeeded, state.open) == (ArrayPhase.SUCCEEDED, 100, ())
    assert state.start_time is not None


@pytest.mark.parametrize("held", [{"suspend": True}, {"cancel": True}])
def test_nothing_is_counted_of_an_array_that_is_held(held: dict[str, Any]) -> None:
    state = after(ArrayState(total=100), "0-39", **held)
    assert (state.next, state.succeeded) == (0, 0)


def test_skipped_items_are_not_among_those_of_which_too_many_may_fail() -> None:
    failed = replace(RUNNING, next=100, failed_items=ranges("50-52"), succeeded=97)
    assert after(failed, "0-39", maxFailed=3).phase is ArrayPhase.SUCCEEDED


def in_a_file(version: str | None) -> dict[str, Any]:
    source = {"uri": "s3://bucket/rows.csv", **({"version": version} if version else {})}
    return {"items": {"from": source, "skip": "0-9,30"}}


@pytest.mark.parametrize("version", [None, "v1"])
def test_records_of_a_file_are_skipped_once_it_is_known_to_be_that_file(
    version: str | None,
) -> None:
    spec = in_a_file(version)
    assert opened(next_state(snapshot(ArrayState(), spec=spec), at(5))) == [""]
    indexed = replace(RUNNING, total=25, index=INDEX)
    state = next_state(snapshot(indexed, spec=spec), at(5))
    assert opened(state) == ["10-19", "20-24"]
    assert (state.next, state.succeeded) == (25, 10)


def test_an_array_whose_file_is_another_one_runs_nothing_and_says_the_way_out() -> None:
    indexed = replace(RUNNING, total=25, index=INDEX)
    state = next_state(snapshot(indexed, spec=in_a_file("v0")), at(5))
    assert (state.phase, state.reason) == (ArrayPhase.FAILED, ArrayReason.ITEMS_UNREADABLE)
    assert (state.next, state.open) == (0, ())
    assert "the file is v1, and items.skip is about v0" in state.message
    assert "without items.skip" in state.message
    again = snapshot(state, spec={**in_a_file("v0"), "redrive": 1})
    redriven = next_state(again, at(9))
    assert opened(next_state(snapshot(redriven, spec=in_a_file("v0")), at(10))) == []


def done(state: ArrayState, skip: str = "") -> ItemRanges:
    return done_items(read_array(stored(state, items={"count": 100, "skip": skip})))


def test_what_is_done_is_what_next_has_passed_and_is_nowhere_else() -> None:
    state = under_way(
        entry(1, "0-9"),
        entry(2, "30-39", suspect=True),
        next=60,
        requeued=ranges("12,14"),
        suspects=(ranges("20-21"), ranges("40")),
        failed_items=ranges("50-52"),
    )
    assert done(state) == ranges("10-11,13,15-19,22-29,41-49,53-59")
    assert done(state, "70-79") == ranges("10-11,13,15-19,22-29,41-49,53-59,70-79")
    assert done(RUNNING) == NO_ITEMS
    assert done(replace(RUNNING, next=100)) == ranges("0-99")


def test_where_not_all_failed_items_are_known_none_is_known_to_be_done() -> None:
    state = replace(RUNNING, next=100, failed_items=ranges("3"), failed_unlisted=1)
    assert done(state) == NO_ITEMS
    assert done(state, "0-2") == ranges("0-2")
