"""The size of chunks where the array does not say it: how it follows from how long chunks take."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob.lifecycle.arrays.advance import advance
from asyncjob.lifecycle.arrays.chunk_jobs import read_outcome
from asyncjob.lifecycle.arrays.chunk_size import (
    INITIAL_SIZE,
    MAX_SIZE,
    STEP,
    TARGET_SECONDS,
    bounded_size,
    next_size,
)
from asyncjob.lifecycle.arrays.counting import count_chunk
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.observed import ChunkOutcome, ChunkRun
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.arrays.state import ArrayState, OpenChunkEntry, read_array
from asyncjob.lifecycle.phases import Phase
from support.objects.arrays import RUNNING, entry, outcome, snapshot, stored, under_way
from support.objects.snapshots import stamp

ADAPTS = {"chunkSize": None, "items": {"count": 1_000_000}, "parallelism": 20}


def items(size: int, *, suspect: bool = False) -> OpenChunkEntry:
    """Return the entry of a chunk of so many items."""
    return OpenChunkEntry("thumbs-1", ItemRanges.between(0, size), 1, "uid-1", suspect)


def took(seconds: float, attempts: int = 1, limit: int | None = 1800, **said: Any) -> ChunkOutcome:
    """Return the outcome of a chunk whose last attempt took so long."""
    return outcome(run=ChunkRun(seconds, attempts, limit), **said)


def sizes(seconds: Callable[[int], float], steps: int, size: int = INITIAL_SIZE) -> list[int]:
    """Return the sizes after each of so many writes, a chunk of n items taking `seconds(n)`."""
    found = []
    for _ in range(steps):
        size = next_size(size, [(items(size), took(seconds(size)))])
        found.append(size)
    return found


@pytest.mark.parametrize("each", [0.0, 0.0001, 0.001, 0.01, 0.1, 0.5, 1, 3, 10, 60, 600])
def test_chunks_come_to_take_half_a_minute_whatever_an_item_takes(each: float) -> None:
    reached = sizes(lambda size: each * size, 14)
    wanted = min(max(TARGET_SECONDS / each if each else MAX_SIZE, 1), MAX_SIZE)
    assert wanted / 1.5 <= reached[-1] <= wanted * 1.5
    assert abs(reached[-2] - reached[-1]) <= 0.01 * wanted


def test_items_of_a_millisecond_are_in_the_largest_chunks_after_six_writes() -> None:
    assert sizes(lambda size: 0.001 * size, 6)[-1] == MAX_SIZE


def test_a_size_that_is_wrong_by_far_is_put_right_within_a_few_writes() -> None:
    assert sizes(lambda size: 60.0 * size, 6, MAX_SIZE)[-1] <= 4


@given(st.floats(0, 1e7), st.integers(1, MAX_SIZE), st.integers(1, MAX_SIZE))
def test_one_write_changes_the_size_by_no_more_than_a_step(
    seconds: float, size: int, chunk: int
) -> None:
    found = next_size(size, [(items(chunk), took(seconds))])
    assert 1 <= found <= MAX_SIZE
    assert size // STEP <= found <= STEP * size
    assert found <= max(size, STEP * chunk)


@given(st.floats(0.001, 60), st.integers(0, 1000))
def test_from_a_constant_pace_the_size_never_passes_what_it_has_to_be(each: float, at: int) -> None:
    reached = sizes(lambda size: each * size, 20, max(1, 10 * at))
    wanted = min(max(TARGET_SECONDS / each, 1), MAX_SIZE)
    above = [size > wanted for size in reached if abs(size - wanted) > 1]
    assert len(set(above)) <= 1


def test_with_noisy_times_chunks_take_half_a_minute_on_the_whole() -> None:
    dice = Random(7)
    reached = sizes(lambda size: 0.3 * size * dice.lognormvariate(0, 0.7), 400)[10:]
    middle = sorted(reached)[len(reached) // 2]
    assert 70 <= middle <= 140
    assert all(100 / 8 <= size <= 100 * 8 for size in reached)


def test_chunks_that_one_write_counts_are_weighed_by_their_items() -> None:
    both = [(items(100), took(10)), (items(300), took(110))]
    assert next_size(100, both) == 100  # 0.3 s an item


@pytest.mark.parametrize(
    ("one", "ended"),
    [
        (items(10, suspect=True), took(0)),
        (OpenChunkEntry("thumbs-1", ItemRanges(), 1, "uid-1"), took(0)),
        (items(10), outcome()),
        (items(10), took(1, attempts=2)),
        (items(10), took(1, phase=Phase.CANCELLED)),
        (items(10), took(1, phase=Phase.DEAD_LETTER, error_category="Internal")),
        (items(10), took(100, phase=Phase.DEAD_LETTER, error_category="Crash")),
    ],
    ids=["suspect", "index job", "no times", "retried", "cancelled", "dead letter", "crashed"],
)
def test_what_does_not_tell_how_long_its_items_take_does_not_count(
    one: OpenChunkEntry, ended: ChunkOutcome
) -> None:
    assert next_size(100, [(one, ended)]) == 100


def test_a_chunk_that_shows_nothing_does_not_hide_what_the_next_one_shows() -> None:
    assert next_size(100, [(items(10), outcome()), (items(100), took(120))]) == 50


def test_how_far_the_size_grows_is_up_to_the_largest_chunk_that_was_counted() -> None:
    both = [(items(50), took(0.05)), (items(10), took(0.01))]
    assert next_size(50, both) == 200
    assert next_size(50, both[1:]) == 50


def test_chunks_of_one_item_tell_what_an_item_takes() -> None:
    assert next_size(4, [(items(1), took(30))]) == 2


def test_a_retried_chunk_that_took_half_a_minute_does_not_show_whether_it_was_too_large() -> None:
    assert next_size(100, [(items(10), took(TARGET_SECONDS, attempts=2))]) == 100


def test_a_retried_chunk_whose_last_attempt_alone_took_too_long_makes_the_next_smaller() -> None:
    assert next_size(100, [(items(100), took(120, attempts=3))]) == 50


def test_a_chunk_that_reached_its_time_limit_makes_the_next_smaller() -> None:
    ended = took(1800, 4, phase=Phase.DEAD_LETTER, error_category="Timeout", done="0-9")
    assert next_size(100, [(items(100), ended)]) == 25


def test_at_its_time_limit_those_of_its_items_count_that_were_run_and_all_attempts() -> None:
    kind: Any = {"phase": Phase.DEAD_LETTER, "error_category": "Timeout"}
    ended = took(30, 2, limit=None, done="0-29,500-599", failed="30-49", **kind)
    assert next_size(100, [(items(100), ended)]) == 50  # 1.2 s an item
    none = took(30, limit=None, **kind)
    assert next_size(4, [(items(4), none)]) == 2  # as if one had been run


def test_of_a_short_time_limit_a_chunk_takes_a_quarter() -> None:
    assert next_size(100, [(items(100), took(10, limit=40))]) == 100
    assert next_size(100, [(items(100), took(30, limit=100_000))]) == 100
    assert next_size(100, [(items(100), took(30, limit=None))]) == 100
    both = [(items(100), took(10, limit=40)), (items(100), took(10, limit=None))]
    assert next_size(100, both) == 100


def test_within_a_limit_of_seconds_quick_items_still_come_into_larger_chunks() -> None:
    assert next_size(10, [(items(10), took(0.01, limit=4))]) == 40


@pytest.mark.parametrize(
    ("size", "left", "parallelism", "inline_bytes", "cut"),
    [
        (1000, 1_000_000, 20, 0, 1000),
        (1000, 10_000, 20, 0, 500),
        (1000, 9_981, 20, 0, 500),
        (1000, 4_000, 20, 0, 250),  # no smaller than a quarter
        (1000, 1, 20, 0, 250),
        (10, 100, 20, 0, 5),
        (1, 5, 20, 0, 1),
        (1000, 10_000, 1, 100 * 1024, 64),
        (1000, 10, 1, 100 * 1024 * 1024, 1),
    ],
)
def test_the_last_chunks_are_shared_out_and_items_of_the_array_take_little_room(
    size: int, left: int, parallelism: int, inline_bytes: int, cut: int
) -> None:
    array = read_array(stored())  # of 100 items
    array = replace(array, parallelism=parallelism, inline_bytes=inline_bytes)
    assert bounded_size(size, left, array) == cut


def lengths(state: ArrayState) -> list[int]:
    return [len(one.items) for one in state.open]


def test_the_first_chunks_are_small_and_the_status_says_so() -> None:
    state = advance(snapshot(ArrayState(), spec=ADAPTS), stamp(5))
    assert (state.chunk_size, lengths(state)) == (10, [10] * 20)


def test_the_write_that_counts_a_chunk_keeps_the_next_size_and_cuts_by_it() -> None:
    one = entry(1)
    state = under_way(one, total=1_000_000, chunk_size=10)
    known = snapshot(state, outcomes=[took(1.0, done="0-9")], spec={**ADAPTS, "parallelism": 2})
    after = advance(known, stamp(5))
    assert (after.succeeded, after.chunk_size, lengths(after)) == (10, 40, [40, 40])


def test_where_nothing_is_counted_the_size_stays() -> None:
    state = under_way(entry(1), total=1_000_000, chunk_size=77)
    after = advance(snapshot(state, spec=ADAPTS), stamp(5))
    assert after.chunk_size == 77


def test_a_small_array_is_cut_into_equal_parts_at_once() -> None:
    spec = {**ADAPTS, "items": {"count": 100}}
    assert lengths(advance(snapshot(ArrayState(), spec=spec), stamp(5))) == [5] * 20


def test_items_to_be_run_again_are_shared_out_as_well() -> None:
    state = replace(RUNNING, next=100, requeued=ItemRanges.between(0, 40), chunk_size=1000)
    spec = {**ADAPTS, "items": {"count": 100}, "parallelism": 2}
    assert lengths(advance(snapshot(replace(state, chunk_size=40), spec=spec), stamp(5))) == [
        20,
        20,
    ]


def test_large_items_of_the_array_are_spread_over_chunks() -> None:
    spec = {"chunkSize": None, "items": {"inline": ["x" * 4094] * 60}, "parallelism": 1}
    state = replace(RUNNING, total=60, chunk_size=1000)
    assert lengths(advance(snapshot(state, spec=spec), stamp(5))) == [15]


def test_an_array_that_says_its_size_keeps_it_and_shows_none_in_the_status() -> None:
    state = under_way(entry(1), total=1_000_000)
    known = snapshot(
        state, outcomes=[took(0.1, done="0-9")], spec={"items": ADAPTS["items"], "chunkSize": 500}
    )
    after = advance(known, stamp(5))
    assert (after.chunk_size, lengths(after)) == (None, [500] * 3)


def test_before_the_records_of_a_file_are_known_there_is_no_size() -> None:
    spec = {"chunkSize": None, "items": {"from": {"uri": "s3://bucket/rows.csv"}}}
    assert advance(snapshot(ArrayState(), spec=spec), stamp(5)).chunk_size is None


def test_an_array_that_ends_keeps_the_size_that_its_redrive_goes_on_with() -> None:
    state = under_way(entry(1), total=10, chunk_size=320, phase=ArrayPhase.RUNNING)
    spec = {**ADAPTS, "items": {"count": 10}}
    ended = advance(snapshot(state, outcomes=[outcome(failed="0-9")], spec=spec), stamp(5))
    assert (ended.phase, ended.chunk_size) == (ArrayPhase.FAILED, 320)


def timed_out(done: str, one: OpenChunkEntry, *, adapts: bool) -> ArrayState:
    ended = took(
        1800,
        phase=Phase.DEAD_LETTER,
        reason="RetriesExhausted",
        error_category="Timeout",
        done=done,
    )
    before = ArrayState(total=10, next=10, open=(one,))
    return count_chunk(before, one, ended, cancelled=False, adapts=adapts)


def test_the_rest_of_a_chunk_that_was_too_large_is_run_again_and_no_item_is_suspected() -> None:
    state = timed_out("0-3", items(10), adapts=True)
    assert (str(state.requeued), state.suspects, state.succeeded) == ("4-9", (), 4)
    state = timed_out("0-7", items(10), adapts=True)
    assert (str(state.requeued), state.suspects) == ("8-9", ())


@pytest.mark.parametrize(("size", "suspects"), [(None, []), (10, ["4-6", "7-9"])])
def test_only_a_chunk_whose_size_nobody_has_chosen_can_have_been_too_large(
    size: int | None, suspects: list[str]
) -> None:
    kind: Any = {"reason": "RetriesExhausted", "error_category": "Timeout"}
    ended = took(1800, phase=Phase.DEAD_LETTER, done="0-3", **kind)
    spec = {"chunkSize": size, "suspend": True}
    after = advance(snapshot(under_way(entry(1)), outcomes=[ended], spec=spec), stamp(5))
    assert [str(one) for one in after.suspects] == suspects
    assert str(after.requeued) == ("" if suspects else "4-9")


@pytest.mark.parametrize(
    ("done", "suspect", "adapts"), [("", False, True), ("0-3", True, True), ("0-3", False, False)]
)
def test_where_the_size_is_not_to_blame_the_item_that_hangs_is_looked_for(
    done: str, suspect: bool, adapts: bool
) -> None:
    state = timed_out(done, items(10, suspect=suspect), adapts=adapts)
    assert (bool(state.requeued), len(state.suspects)) == (False, 2)


def test_the_last_item_that_is_left_of_a_chunk_at_its_time_limit_fails() -> None:
    state = timed_out("0-8", items(10), adapts=True)
    assert (str(state.failed_items), state.requeued) == ("9", ItemRanges())


def read(**status: Any) -> ChunkRun | None:
    job = {"metadata": {"uid": "uid-1"}, "status": {"phase": "Succeeded", **status}}
    return read_outcome(job, entry(1)).run


def test_a_chunks_times_are_those_of_its_last_attempt() -> None:
    times = {"firstStartTime": stamp(1), "startTime": stamp(3), "completionTime": stamp(10)}
    limit = {"effective": {"executionTimeoutSeconds": 60}}
    assert read(attempt=2, **times, **limit) == ChunkRun(7.0, 2, 60)
    assert read(attempt=1, **times) == ChunkRun(7.0, 1)
    assert read(startTime=stamp(3), completionTime=stamp(1)) == ChunkRun(0.0, 0)
    assert read(completionTime=stamp(1)) is None
    assert read(startTime="yesterday", completionTime=stamp(1)) is None
