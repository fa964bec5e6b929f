"""Jobs, queues, cron jobs and workers as REST shows them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asyncjob.deep_json import TRUNCATED_TEXT
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job_reading import job_of, summary_of
from asyncjob.rest.listing import (
    BadCursorError,
    Selection,
    decode_cursor,
    encode_cursor,
    matches_selection,
)
from asyncjob.rest.resources import cron_job_of, is_lease_expired, queue_of, worker_of
from support.objects.builders import cron_job, queue, stored

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)


def test_a_waiting_job_says_what_it_waits_for_by_its_queue() -> None:
    waiting = "it waits for a free slot of a worker of queue default that handles test"
    assert summary_of(stored()).message == waiting
    paused = summary_of(stored(), queue(paused=True))
    assert (paused.reason, paused.message) == ("QueuePaused", "queue default is paused")


def test_a_finished_job_says_how_it_ended_and_when() -> None:
    end = "2026-01-01T00:00:09Z"
    status = {"completionTime": end, "reason": "RetriesExhausted", "message": "no"}
    dead = job_of(stored(status={"phase": "DeadLetter", **status}))
    assert (dead.failed_at, dead.cancelled_at, dead.reason) == (end, None, "RetriesExhausted")
    cancelled = job_of(stored(status={"phase": "Cancelled", **status}, cancel=True))
    assert (cancelled.cancelled_at, cancelled.cancelling) == (end, False)
    dismissed = job_of(stored(status={"phase": "DeadLetter", **status}, cancel=True))
    assert dismissed.cancelling


def test_the_deadline_of_a_job_is_told_as_a_time() -> None:
    assert summary_of(stored(deadlineSeconds=90)).deadline_at == "2026-01-01T00:01:30.000Z"
    assert job_of(stored()).deadline_at is None


def test_history_begins_with_the_creation() -> None:
    entry = {"time": "2026-01-01T00:00:01Z", "phase": "Running"}
    history = job_of(stored(status={"history": [entry]})).history
    assert [(one.phase, one.time) for one in history] == [
        ("Created", "2026-01-01T00:00:00Z"),
        ("Running", "2026-01-01T00:00:01Z"),
    ]


def test_a_job_names_whom_it_comes_from() -> None:
    obj: Any = stored(rerunOf={"name": "old", "uid": "u1"})
    obj["metadata"]["labels"] = {
        "asyncjob.dev/parent": "u2",
        "asyncjob.dev/cron-job": "nightly",
        "asyncjob.dev/cron-job-uid": "u3",
    }
    obj["metadata"]["annotations"] = {"asyncjob.dev/parent-name": "dad"}
    job = job_of(obj)
    links = [job.rerun_of, job.parent, job.cron_job]
    assert [(link.name, link.uid) for link in links if link] == [
        ("old", "u1"),
        ("dad", "u2"),
        ("nightly", "u3"),
    ]


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}])
def test_a_result_is_there_whatever_it_is(value: Any) -> None:
    assert job_of(stored(status={"result": value})).has_result
    assert not job_of(stored()).has_result


def test_without_payload_nothing_of_it_is_left() -> None:
    job = job_of(stored(status={"result": 1, "checkpoint": 2}, payload=3, request={"headers": {}}))
    bare = job.without_payload()
    assert {bare.payload, bare.request, bare.checkpoint, bare.result, bare.result_ref} == {None}


def test_steps_are_told_in_their_order_and_their_results_to_those_allowed_only() -> None:
    def record(second: int, **fields: Any) -> Any:
        times = {"startTime": f"{second}", "completionTime": f"{second + 1}"}
        return {**times, "attempt": 2, "sizeBytes": 5, **fields}

    reference = {"uri": "s3://b/x", "sizeBytes": 5, "sha256": "0"}
    steps = {"b": record(1, result="x"), "c": record(5, resultRef=reference), "a": record(3)}
    job = job_of(stored(status={"steps": steps}))
    assert [step.key for step in job.steps] == ["b", "a", "c"]
    assert (job.steps[0].result, job.steps[0].size_bytes, job.steps[0].attempt) == ("x", 5, 2)
    assert job.steps[2].result_ref
    bare = job.without_payload()
    assert [(step.key, step.size_bytes) for step in bare.steps] == [("b", 5), ("a", 5), ("c", 5)]
    assert {step.result for step in bare.steps} | {step.result_ref for step in bare.steps} == {None}
    assert job_of(stored()).steps == []


def test_waits_are_told_by_their_ends_and_a_schema_is_cut_where_it_is_nested_deeply() -> None:
    deep: Any = {"type": "object"}
    for _ in range(300):
        deep = {"items": deep}
    waits = {
        "a": {"kind": "Signal", "until": "2026-11-21T20:09:00Z"},
        "b": {"kind": "Sleep", "until": "2026-11-21T20:00:00Z", "over": True},
    }
    waiting = [
        {"kind": "Signal", "key": "a", "payloadSchema": {"type": "boolean"}},
        {"kind": "Signal", "key": "c", "payloadSchema": deep},
    ]
    job = job_of(stored(status={"waits": waits, "waiting": waiting}))
    assert [(one.key, one.kind, one.over) for one in job.waits] == [
        ("b", "Sleep", True),
        ("a", "Signal", False),
    ]
    assert job.waiting[0].payload_schema == {"type": "boolean"}
    assert len(job.model_dump_json()) < 3000
    assert job_of(stored()).waits == []


def test_a_queue_tells_its_numbers() -> None:
    obj = {
        **queue("mail", paused=True, maxConcurrency=3),
        "status": {
            "counts": [{"phase": "Queued", "count": 4}],
            "workers": 2,
            "conditions": [{"type": "Drained", "status": "True"}],
        },
    }
    info = queue_of(obj)
    assert (info.counts, info.workers, info.paused, info.drained) == ({"Queued": 4}, 2, True, True)
    assert info.spec
    assert info.spec.max_concurrency == 3
    assert info.oldest_queued_seconds is None


def test_a_schedule_is_whole_only_where_it_is_asked_for() -> None:
    obj = cron_job()
    obj["metadata"]["namespace"] = "ns"
    assert cron_job_of(obj).spec is None
    whole = cron_job_of(obj, detailed=True)
    assert whole.spec
    assert (whole.type, whole.queue, whole.time_zone) == ("test", "default", "UTC")


def lease(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "asyncjob-worker-w-0",
            "namespace": "ns",
            "annotations": {"asyncjob.dev/worker": '{"queue":"q","slots":3,"types":["a"]}'},
        },
        "spec": {
            "holderIdentity": "w-0/1",
            "leaseDurationSeconds": 30,
            "renewTime": "2026-01-01T00:59:40.000000Z",
            **spec,
        },
    }


def test_a_worker_is_told_until_it_is_silent_or_withdraws() -> None:
    info = worker_of(lease(), running=2)
    assert (info.pod, info.queue, info.slots, info.types, info.running) == ("w-0", "q", 3, ["a"], 2)
    assert not is_lease_expired(lease(), NOW)
    assert is_lease_expired(lease(), NOW + timedelta(seconds=15))
    assert is_lease_expired(lease(holderIdentity=""), NOW)
    assert is_lease_expired(lease(renewTime="0000-01-01T00:00:00.000000Z"), NOW)
    assert not is_lease_expired(lease(), NOW - timedelta(minutes=10))
    assert is_lease_expired(lease(renewTime="9999-12-31T23:59:59.000000Z"), NOW)
    assert worker_of({**lease(), "metadata": {"name": "x", "namespace": "n"}}).slots == 0


def test_a_selection_takes_all_filters_together() -> None:
    obj: Any = stored("report-1", {"phase": "DeadLetter", "reason": "NotRetryable"})
    obj["status"]["error"] = {"type": "OSError", "category": "Network", "message": "No Route"}
    job = summary_of(obj)

    def fits(**fields: Any) -> bool:
        return matches_selection(job, obj, Selection(**fields), NOW)

    assert fits(phase=[Phase.DEAD_LETTER], type="test", queue="default", reason="NotRetryable")
    assert fits(text="no route")
    assert fits(text="REPORT")
    assert fits(older_than_seconds=3600, newer_than_seconds=3600)
    assert not any(
        (
            fits(older_than_seconds=3601),
            fits(newer_than_seconds=3599),
            fits(phase=[Phase.QUEUED]),
            fits(text="other"),
            fits(parent="somebody"),
        )
    )


def test_a_cursor_comes_back_as_it_was_and_nonsense_is_refused() -> None:
    assert decode_cursor(encode_cursor(("2026", "uid"))) == ("2026", "uid")
    for nonsense in ("", "x", "ä", encode_cursor(("a", "b"))[:-3], "W10", "WzEsMiwzXQ"):
        with pytest.raises(BadCursorError):
            decode_cursor(nonsense)


@pytest.mark.parametrize("levels", [101, 260, 1000])
def test_a_job_is_shown_however_deep_a_signal_is(levels: int) -> None:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    sent = {"b": {"sentBy": "ada", "payload": deep}, "a": {"sentBy": "bob"}}
    shown = job_of(stored(signals=sent)).signals
    assert [(one.name, one.sent_by) for one in shown] == [("a", "bob"), ("b", "ada")]
    assert TRUNCATED_TEXT in str(shown[1].payload)
