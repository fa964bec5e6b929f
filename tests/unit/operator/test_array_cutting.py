"""Which chunks are cut: of which items, how many at a time, and when none is."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.advance import MAX_CHUNK_RANGES
from asyncjob.lifecycle.arrays.chunks import chunk_name
from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.arrays.decide import next_state
from asyncjob_operator.core.arrays.snapshot import (
    ArraySnapshot,
)
from support.objects.arrays import (
    OPERATOR,
    RUNNING,
    chunk,
    entry,
    outcome,
    ranges,
    scattered,
    snapshot,
    under_way,
)
from support.objects.snapshots import at, stamp

FILE = {"items": {"from": {"uri": "s3://bucket/rows.csv"}}}
INDEX = ItemIndex(25, 250, "v1", 1000, (0,))


def cut(known: ArraySnapshot) -> list[str]:
    """Return the items of the chunks that are cut, an exclamation mark behind suspects."""
    state = next_state(known, at(5))
    listed = {one.name for one in known.array.state.open}
    new = [one for one in state.open if one.name not in listed]
    assert not any(one.uid for one in new)
    return [f"{one.items}{'!' * one.suspect}" for one in new]


def test_a_new_array_is_cut_into_as_many_chunks_as_may_be_under_way() -> None:
    state = next_state(snapshot(ArrayState(total=100)), at(5))
    assert [(str(one.items), one.generation) for one in state.open] == [
        ("0-9", 1),
        ("10-19", 2),
        ("20-29", 3),
    ]
    assert replace(state, open=()) == ArrayState(
        phase=ArrayPhase.RUNNING,
        total=100,
        next=30,
        generation=3,
        writer=OPERATOR,
        claims=1,
        start_time=stamp(5),
    )


def test_a_chunks_name_says_array_first_item_and_how_many_were_cut_before() -> None:
    state = next_state(snapshot(replace(RUNNING, next=40, generation=7)), at(5))
    names = [chunk_name("thumbs", "uid-a", 40 + 10 * more, 8 + more) for more in range(3)]
    assert [one.name for one in state.open] == names
    again = next_state(snapshot(replace(RUNNING, next=100, requeued=ranges("40"))), at(5))
    assert again.open[0].name == chunk_name("thumbs", "uid-a", 40, 1)
    whole = next_state(snapshot(ArrayState(), spec=FILE), at(5))
    assert whole.open[0].name == chunk_name("thumbs", "uid-a", -1, 1)


def test_the_last_chunk_has_what_is_left() -> None:
    assert cut(snapshot(replace(RUNNING, next=85))) == ["85-94", "95-99"]


def test_cutting_again_leaves_the_time_of_the_first_cut_and_renews_the_claim() -> None:
    state = next_state(snapshot(replace(RUNNING, next=90, claims=6)), at(5))
    assert (state.start_time, state.claims) == (stamp(0), 7)


@pytest.mark.parametrize(
    ("running", "ended", "beside", "room"),
    [
        (0, 0, 0, 3),
        (2, 0, 0, 1),
        (3, 0, 0, 0),
        (0, 3, 0, 3),
        (0, 3, 1, 2),
        (0, 0, 4, 2),
        (0, 0, 5, 1),
        (0, 0, 6, 0),
        (1, 2, 1, 2),
        (1, 2, 2, 1),
        (1, 2, 3, 0),
        (1, 2, 9, 0),
    ],
)
def test_no_more_than_three_chunks_are_under_way_and_no_more_than_six_exist(
    running: int, ended: int, beside: int, room: int
) -> None:
    """Of three that may be under way: so many run, have just ended, and are not deleted yet."""
    open_ = [entry(number) for number in range(1, running + ended + 1)]
    known = snapshot(
        under_way(*open_),
        *(chunk(number) for number in range(1, running + 1)),
        *(chunk(number, Phase.SUCCEEDED) for number in range(running + 1, running + ended + 1)),
        *(chunk(20 + number, Phase.SUCCEEDED) for number in range(beside)),
        outcomes=[
            outcome(number, done=str(open_[number - 1].items))
            for number in range(running + 1, running + ended + 1)
        ],
    )
    assert len(cut(known)) == room


@pytest.mark.parametrize(
    ("state", "chunks"),
    [
        (replace(RUNNING, next=90, requeued=ranges("3,7-8")), ["3,7-8", "90-99"]),
        (
            replace(RUNNING, next=90, requeued=ranges("3,20-35")),
            ["3,20-28", "29-35", "90-99"],
        ),
        (replace(RUNNING, next=90, suspects=(ranges("5-6"),)), ["5-6!", "90-99"]),
        (
            replace(RUNNING, next=90, requeued=ranges("3"), suspects=(ranges("5"), ranges("9"))),
            ["5!", "3", "90-99"],
        ),
    ],
    ids=[
        "those to be run again before new ones",
        "no more of them than a chunk has",
        "suspects first, as many as there are",
        "one group of suspects at a time, beside others",
    ],
)
def test_the_next_chunk_has(state: ArrayState, chunks: list[str]) -> None:
    assert cut(snapshot(state)) == chunks
    after = next_state(snapshot(state), at(5))
    assert after.next == 100
    assert not after.requeued
    assert after.suspects == state.suspects[1:]


def test_while_suspects_run_the_next_ones_wait() -> None:
    state = under_way(entry(1, "5", suspect=True), suspects=(ranges("9"),), next=100)
    assert cut(snapshot(state, chunk(1))) == []


def test_a_chunk_of_scattered_items_has_as_many_ranges_as_the_list_has_room_for() -> None:
    state = replace(RUNNING, next=100, requeued=scattered(MAX_CHUNK_RANGES + 1))
    chunks = cut(snapshot(state, spec={"chunkSize": 50}))
    assert chunks == [str(scattered(MAX_CHUNK_RANGES)), str(2 * MAX_CHUNK_RANGES)]
    assert MAX_CHUNK_RANGES == 20


def test_of_a_file_only_the_job_that_finds_its_records_is_cut_until_it_has() -> None:
    found = replace(RUNNING, index=INDEX, total=25)
    assert cut(snapshot(ArrayState(), spec=FILE)) == [""]
    waiting = replace(RUNNING, total=0, open=(replace(entry(1), items=ranges("")),))
    assert cut(snapshot(waiting, chunk(1), spec=FILE)) == []
    assert cut(snapshot(found, spec=FILE)) == ["0-9", "10-19", "20-24"]


@pytest.mark.parametrize(
    ("state", "spec", "goes_on"),
    [
        (RUNNING, {"suspend": True}, False),
        (RUNNING, {"cancel": True}, False),
        (replace(RUNNING, reason=ArrayReason.ITEMS_UNREADABLE), {}, False),
        (replace(RUNNING, failed_unlisted=1), {}, False),
        (replace(RUNNING, failed_items=ranges("1-9")), {}, True),
        (replace(RUNNING, failed_items=ranges("1-2")), {"maxFailed": 2}, True),
        (replace(RUNNING, failed_items=ranges("1-3")), {"maxFailed": 2}, False),
        (replace(RUNNING, failed_items=ranges("1")), {"maxFailed": 0}, False),
        (replace(RUNNING, failed_items=ranges("1-7")), {"maxFailedPercent": 7}, True),
        (replace(RUNNING, failed_items=ranges("1-8")), {"maxFailedPercent": 7}, False),
    ],
    ids=[
        "not while suspended",
        "not once it is cancelled",
        "not if the file cannot be read",
        "not if not all failed items are known",
        "with failed items and no limit",
        "with as many failed items as may",
        "not with one more",
        "not with one where none may",
        "with as many percent as may",
        "not with one more than that",
    ],
)
def test_chunks_are_cut(state: ArrayState, spec: dict[str, Any], goes_on: bool) -> None:
    assert bool(cut(snapshot(replace(state, next=50), spec=spec))) is goes_on
