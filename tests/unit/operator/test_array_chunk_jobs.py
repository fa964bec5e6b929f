"""The job that is created for a chunk of an array, in full, and how it is known again."""

from typing import Any

import pytest

from asyncjob.lifecycle.arrays.chunk_jobs import (
    array_uid_of,
    chunk_body,
    is_chunk,
    read_chunk_job,
)
from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.observed import ChunkJob
from asyncjob.lifecycle.arrays.state import OpenChunkEntry, read_array
from asyncjob.models.array import MAX_INLINE_BYTES, MAX_SHARED_PAYLOAD_BYTES
from asyncjob.models.job import AsyncJob
from asyncjob.shards import shard_label
from asyncjob.submission.arrays import oversize_message
from support.objects.arrays import RUNNING, entry, ranges, stored, under_way
from support.parts.array_world import raw_array

FILE = {"uri": "s3://bucket/rows.csv", "format": "CSV"}
INDEX = ItemIndex(2500, 90_000, '"v1"', 1000, (12, 30_000, 60_000))


def body(entry: OpenChunkEntry, array: Any = None, **spec: Any) -> Any:
    """Return the job that is created for a chunk of an array."""
    obj = array or raw_array(**{"items": {"count": 100}, **spec})
    return chunk_body(read_array(obj), obj, entry)


def test_a_chunk_is_a_job_of_its_array_with_everything_the_array_says_about_jobs() -> None:
    retry = {"maxRetries": 2, "maxCrashes": 4, "baseDelaySeconds": 1}
    made = body(
        entry(3),
        queue="images",
        priority=7,
        payload={"size": 200},
        itemRetries=5,
        itemTimeoutSeconds=9,
        retryPolicy=retry,
        executionTimeoutSeconds=60,
        queueTimeoutSeconds=70,
        leaseDurationSeconds=20,
        cancelGraceSeconds=5,
    )
    labels = {"asyncjob.dev/array-uid": "uid-a", **shard_label("thumbs-3")}
    assert made == {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {"name": "thumbs-3", "namespace": "ns", "labels": labels},
        "spec": {
            "type": "thumb/items",
            "queue": "images",
            "priority": 7,
            "payload": {
                "array": {"name": "thumbs", "uid": "uid-a"},
                "items": "20-29",
                "payload": {"size": 200},
                "itemRetries": 5,
                "itemTimeoutSeconds": 9,
                "retryPolicy": retry,
            },
            "retryPolicy": retry,
            "executionTimeoutSeconds": 60,
            "queueTimeoutSeconds": 70,
            "leaseDurationSeconds": 20,
            "cancelGraceSeconds": 5,
        },
    }
    AsyncJob.model_validate(made)  # refuses what a job cannot say


def test_what_the_array_leaves_out_its_chunk_leaves_to_the_defaults_of_jobs() -> None:
    array = raw_array(items={"count": 100})
    array["spec"] = {"type": "thumb", "items": {"count": 100}}
    assert body(entry(1), array)["spec"] == {
        "type": "thumb/items",
        "queue": "default",
        "priority": 0,
        "payload": {
            "array": {"name": "thumbs", "uid": "uid-a"},
            "items": "0-9",
            "payload": None,
            "itemRetries": 3,
        },
    }


def test_a_chunk_whose_results_are_kept_has_a_type_that_old_workers_do_not_take() -> None:
    results = {"uri": "s3://bucket/results/ns"}
    spec = body(entry(3), results=results)["spec"]
    assert spec["type"] == "thumb/store"
    assert spec["payload"]["results"] == {
        "folder": "s3://bucket/results/ns/uid-a",
        "generation": 3,
    }
    index = body(OpenChunkEntry("thumbs-1", ranges(""), 1), items={"from": FILE}, results=results)
    assert index["spec"]["type"] == "thumb/index"


@pytest.mark.parametrize(
    "retry", [{}, {"maxRetries": 2, "maxDelaySeconds": 9}], ids=["built in", "its own"]
)
def test_suspects_are_tried_once_as_a_chunk_and_as_often_as_any_item_within_it(retry: Any) -> None:
    spec = body(entry(1, suspect=True), **({"retryPolicy": retry} if retry else {}))["spec"]
    assert spec["retryPolicy"] == {**retry, "maxCrashes": 0, "maxRetries": 0}
    assert spec["payload"].get("retryPolicy", {}) == retry
    assert spec["payload"]["itemRetries"] == 3


def test_a_chunk_carries_the_values_of_its_own_items_alone() -> None:
    made = body(entry(1, "1-2,4"), items={"inline": ["a", {"b": 1}, None, "d", 5]})
    assert made["spec"]["payload"]["items"] == "1-2,4"
    assert made["spec"]["payload"]["values"] == [{"b": 1}, None, 5]


def test_the_records_of_a_file_are_found_by_a_job_of_their_own_without_items() -> None:
    made = body(OpenChunkEntry("thumbs-1", ranges(""), 1), items={"from": FILE}, payload="shared")
    assert made["spec"]["type"] == "thumb/index"
    assert made["spec"]["payload"] == {
        "array": {"name": "thumbs", "uid": "uid-a"},
        "file": FILE,
    }


def test_a_chunk_of_a_file_knows_the_version_that_was_counted_and_where_to_begin() -> None:
    array = stored(under_way(index=INDEX, total=2500), items={"from": FILE})
    payload = body(entry(1, "990-999,2100"), array)["spec"]["payload"]
    assert payload["items"] == "990-999,2100"
    assert "values" not in payload
    assert payload["file"] == {
        **FILE,
        "sizeBytes": 90_000,
        "version": '"v1"',
        "headerEnd": 12,
        "starts": [{"record": 0, "offset": 12}, {"record": 2000, "offset": 60_000}],
    }


def test_a_chunk_of_counted_items_names_no_file() -> None:
    array = stored(under_way(index=INDEX))
    assert "file" not in body(entry(1), array)["spec"]["payload"]


def existing(made: Any, **changes: Any) -> Any:
    """Return the job as it is stored, with defaults and with these fields in its spec."""
    metadata = {**made["metadata"], "uid": "uid-1", "resourceVersion": "7"}
    spec = {**made["spec"], "suspend": False, "cancelGraceSeconds": 30, **changes}
    return {**made, "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def test_a_job_of_the_same_name_is_the_chunk_only_if_it_does_the_same_for_the_same_array() -> None:
    made = body(entry(1))
    assert is_chunk(existing(made), made)
    for changes in ({"type": "other"}, {"payload": None}, {"queue": "slow"}, {"priority": 1}):
        assert not is_chunk(existing(made, **changes), made), changes
    for labels in ({}, {"asyncjob.dev/array-uid": "uid-b"}):
        foreign = existing(made)
        foreign["metadata"]["labels"] = labels
        assert not is_chunk(foreign, made), labels
    assert not is_chunk({"metadata": made["metadata"]}, made)


def test_a_job_is_of_the_array_whose_uid_it_bears_as_a_label() -> None:
    assert array_uid_of(body(entry(1))) == "uid-a"
    assert array_uid_of({"metadata": {"labels": {"other": "uid-a"}}}) == ""
    assert array_uid_of({"metadata": {"name": "a"}}) == ""


@pytest.mark.parametrize(
    ("phase", "finished"),
    [
        ("Queued", False),
        ("Pending", False),
        ("Running", False),
        ("Retrying", False),
        ("Succeeded", True),
        ("DeadLetter", True),
        ("Cancelled", True),
    ],
)
def test_of_a_chunks_job_its_phase_is_kept_and_whether_that_is_the_last(
    phase: str, finished: bool
) -> None:
    job = {**existing(body(entry(1))), "status": {"phase": phase}}
    kept = read_chunk_job(job)
    assert (kept.phase, kept.finished) == (phase, finished)


def test_of_a_chunks_job_it_is_kept_who_it_is_and_what_it_has_been_asked() -> None:
    job = existing(body(entry(1)))
    assert read_chunk_job({**job, "status": {}}) == ChunkJob(
        namespace="ns",
        name="thumbs-1",
        uid="uid-1",
        array="thumbs",
        phase=read_chunk_job({}).phase,
        finished=False,
        cancel_requested=False,
        suspended=False,
        deleting=False,
    )
    assert read_chunk_job({}).phase == "Queued"
    assert read_chunk_job(existing(body(entry(1)), suspend=True)).suspended
    assert read_chunk_job(existing(body(entry(1)), cancel=True)).cancel_requested
    job["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert read_chunk_job(job).deleting


def text_of(size: int) -> str:
    """Return a text that takes so many bytes as JSON."""
    return "x" * (size - 2)


@pytest.mark.parametrize(
    ("field", "limit"), [("payload", MAX_SHARED_PAYLOAD_BYTES), ("items.inline", MAX_INLINE_BYTES)]
)
def test_an_array_that_is_one_byte_too_large_is_told_which_field_and_by_how_much(
    field: str, limit: int
) -> None:
    def array(size: int) -> Any:
        if field == "payload":
            return stored(RUNNING, payload=text_of(size))
        return stored(RUNNING, items={"inline": [text_of(size - 2)]})

    assert oversize_message(array(limit)) == ""
    assert oversize_message(array(limit + 1)) == (
        f"{field} has {limit + 1} bytes, and at most {limit} are allowed"
    )


def test_the_limits_of_an_array_are_those_that_its_reference_states() -> None:
    assert (MAX_SHARED_PAYLOAD_BYTES, MAX_INLINE_BYTES) == (64 * 1024, 256 * 1024)
    assert oversize_message(stored(RUNNING)) == ""
