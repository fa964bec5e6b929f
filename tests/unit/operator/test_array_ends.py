"""How arrays end: phase, reason and message, at each limit; and what people read before that."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.advance import advance
from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState
from asyncjob.lifecycle.phases import Phase
from support.objects.arrays import (
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
DONE = replace(RUNNING, next=100, succeeded=100)
ONE_FAILED = replace(DONE, succeeded=99, failed_items=ranges("3"))
TWO_FAILED = replace(DONE, succeeded=98, failed_items=ranges("3,7"))
THREE_FAILED = replace(DONE, succeeded=97, failed_items=ranges("3,7-8"))
UNREADABLE = replace(RUNNING, reason=ArrayReason.ITEMS_UNREADABLE, message="the file is gone")
NOT_STORED = replace(RUNNING, reason=ArrayReason.RESULTS_NOT_STORED, message="no bucket")
EMPTY = replace(RUNNING, total=0, index=ItemIndex(0, 12, "v1", 1000, ()))


@pytest.mark.parametrize(
    ("state", "spec", "end"),
    [
        (DONE, {}, ("Succeeded", None, "")),
        (TWO_FAILED, {}, ("Failed", "ItemsFailed", "2 of 100 items have failed")),
        (TWO_FAILED, {"maxFailed": 2}, ("Succeeded", None, "")),
        (TWO_FAILED, {"maxFailedPercent": 2}, ("Succeeded", None, "")),
        (
            THREE_FAILED,
            {"maxFailed": 2},
            ("Failed", "TooManyFailed", "3 items have failed, and at most 2 may"),
        ),
        (
            THREE_FAILED,
            {"maxFailedPercent": 2},
            ("Failed", "TooManyFailed", "3 items have failed, and at most 2 may"),
        ),
        (
            ONE_FAILED,
            {"maxFailed": 0},
            ("Failed", "TooManyFailed", "1 item has failed, and at most 0 may"),
        ),
        (
            replace(TWO_FAILED, failed_unlisted=1),
            {},
            (
                "Failed",
                "TooScattered",
                "the failed items take more ranges than the status has room for",
            ),
        ),
        (UNREADABLE, {}, ("Failed", "ItemsUnreadable", "the file is gone")),
        (NOT_STORED, {}, ("Failed", "ResultsNotStored", "no bucket")),
        (EMPTY, FILE, ("Succeeded", None, "the file of the items has no records")),
        (RUNNING, {"cancel": True}, ("Cancelled", "CancelRequested", "")),
        (DONE, {"cancel": True}, ("Cancelled", "CancelRequested", "")),
        (UNREADABLE, {"cancel": True}, ("Cancelled", "CancelRequested", "")),
        (DONE, {"suspend": True}, ("Succeeded", None, "")),
    ],
    ids=[
        "all items are done",
        "items failed, and no limit is set",
        "as many failed as may",
        "as many percent failed as may",
        "one more failed than may",
        "more percent failed than may",
        "one failed where none may",
        "too many failed to list them",
        "the file cannot be read",
        "the results cannot be stored",
        "the file has no records",
        "cancelled",
        "cancelled with the last item done",
        "cancelled, although the file could not be read",
        "suspended with the last item done",
    ],
)
def test_once_no_chunk_is_open_and_none_will_be_the_array_ends(
    state: ArrayState, spec: dict[str, Any], end: tuple[str, str | None, str]
) -> None:
    ended = advance(snapshot(state, spec=spec), at(5).timestamp)
    assert (ended.phase, ended.reason, ended.message) == end
    assert ended.completion_time == stamp(5)


@pytest.mark.parametrize(
    ("state", "spec"),
    [
        (DONE, {}),
        (THREE_FAILED, {"maxFailed": 2}),
        (UNREADABLE, {}),
        (DONE, {"cancel": True}),
    ],
    ids=["all items are cut", "too many failed", "the file cannot be read", "cancelled"],
)
def test_as_long_as_a_chunk_is_open_no_array_ends(state: ArrayState, spec: Any) -> None:
    state = replace(state, open=(entry(1),))
    after = advance(snapshot(state, chunk(1), spec=spec), at(5).timestamp)
    assert (after.phase, after.completion_time) == (ArrayPhase.RUNNING, None)


@pytest.mark.parametrize(
    "state",
    [
        replace(RUNNING, next=99),
        replace(DONE, requeued=ranges("3")),
        replace(DONE, suspects=(ranges("3"),)),
    ],
    ids=["new ones", "to be run again", "suspects"],
)
def test_an_array_that_is_suspended_with_items_left_waits(state: ArrayState) -> None:
    after = advance(snapshot(state, spec={"suspend": True}), at(5).timestamp)
    assert (after.phase, after.completion_time) == (ArrayPhase.RUNNING, None)


@pytest.mark.parametrize("state", [UNREADABLE, NOT_STORED], ids=["items", "results"])
def test_that_a_store_fails_is_not_forgotten_while_an_array_is_suspended(state: ArrayState) -> None:
    suspended = advance(snapshot(state, spec={"suspend": True}), at(5).timestamp)
    assert (suspended.reason, suspended.message) == (state.reason, state.message)
    resumed = advance(snapshot(suspended), at(6).timestamp)
    assert resumed.reason is state.reason
    assert resumed.open == suspended.open


def test_an_array_whose_file_has_not_been_read_waits_while_it_is_suspended() -> None:
    after = advance(snapshot(ArrayState(), spec={**FILE, "suspend": True}), at(5).timestamp)
    assert (after.phase, after.completion_time) == (ArrayPhase.PENDING, None)


def test_an_array_that_is_too_large_fails_before_a_chunk_is_cut() -> None:
    after = advance(snapshot(ArrayState(), oversize="payload has 70000 bytes"), at(5).timestamp)
    assert (after.phase, after.reason, after.message, after.open) == (
        ArrayPhase.FAILED,
        ArrayReason.PAYLOAD_TOO_LARGE,
        "payload has 70000 bytes",
        (),
    )
    assert after.completion_time == stamp(5)


@pytest.mark.parametrize(
    ("reason", "spec", "after"),
    [
        (None, {"suspend": True}, ("Suspended", "no chunk is created or claimed")),
        (None, {"cancel": True}, ("CancelRequested", "")),
        (None, {"cancel": True, "suspend": True}, ("CancelRequested", "")),
        (ArrayReason.SUSPENDED, {}, (None, "")),
        (ArrayReason.CANCEL_REQUESTED, {}, (None, "")),
        (ArrayReason.REDRIVEN, {}, ("Redriven", "before")),
        (None, {}, (None, "before")),
    ],
    ids=[
        "suspended",
        "cancelled",
        "cancelled while suspended",
        "resumed",
        "no longer cancelled",
        "redriven",
        "as before",
    ],
)
def test_while_chunks_are_open_people_read_why_nothing_new_happens(
    reason: ArrayReason | None, spec: Any, after: tuple[str | None, str]
) -> None:
    state = replace(DONE, open=(entry(1),), reason=reason, message="before")
    seen = advance(snapshot(state, chunk(1), spec=spec), at(5).timestamp)
    assert (seen.reason, seen.message) == after


def test_chunks_that_end_together_are_counted_together_and_end_the_array() -> None:
    state = under_way(entry(1), entry(2), next=100, succeeded=80)
    ended = [outcome(1, done="0-9"), outcome(2, done="10-19")]
    after = advance(snapshot(state, outcomes=ended), at(5).timestamp)
    assert (after.phase, after.succeeded, after.open) == (ArrayPhase.SUCCEEDED, 100, ())


def test_items_of_a_cancelled_arrays_chunks_that_have_not_run_have_not_failed() -> None:
    ended = outcome(1, Phase.CANCELLED, done="0-3")
    after = advance(
        snapshot(under_way(entry(1)), outcomes=[ended], spec={"cancel": True}), at(5).timestamp
    )
    assert (after.phase, after.succeeded, after.failed) == (ArrayPhase.CANCELLED, 4, 0)


def test_the_failed_items_that_there_is_room_for_do_not_end_the_array() -> None:
    state = replace(RUNNING, total=5000, next=2000, failed_items=scattered(1000))
    spec = {"items": {"count": 5000}}
    assert advance(snapshot(state, spec=spec), at(5).timestamp).phase is ArrayPhase.RUNNING
