"""Which items of an ended chunk have failed, which are run again, and what people read of it."""

from dataclasses import replace

import pytest

from asyncjob.lifecycle.arrays.chunks import ERRORS_KEPT, ItemError
from asyncjob.lifecycle.arrays.counting import (
    count_chunk,
    fail_items,
    return_chunk,
    return_items,
)
from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.observed import ChunkOutcome
from asyncjob.lifecycle.arrays.phases import ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState, OpenChunkEntry
from asyncjob.lifecycle.phases import Phase
from support.objects.arrays import entry, outcome, ranges, scattered, under_way

DEAD, CANCELLED = Phase.DEAD_LETTER, Phase.CANCELLED
ENTRY, OTHER = entry(2), entry(1)
SUSPECT = replace(ENTRY, suspect=True)
BEFORE = under_way(OTHER, ENTRY, succeeded=40, failed_items=ranges("3"))
CRASH = {"reason": "CrashBudgetExhausted", "error_category": "Crash", "message": "it died"}
TIMEOUT = {"reason": "ExecutionTimeout", "error_category": "Timeout", "message": "too slow"}
QUEUED_TOO_LONG = {"reason": "QueueTimeout", "error_category": "Timeout", "message": "no worker"}
UNREADABLE = {
    "reason": "NotRetryable",
    "error_type": "ItemsUnreadable",
    "error_category": "Validation",
    "message": "the file is gone",
}

NOT_STORED = {**UNREADABLE, "error_type": "ResultsNotStored", "message": "no bucket"}
REFUSED = {**NOT_STORED, "error_type": "ResultsRefused"}
UNKNOWN = {"reason": "UnknownType", "error_category": "NotFound", "message": "nobody has it"}


def count(
    ended: ChunkOutcome, one: OpenChunkEntry = ENTRY, *, cancelled: bool = False
) -> ArrayState:
    """Return the state after the chunk of items 10-19 has ended so."""
    before = replace(BEFORE, open=(OTHER, one))
    after = count_chunk(before, one, ended, cancelled=cancelled)
    assert after.open == (OTHER,)
    return after


def places(state: ArrayState) -> tuple[int, str, str, list[str]]:
    """Return how many succeeded, and which items failed, are run again, and are suspects."""
    return (
        state.succeeded,
        str(state.failed_items),
        str(state.requeued),
        [str(one) for one in state.suspects],
    )


@pytest.mark.parametrize(
    ("ended", "after"),
    [
        (outcome(2, done="10-19"), (50, "3", "", [])),
        (outcome(2, done="10-16,18", failed="17,19"), (48, "3,17,19", "", [])),
        (outcome(2, done="5-30", failed="40"), (50, "3", "", [])),
        (outcome(2, done="10-18", failed="18-19"), (49, "3,19", "", [])),
        (outcome(2, DEAD, done="10-16", failed="17", **CRASH), (47, "3,17", "", ["18", "19"])),
        (outcome(2, DEAD, done="10-13", **CRASH), (44, "3", "", ["14-16", "17-19"])),
        (outcome(2, DEAD, done="10-14", **TIMEOUT), (45, "3", "", ["15-17", "18-19"])),
        (outcome(2, DEAD, done="10-18", **TIMEOUT), (49, "3,19", "", [])),
        (outcome(2, DEAD, done="10-14", **QUEUED_TOO_LONG), (45, "3", "15-19", [])),
        (outcome(2, DEAD, done="10-14", **UNREADABLE), (45, "3", "15-19", [])),
        (outcome(2, DEAD, done="10-14", **NOT_STORED), (45, "3", "15-19", [])),
        (outcome(2, DEAD, done="10-14", **REFUSED), (45, "3", "15-19", [])),
        (outcome(2, DEAD, done="10-14", reason="Cancelled"), (45, "3,15-19", "", [])),
        (outcome(2, CANCELLED, done="10-14", reason="CancelRequested"), (45, "3,15-19", "", [])),
    ],
    ids=[
        "all items done",
        "two items failed",
        "items of other chunks are not its own to report",
        "an item that is reported twice is done",
        "a crash: what ran is halved",
        "a crash: the larger half first",
        "the time limit is like a crash",
        "the time limit with one item left: that item",
        "never claimed: run again",
        "the file cannot be read: nobody's failure",
        "the store does not take the results: nobody's failure either",
        "nor if it refuses them",
        "a dead letter for another reason: the rest failed",
        "cancelled alone: the rest failed",
    ],
)
def test_each_item_of_an_ended_chunk_is_in_one_place(
    ended: ChunkOutcome, after: tuple[int, str, str, list[str]]
) -> None:
    assert places(count(ended)) == after


def test_what_a_cancelled_array_has_not_run_is_nobodys_failure() -> None:
    cut_short = outcome(2, CANCELLED, done="10-13", failed="14", reason="CancelRequested")
    assert places(count(cut_short, cancelled=True)) == (44, "3,14", "15-19", [])


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        (
            outcome(2, DEAD, done="10-18", **CRASH),
            ItemError(19, "Crash", "Crash", "it died"),
        ),
        (
            outcome(2, DEAD, done="10-18", **{**CRASH, "message": ""}),
            ItemError(19, "Crash", "Crash", "Crash"),
        ),
        (
            outcome(2, DEAD, done="10-18", **TIMEOUT),
            ItemError(19, "ExecutionTimeout", "Timeout", "too slow"),
        ),
        (
            outcome(2, DEAD, done="10-18", **{**TIMEOUT, "message": ""}),
            ItemError(19, "ExecutionTimeout", "Timeout", "ExecutionTimeout"),
        ),
        (
            outcome(2, CANCELLED, done="10-17", reason="CancelRequested", message="by hand"),
            ItemError(
                18, "CancelRequested", "Internal", "the chunk ended Cancelled (2 items): by hand"
            ),
        ),
        (
            outcome(2, CANCELLED, done="10-18", message="by hand"),
            ItemError(19, "Cancelled", "Internal", "the chunk ended Cancelled: by hand"),
        ),
        (
            outcome(2, DEAD, done="11-19", reason="NotRetryable", message="bad handler"),
            ItemError(10, "NotRetryable", "Internal", "the chunk ended DeadLetter: bad handler"),
        ),
    ],
    ids=[
        "crash",
        "crash without a message",
        "time limit",
        "time limit without a message",
        "chunk cancelled",
        "chunk cancelled without a reason",
        "the handler as a whole",
    ],
)
def test_of_items_that_fail_with_their_chunk_people_read_why(
    ended: ChunkOutcome, error: ItemError
) -> None:
    assert count(ended).errors == (error,)


@pytest.mark.parametrize("reason", ["CrashBudgetExhausted", "RetriesExhausted", "NotRetryable"])
@pytest.mark.parametrize("category", ["Crash", "Timeout"])
def test_an_item_is_suspected_for_crashes_and_the_time_limit_only(
    reason: str, category: str
) -> None:
    ended = outcome(2, DEAD, reason=reason, error_category=category)
    assert places(count(ended))[3] == ["10-14", "15-19"]
    assert places(count(replace(ended, error_category="Internal")))[1] == "3,10-19"
    assert places(count(replace(ended, reason="DependencyFailed")))[1] == "3,10-19"
    assert places(count(replace(ended, phase=CANCELLED)))[1] == "3,10-19"


@pytest.mark.parametrize(
    ("phase", "message"),
    [(DEAD, "the file is gone"), (CANCELLED, None)],
    ids=["a dead letter stops the array", "any other end does not"],
)
def test_a_chunk_that_cannot_read_the_file_stops_the_array(
    phase: Phase, message: str | None
) -> None:
    state = count(outcome(2, phase, **UNREADABLE))
    assert state.reason == (ArrayReason.ITEMS_UNREADABLE if message else None)
    assert state.message == (message or "")


@pytest.mark.parametrize("ended", [NOT_STORED, REFUSED], ids=["later", "never"])
@pytest.mark.parametrize("cancelled", [False, True], ids=["goes on", "cancelled"])
def test_a_chunk_whose_results_cannot_be_stored_stops_the_array(
    ended: dict[str, str], *, cancelled: bool
) -> None:
    state = count(outcome(2, DEAD, done="10", **ended), cancelled=cancelled)
    assert (state.reason, state.message) == (ArrayReason.RESULTS_NOT_STORED, "no bucket")
    assert places(state) == (41, "3", "11-19", [])


@pytest.mark.parametrize("cancelled", [False, True], ids=["goes on", "cancelled"])
def test_a_chunk_whose_type_no_worker_has_stops_the_array_and_fails_no_item(
    *, cancelled: bool
) -> None:
    state = count(outcome(2, DEAD, done="10", **UNKNOWN), cancelled=cancelled)
    assert (state.reason, state.message) == (ArrayReason.UNKNOWN_TYPE, "nobody has it")
    assert places(state) == (41, "3", "11-19", [])


def test_a_suspect_that_was_not_run_stays_one() -> None:
    assert places(count(outcome(2, DEAD, **QUEUED_TOO_LONG), SUSPECT)) == (40, "3", "", ["10-19"])
    assert places(return_chunk(replace(BEFORE, open=(SUSPECT,)), SUSPECT)) == (
        40,
        "3",
        "",
        ["10-19"],
    )


def test_the_items_of_a_chunk_that_was_deleted_are_run_again() -> None:
    state = return_chunk(replace(BEFORE, requeued=ranges("5")), ENTRY)
    assert places(state) == (40, "3", "5,10-19", [])
    assert state.open == (OTHER,)


INDEX_JOB = OpenChunkEntry("thumbs-1", ranges(""), 1, "uid-1")
INDEX = ItemIndex(2, 20, "v1", 1000, (0,))


@pytest.mark.parametrize(
    ("ended", "reason", "message"),
    [
        (outcome(1, index=INDEX), None, ""),
        (outcome(1, DEAD, **QUEUED_TOO_LONG), None, ""),
        (outcome(1, DEAD, **UNREADABLE), ArrayReason.ITEMS_UNREADABLE, "the file is gone"),
        (outcome(1, DEAD, **UNKNOWN), ArrayReason.UNKNOWN_TYPE, "nobody has it"),
        (
            outcome(1, CANCELLED, message="by hand"),
            ArrayReason.ITEMS_UNREADABLE,
            "the index job ended Cancelled: by hand",
        ),
        (
            outcome(1),
            ArrayReason.ITEMS_UNREADABLE,
            "the index job ended Succeeded: the index job reports nothing that can be understood",
        ),
        (
            outcome(1, DEAD),
            ArrayReason.ITEMS_UNREADABLE,
            "the index job reports nothing that can be understood",
        ),
    ],
    ids=[
        "the records are found",
        "no worker took it: another one is cut",
        "the file cannot be read",
        "no worker has its type",
        "somebody has cancelled it",
        "its result says nothing",
        "it says nothing at all",
    ],
)
def test_an_index_job_finds_the_items_or_says_why_there_are_none(
    ended: ChunkOutcome, reason: ArrayReason | None, message: str
) -> None:
    state = count_chunk(under_way(INDEX_JOB, total=0), INDEX_JOB, ended, cancelled=False)
    assert (state.reason, state.message, state.open) == (reason, message, ())
    assert (state.index, state.total) == ((INDEX, 2) if ended.index else (None, 0))
    assert (state.succeeded, state.failed) == (0, 0)


def test_the_newest_errors_are_kept() -> None:
    errors = [ItemError(item, "ValueError", "Internal", "no") for item in range(ERRORS_KEPT + 5)]
    state = fail_items(BEFORE, ranges("10-14"), errors[:5])
    assert state.errors == tuple(errors[:5])
    state = fail_items(state, ranges("15-34"), errors[5:])
    assert state.errors == tuple(errors[5:])
    assert ERRORS_KEPT == 20  # the schema's most


def test_items_to_be_run_again_that_take_a_thousand_ranges_are_all_kept() -> None:
    assert return_items(ArrayState(), scattered(1000)).requeued == scattered(1000)


def test_items_to_be_run_again_that_are_too_scattered_fail_and_say_so() -> None:
    state = return_items(ArrayState(requeued=scattered(999)), scattered(3, start=2000))
    assert len(state.requeued.ranges) == 1000
    assert str(state.failed_items) == "2002,2004"
    message = "2 items to be run again are too scattered to be kept"
    assert state.errors == (ItemError(2002, "TooScattered", "Internal", message),)
