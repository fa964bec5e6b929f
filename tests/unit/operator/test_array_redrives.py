"""Failed items that are run again and suspects that are tried apart, as far as there is room."""

from dataclasses import replace

import pytest

from asyncjob.lifecycle.arrays.chunks import ItemError
from asyncjob.lifecycle.arrays.counting import MAX_RANGES, count_chunk, redrive
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState, read_array
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.array import MAX_ITEM_RANGES
from support.objects.arrays import RUNNING, entry, outcome, ranges, scattered, stored
from support.objects.snapshots import stamp

FAILED = replace(
    RUNNING,
    phase=ArrayPhase.FAILED,
    reason=ArrayReason.ITEMS_FAILED,
    message="3 of 100 items have failed",
    next=100,
    succeeded=97,
    failed_items=ranges("3,11-12"),
    completion_time=stamp(50),
)


def redriven(state: ArrayState) -> ArrayState:
    """Return the state of the array once its redrive has been acted on."""
    return redrive(read_array(stored(state, redrive=2)))


def test_the_schema_has_room_for_as_many_ranges_as_are_kept() -> None:
    assert MAX_RANGES == MAX_ITEM_RANGES


def test_a_redrive_runs_the_failed_items_again() -> None:
    assert redriven(replace(FAILED, requeued=ranges("20"))) == replace(
        FAILED,
        phase=ArrayPhase.RUNNING,
        reason=ArrayReason.REDRIVEN,
        message="4 items are run again",
        requeued=ranges("3,11-12,20"),
        failed_items=ranges(""),
        completion_time=None,
        redrives=2,
    )


@pytest.mark.parametrize(
    ("state", "refused"),
    [
        (replace(FAILED, failed_items=scattered(1000)), False),
        (replace(FAILED, failed_items=scattered(1000), requeued=ranges("5000")), True),
        (replace(FAILED, failed_unlisted=1), True),
    ],
    ids=["a thousand ranges", "one range more", "not all failed items are known"],
)
def test_a_redrive_of_more_than_the_status_has_room_for_is_refused(
    state: ArrayState, refused: bool
) -> None:
    after = redriven(state)
    if not refused:
        assert (after.phase, after.reason) == (ArrayPhase.RUNNING, ArrayReason.REDRIVEN)
        return
    assert after == replace(
        state,
        reason=ArrayReason.REDRIVE_REFUSED,
        message="the failed items take more than 1000 ranges, so not all are known",
        redrives=2,
    )


def after_a_crash(suspects: int) -> ArrayState:
    """Return the state once a chunk of two items has died beside so many suspects."""
    one = entry(1, "7,9")
    state = replace(RUNNING, open=(one,), suspects=(scattered(suspects, start=100),))
    dead = outcome(
        1,
        Phase.DEAD_LETTER,
        reason="CrashBudgetExhausted",
        error_category="Crash",
        message="it died",
    )
    return count_chunk(state, one, dead, cancelled=False)


def test_suspects_are_tried_apart_as_long_as_there_is_room_for_them() -> None:
    state = after_a_crash(998)
    assert [str(one) for one in state.suspects[1:]] == ["7", "9"]
    assert (state.failed, state.errors) == (0, ())


def test_suspects_that_there_is_no_room_for_fail_and_say_so() -> None:
    state = after_a_crash(999)
    assert [str(one) for one in state.suspects[1:]] == ["7"]
    assert str(state.failed_items) == "9"
    message = "1 items are too scattered to be tried apart: it died"
    assert state.errors == (ItemError(9, "Crash", "Crash", message),)
