"""What is read of an array, and what of it is stored."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from asyncjob.lifecycle.arrays.chunks import ItemError
from asyncjob.lifecycle.arrays.item_index import ItemIndex, ItemsFile
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.records import RecordFormat
from asyncjob.lifecycle.arrays.state import (
    LARGE_BYTES,
    MAX_MESSAGE_LENGTH,
    ArrayState,
    ArrayView,
    OpenChunkEntry,
    read_array,
    state_to_json,
)
from asyncjob.models.array import ArrayOptions, AsyncArrayStatus
from asyncjob.names import PARENT_LABEL
from support.objects.arrays import RUNNING, ranges, stored
from support.objects.snapshots import stamp
from support.parts.array_world import raw_array

STATE = ArrayState(
    phase=ArrayPhase.RUNNING,
    reason=ArrayReason.REDRIVEN,
    message="9 items are run again",
    total=200,
    next=90,
    succeeded=30,
    open=(
        OpenChunkEntry("thumbs-7", ranges("40-49"), 7, "uid-7"),
        OpenChunkEntry("thumbs-8", ranges("50-51"), 8, suspect=True),
    ),
    requeued=ranges("60-69"),
    suspects=(ranges("70-71"), ranges("75")),
    failed_items=ranges("80,82-83"),
    failed_unlisted=4,
    errors=(ItemError(80, "ValueError", "Internal", "no"),),
    generation=8,
    writer="operator-0",
    claims=3,
    redrives=2,
    admitted=True,
    start_time=stamp(1),
    chunk_size=640,
    items_per_minute=30,
    expected_end_time=stamp(9),
    completion_time=stamp(2),
    index=ItemIndex(200, 900, "v1", 1000, (12,)),
)
STATUS: dict[str, Any] = {
    "phase": "Running",
    "reason": "Redriven",
    "message": "9 items are run again",
    "total": 200,
    "next": 90,
    "succeeded": 30,
    "failed": 7,
    "percent": 18,
    "index": {"records": 200, "sizeBytes": 900, "version": "v1", "every": 1000, "offsets": [12]},
    "open": [
        {"name": "thumbs-7", "items": "40-49", "generation": 7, "uid": "uid-7"},
        {"name": "thumbs-8", "items": "50-51", "generation": 8, "suspect": True},
    ],
    "openCount": 2,
    "requeued": "60-69",
    "suspects": ["70-71", "75"],
    "failedItems": "80,82-83",
    "failedUnlisted": 4,
    "errors": [{"item": 80, "type": "ValueError", "category": "Internal", "message": "no"}],
    "generation": 8,
    "chunkSize": 640,
    "itemsPerMinute": 30,
    "expectedEndTime": stamp(9),
    "writer": "operator-0",
    "claims": 3,
    "redrives": 2,
    "admitted": True,
    "startTime": stamp(1),
    "completionTime": stamp(2),
    "conditions": None,
}


def view(state: ArrayState = RUNNING, **spec: Any) -> ArrayView:
    """Return the array in this state as decisions see it."""
    return read_array(stored(state, **spec))


def test_a_state_is_stored_in_full_and_read_as_it_was() -> None:
    assert state_to_json(STATE) == STATUS
    AsyncArrayStatus.model_validate(STATUS)  # refuses what the schema does not have
    assert read_array({**raw_array(), "status": STATUS}).state == STATE


def test_what_there_is_nothing_to_say_of_is_removed_from_the_status() -> None:
    said = {name: value for name, value in state_to_json(ArrayState()).items() if value is not None}
    assert said == {
        "phase": "Pending",
        "total": 0,
        "next": 0,
        "succeeded": 0,
        "failed": 0,
        "percent": 0,
        "openCount": 0,
        "generation": 0,
    }


def test_an_array_without_a_status_has_all_of_its_items_before_it() -> None:
    assert read_array({**raw_array(items={"count": 7}), "status": {}}).state == ArrayState(
        phase=ArrayPhase.PENDING, total=7, next=0, succeeded=0, writer="", claims=0, redrives=0
    )


def test_what_the_array_says_is_read_in_full() -> None:
    array = raw_array(
        items={"from": {"uri": "s3://bucket/rows", "format": "CSV", "version": "v1"}, "skip": "7"},
        queue="mail",
        chunkSize=5,
        parallelism=7,
        maxFailed=3,
        maxFailedPercent=4,
        suspend=True,
        cancel=True,
        redrive=6,
        ttlSecondsAfterFinished=30,
        results={"uri": "s3://bucket/results/ns/"},
    )
    array["metadata"] |= {"deletionTimestamp": stamp(9), "labels": {PARENT_LABEL: "uid-p"}}
    read = read_array(array)
    assert read == ArrayView(
        namespace="ns",
        name="thumbs",
        uid="uid-a",
        resource_version="1",
        deleting=True,
        type="thumb",
        queue="mail",
        items_file=ItemsFile("s3://bucket/rows", RecordFormat.CSV),
        count=0,
        skip=ItemRanges.of([7]),
        file_version="v1",
        inline_bytes=0,
        large=False,
        chunk_size=5,
        parallelism=7,
        max_failed=3,
        max_failed_percent=4,
        suspend=True,
        cancel=True,
        redrive=6,
        ttl_seconds_after_finished=30,
        parent_uid="uid-p",
        results_folder="s3://bucket/results/ns/uid-a",
        state=ArrayState(),
        status={"phase": "Pending"},
    )
    assert read.key == "ns/thumbs"


def test_what_the_array_leaves_out_is_as_its_reference_states() -> None:
    read = read_array(raw_array(items={"inline": ["a", "b"]}))
    model = ArrayOptions.model_validate({"type": "thumb", "items": {"inline": ["a", "b"]}})
    assert (read.chunk_size, read.parallelism) == (model.chunk_size, model.parallelism)
    assert (read.max_failed, read.max_failed_percent) == (None, None)
    assert (read.suspend, read.cancel, read.deleting, read.redrive) == (False, False, False, 0)
    assert (read.items_file, read.queue) == (None, model.queue)
    assert (read.ttl_seconds_after_finished, read.parent_uid) == (None, "")
    assert (read.count, read.total) == (2, 2)
    assert (read.skip, read.file_version) == (ItemRanges(), "")


def test_how_many_items_a_file_has_is_what_the_index_job_has_found() -> None:
    source = {"items": {"from": {"uri": "s3://bucket/rows"}}}
    assert view(ArrayState(), **source).total == 0
    assert view(ArrayState(index=STATE.index), **source).total == 200


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ({}, None),
        ({"maxFailed": 0}, 0),
        ({"maxFailed": 3, "maxFailedPercent": 50}, 3),
        ({"maxFailedPercent": 0}, 0),
        ({"maxFailedPercent": 1}, 2),
        ({"maxFailedPercent": 33}, 82),
        ({"maxFailedPercent": 100}, 250),
    ],
    ids=str,
)
def test_of_250_items_so_many_may_fail(spec: Any, limit: int | None) -> None:
    assert view(items={"count": 250}, **spec).failure_limit == limit


def text_of(size: int) -> str:
    """Return a text that takes so many bytes as JSON."""
    return "x" * (size - 2)


@pytest.mark.parametrize(
    ("spec", "large"),
    [
        ({}, False),
        ({"payload": text_of(LARGE_BYTES)}, False),
        ({"payload": text_of(LARGE_BYTES + 1)}, True),
        ({"items": {"inline": [text_of(LARGE_BYTES - 2)]}}, False),
        ({"items": {"inline": [text_of(LARGE_BYTES - 1)]}}, True),
        ({"payload": text_of(LARGE_BYTES - 6), "items": {"inline": [10]}}, False),
        ({"payload": text_of(LARGE_BYTES - 6), "items": {"inline": [10, 11]}}, True),
    ],
    ids=[
        "neither payload nor items",
        "32 KiB of payload",
        "a byte more",
        "32 KiB of items",
        "a byte more of items",
        "both together below",
        "both together above",
    ],
)
def test_an_array_is_large_with_more_than_32_kib_of_payload_and_items(
    spec: Any, large: bool
) -> None:
    assert view(**spec).large is large
    assert LARGE_BYTES == 32_768


@pytest.mark.parametrize(
    ("counts", "percent"),
    [
        ({"total": 0}, 0),
        ({"total": 3}, 0),
        ({"total": 3, "succeeded": 1}, 33),
        ({"total": 3, "succeeded": 1, "failed_items": ranges("2")}, 66),
        ({"total": 300, "succeeded": 298, "failed_unlisted": 1}, 99),
        ({"total": 300, "succeeded": 299, "failed_unlisted": 1}, 100),
    ],
    ids=["no items", "none yet", "one of three", "one failed", "one is left", "all"],
)
def test_what_is_done_or_has_failed_in_percent(counts: Any, percent: int) -> None:
    assert state_to_json(ArrayState(**counts))["percent"] == percent


@pytest.mark.parametrize(
    ("phase", "condition"),
    [
        (ArrayPhase.SUCCEEDED, "Complete"),
        (ArrayPhase.FAILED, "Failed"),
        (ArrayPhase.CANCELLED, "Cancelled"),
    ],
)
def test_an_array_that_has_ended_has_one_condition(phase: ArrayPhase, condition: str) -> None:
    ended = ArrayState(phase, completion_time=stamp(2))
    said = {"type": condition, "status": "True", "lastTransitionTime": stamp(2)}
    assert state_to_json(ended)["conditions"] == [said]
    with_reason = state_to_json(replace(ended, reason=ArrayReason.ITEMS_FAILED))
    assert with_reason["conditions"] == [{**said, "reason": "ItemsFailed"}]
    assert state_to_json(ArrayState(phase))["conditions"] is None


def test_an_array_has_ended_in_phases_that_only_a_redrive_leaves() -> None:
    assert set(ArrayPhase) - ENDED_ARRAY_PHASES == {ArrayPhase.PENDING, ArrayPhase.RUNNING}


def test_a_message_is_as_long_as_the_schema_allows() -> None:
    longest, longer = "x" * MAX_MESSAGE_LENGTH, "x" * (MAX_MESSAGE_LENGTH + 1)
    assert state_to_json(ArrayState(message=longer))["message"] == longest
    assert AsyncArrayStatus(message=longest).message == longest
    with pytest.raises(ValidationError):
        AsyncArrayStatus(message=longer)


@pytest.mark.parametrize(
    ("state", "all_cut"),
    [
        (ArrayState(total=9, next=9), True),
        (ArrayState(total=9, next=8), False),
        (ArrayState(total=9, next=9, requeued=ranges("1")), False),
        (ArrayState(total=9, next=9, suspects=(ranges("1"),)), False),
    ],
    ids=["all", "one is left", "one is run again", "one is a suspect"],
)
def test_all_items_are_cut_once_none_waits(state: ArrayState, all_cut: bool) -> None:
    assert state.all_cut is all_cut


def test_an_array_that_names_no_queue_is_in_the_default_one() -> None:
    assert read_array({"spec": {"type": "thumb", "items": {"count": 3}}}).queue == "default"
