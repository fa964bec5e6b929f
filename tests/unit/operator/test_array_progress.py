"""The rate of an array and its expected end: what they are measured over, and when they go."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.arrays.state import ArrayState, ArrayView, read_array
from asyncjob_operator.core.arrays.decide import next_state
from asyncjob_operator.core.arrays.progress import CountSample, Progress, add_sample, measure
from support.objects.arrays import RUNNING, chunk, entry, outcome, snapshot, stored, under_way
from support.objects.snapshots import at, stamp

GOING = replace(RUNNING, generation=1)


def view(succeeded: int = 0, **spec: Any) -> ArrayView:
    return read_array(stored(replace(GOING, succeeded=succeeded, next=succeeded), **spec))


def seen(*counts: tuple[float, int]) -> list[CountSample]:
    """Return what is kept after so many items had been run at these times."""
    samples: list[CountSample] = []
    for time, count in counts:
        samples = add_sample(samples, view(count), time)
    return samples


def progress(samples: list[CountSample], succeeded: int, now: float, **changes: Any) -> Progress:
    state = replace(GOING, succeeded=succeeded, next=succeeded)
    return measure(samples, view(), replace(state, **changes), at(now))


def test_a_count_is_kept_every_five_seconds_and_one_from_before_the_last_minute() -> None:
    samples = seen((0, 0), (3, 1), (5, 2), (9, 3), (9.5, 3), (11, 4))
    assert samples == [CountSample(0, 0), CountSample(5, 2), CountSample(11, 4)]
    later = add_sample(samples, view(5), 65)
    assert later == [CountSample(5, 2), CountSample(11, 4), CountSample(65, 5)]


def test_while_no_item_is_run_the_counts_stay_as_they_are() -> None:
    assert seen((0, 0), (5, 2), (20, 2)) == [CountSample(0, 0), CountSample(5, 2)]


def test_an_array_of_a_day_keeps_a_handful_of_counts() -> None:
    samples = seen(*((second, second) for second in range(100)))
    assert len(samples) <= 14


@pytest.mark.parametrize(
    "array",
    [
        view(7, suspend=True),
        view(7, cancel=True),
        read_array(stored(replace(GOING, phase=ArrayPhase.FAILED, succeeded=7))),
    ],
    ids=["suspended", "cancelled", "failed"],
)
def test_of_an_array_that_stands_still_nothing_is_kept(array: ArrayView) -> None:
    assert add_sample(seen((0, 0), (10, 5)), array, 20) == []
    assert measure(seen((0, 0)), array, replace(GOING, succeeded=8), at(20)) == Progress()


def test_before_the_first_chunk_is_cut_nothing_is_kept() -> None:
    assert add_sample([], read_array(stored(RUNNING)), 20) == []


def test_while_the_file_of_the_items_is_counted_nothing_is_kept() -> None:
    file = {"items": {"count": None, "from": {"uri": "s3://bucket/a.csv"}}}
    counting = replace(GOING, total=0)
    assert add_sample([], read_array(stored(counting, **file)), 20) == []
    counted = replace(GOING, index=ItemIndex(25, 250, "v1", 1000, (0,)), total=25)
    assert add_sample([], read_array(stored(counted, **file)), 60) == [CountSample(60, 0)]


def test_a_redrive_begins_again() -> None:
    assert add_sample(seen((0, 0), (10, 50)), view(40), 20) == [CountSample(20, 40)]


def test_the_rate_is_that_of_the_last_minute() -> None:
    samples = seen((0, 0), (10, 10), (60, 20), (90, 25))
    # At 100 s the newest count that is a minute old is that of 10 s: 30 items in 90 s.
    assert progress(samples, 40, 100) == Progress(20, stamp(280))


def test_a_count_that_is_just_a_minute_old_is_the_one_that_is_measured_from() -> None:
    assert progress(seen((0, 0), (10, 10)), 40, 70) == Progress(30, stamp(190))


def test_a_second_is_enough_to_tell_a_rate() -> None:
    assert progress(seen((60, 0)), 10, 61) == Progress(600, stamp(70))


def test_the_rate_of_rare_chunks_is_measured_over_the_last_of_them() -> None:
    assert progress(seen((0, 0), (600, 50)), 60, 700) == Progress(6, stamp(1100))


def test_items_that_are_skipped_are_neither_run_nor_left() -> None:
    spec = {"items": {"count": 100, "skip": "0-9,90-99"}}
    array = read_array(stored(replace(GOING, succeeded=10, next=10), **spec))
    samples = add_sample([], array, 0)
    assert samples == [CountSample(0, 0)]
    state = replace(GOING, succeeded=30, next=30)
    assert measure(samples, array, state, at(60)) == Progress(20, stamp(240))


def test_failed_items_have_been_run_too() -> None:
    failed = read_array(stored(GOING)).state.failed_items
    state = replace(GOING, next=20, succeeded=10, failed_items=failed, failed_unlisted=10)
    assert measure(seen((0, 0)), view(), state, at(60)).items_per_minute == 20


@pytest.mark.parametrize(
    ("samples", "succeeded", "now"),
    [
        (seen((0, 0)), 0, 60),
        ([], 10, 60),
        (seen((60, 0)), 10, 60.9),
        (seen((0, 10)), 5, 60),
        (seen((0, 10)), 10, 60),
    ],
    ids=[
        "nothing was counted",
        "nothing was seen",
        "too short",
        "fewer than before",
        "as many as before",
    ],
)
def test_what_tells_nothing_leaves_what_was_told(
    samples: list[CountSample], succeeded: int, now: float
) -> None:
    array = read_array(stored(replace(GOING, items_per_minute=7, expected_end_time=stamp(9))))
    state = replace(array.state, succeeded=succeeded)
    assert measure(samples, array, state, at(now)) == Progress(7, stamp(9))


def test_an_expected_end_beyond_all_times_can_be_stored() -> None:
    array = read_array(stored(GOING, items={"count": 10**7}))
    state = replace(GOING, total=10**7, succeeded=1, next=1)
    rate = measure([CountSample(0, 0)], array, state, at(10**6))
    assert rate == Progress(None, "9999-12-31T23:59:59.000Z")


def ending(state: ArrayState, now: float, *, succeeded: str) -> ArrayState:
    known = snapshot(
        state,
        chunk(1),
        outcomes=[outcome(1, done=succeeded)],
        samples=[CountSample(0, 0)],
    )
    return next_state(known, at(now))


def test_the_write_that_counts_a_chunk_tells_the_rate() -> None:
    state = ending(under_way(entry(1), entry(2)), 30, succeeded="0-9")
    assert (state.items_per_minute, state.expected_end_time) == (20, stamp(300))


def test_an_array_that_has_ended_has_no_rate() -> None:
    before = replace(under_way(entry(1)), next=100, succeeded=90, items_per_minute=7)
    state = ending(before, 30, succeeded="0-9")
    assert (state.phase, state.items_per_minute, state.expected_end_time) == (
        ArrayPhase.SUCCEEDED,
        None,
        None,
    )
