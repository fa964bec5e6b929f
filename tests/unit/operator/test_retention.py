"""Which finished jobs go."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.options import DAY, OPEN_QUEUE, QueueView, RetentionOptions
from asyncjob_operator.core.retention import (
    FinishedJob,
    beyond_namespace_limit,
    by_queue,
    finished_job,
    plan_removals,
    removable_in_queue,
)
from support.objects.snapshots import EPOCH, raw, stamp

OPTIONS = RetentionOptions()
KEYED = {"idempotencyKey": "k"}
NASTY = (
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999999-23:59",
    "2026-11-20T03:00:00.123456789z",
    "2026-11-20",
    "yesterday",
    "-1",
    "9223372036854775808",
)


def finished(
    name: str, age: float, phase: Phase = Phase.SUCCEEDED, **changes: object
) -> FinishedJob:
    record = FinishedJob(
        uid=name,
        namespace="ns",
        name=name,
        resource_version="1",
        queue="default",
        phase=phase,
        completed_at=EPOCH - age,
        ttl_seconds_after_finished=None,
        has_dedup_key=False,
        deleting=False,
    )
    return replace(record, **changes)  # type: ignore[arg-type]  # named fields of the record


def gone(
    *jobs: FinishedJob, queue: QueueView = OPEN_QUEUE, options: RetentionOptions = OPTIONS
) -> list[str]:
    return [record.name for record in removable_in_queue(jobs, queue, options, EPOCH)]


def test_finished_jobs_are_kept_for_a_week_and_dead_letters_for_thirty_days() -> None:
    week, month = 7 * DAY, 30 * DAY
    assert gone(finished("a", week), finished("b", week - 1)) == ["a"]
    dead = Phase.DEAD_LETTER
    assert gone(finished("a", month, dead), finished("b", month - 1, dead)) == ["a"]


def test_a_jobs_own_time_goes_before_the_queues_before_the_operators() -> None:
    queue = QueueView(max_age_seconds=5000)
    assert gone(finished("a", 4000), finished("b", 5000), queue=queue) == ["b"]
    assert gone(finished("a", 4000, ttl_seconds_after_finished=4000), queue=queue) == ["a"]
    assert gone(finished("a", 6000, ttl_seconds_after_finished=7000), queue=queue) == []


def test_nothing_goes_before_its_floor() -> None:
    assert gone(finished("a", 599, ttl_seconds_after_finished=0)) == []
    assert gone(finished("a", 600, ttl_seconds_after_finished=0)) == ["a"]
    assert gone(
        finished("a", 10, ttl_seconds_after_finished=0), queue=QueueView(min_age_seconds=5)
    ) == ["a"]


def test_a_job_that_a_key_may_ask_for_again_stays_a_day() -> None:
    assert gone(finished("a", DAY - 1, ttl_seconds_after_finished=0, has_dedup_key=True)) == []
    assert gone(finished("a", DAY, ttl_seconds_after_finished=0, has_dedup_key=True)) == ["a"]


def test_beyond_the_count_the_oldest_go_but_not_below_their_floor() -> None:
    queue = QueueView(max_finished=2)
    jobs = [finished(str(age), age) for age in (3000, 2000, 1000, 100)]
    assert gone(*jobs, queue=queue) == ["3000", "2000"]
    keyed = finished("keyed", 4000, has_dedup_key=True)
    assert gone(*jobs, keyed, queue=queue) == ["3000", "2000"]


def test_successes_do_not_push_dead_letters_out() -> None:
    queue = QueueView(max_finished=1)
    dead = finished("dead", 9000, Phase.DEAD_LETTER)
    assert gone(dead, finished("a", 2000), finished("b", 1000), queue=queue) == ["a"]


def test_dead_letters_beyond_the_count_go_too() -> None:
    dead = [finished(f"dead-{age}", age, Phase.DEAD_LETTER) for age in (3000, 2000, 1000)]
    assert gone(*dead, queue=QueueView(max_finished=1)) == ["dead-3000", "dead-2000"]


def test_beyond_a_namespaces_limit_the_oldest_go_whatever_protects_them() -> None:
    options = RetentionOptions(namespace_limit=2)
    jobs = [
        finished("dead", 900, Phase.DEAD_LETTER),
        finished("keyed", 800, has_dedup_key=True),
        finished("young", 1),
        finished("younger", 0),
    ]
    beyond = beyond_namespace_limit(jobs, options, [], EPOCH)
    assert [record.name for record in beyond] == ["keyed", "young"]
    assert beyond_namespace_limit(jobs[:2], options, [], EPOCH) == []


def test_a_child_goes_before_what_a_key_still_holds_from_its_minimum_age_on() -> None:
    options = RetentionOptions(namespace_limit=0, min_age=3600, dedup_window=DAY)
    jobs = [
        finished("held", DAY - 1, has_dedup_key=True),
        finished("held no longer", DAY, has_dedup_key=True),
        finished("without a key", 10),
    ]
    children = [finished("old", 3600), finished("young", 3599)]
    beyond = beyond_namespace_limit(jobs, options, children, EPOCH)
    names = [record.name for record in beyond]
    assert names == ["held no longer", "without a key", "old", "held", "young"]


def test_a_job_already_being_deleted_is_left_out() -> None:
    assert gone(finished("a", 90 * DAY, deleting=True)) == []


def test_a_record_takes_its_age_from_the_completion() -> None:
    obj: dict[str, Any] = dict(raw(phase="Succeeded", completionTime=stamp(-50), spec=KEYED))
    obj["metadata"] = {**obj["metadata"], "managedFields": written(-50)}
    record = finished_job(read_job(obj), EPOCH)
    assert record.completed_at == EPOCH - 50
    assert record.has_dedup_key
    assert record.finished


def written(seconds: float) -> list[dict[str, object]]:
    """Return managedFields of a job that the API server saw finished so many seconds in."""

    def entry(time: str, *owned: str, subresource: str = "status") -> dict[str, object]:
        fields: dict[str, object] = {"f:status": {f"f:{name}": {} for name in owned}}
        return {"time": time, "subresource": subresource, "fieldsV1": fields}

    return [
        entry(stamp(9000), "completionTime", subresource=""),
        entry(stamp(5), "claim"),
        entry(stamp(seconds), "completionTime", "result"),
        entry(stamp(5000), "reruns"),
    ]


def written_whole(seconds: float) -> list[dict[str, object]]:
    """Return the same where the status is owned whole."""
    owner = {"subresource": "status", "fieldsV1": {"f:status": {}}}
    return [
        {"time": stamp(9000), "fieldsV1": {"f:spec": {"f:type": {}}}},
        {"time": stamp(8000), "subresource": "status", "fieldsV1": {"f:metadata": {}}},
        {"time": stamp(seconds), **owner},
    ]


def ended(
    said: float, seen: list[dict[str, object]] | None, status: str = "completionTime"
) -> JobView:
    times: dict[str, Any] = {status: stamp(said)}
    obj: dict[str, Any] = dict(raw(phase="Succeeded", **times))
    if seen is not None:
        obj["metadata"] = {**obj["metadata"], "managedFields": seen}
    return read_job(obj)


def completed(
    said: float,
    seen: list[dict[str, object]] | None,
    status: str = "completionTime",
    *,
    first_seen: float = 200.0,
) -> float:
    return finished_job(ended(said, seen, status), EPOCH + first_seen).completed_at - EPOCH


@pytest.mark.parametrize("seen", [written(100), written_whole(100)], ids=["by field", "whole"])
def test_a_job_is_as_old_as_the_api_server_says_and_no_older_or_younger(
    seen: list[dict[str, object]],
) -> None:
    assert completed(said=100.5, seen=seen) == 100.5
    assert completed(said=-90 * DAY, seen=seen) == 100
    assert completed(said=90 * DAY, seen=seen) == 101


def test_a_forged_time_makes_no_job_older_than_its_creation() -> None:
    assert completed(said=50, seen=written_whole(-900 * DAY)) == -365 * DAY + 1


def test_without_the_api_servers_word_a_job_has_ended_when_it_was_first_seen_so() -> None:
    assert completed(said=50, seen=None) == 200
    assert completed(said=-900 * DAY, seen=None) == 200
    assert completed(said=7, seen=None, status="lastTransitionTime") == 200


@pytest.mark.parametrize("time", [stamp(900 * DAY), "9999-12-31T23:59:59-23:59"])
def test_a_time_that_lies_ahead_keeps_no_job_longer_than_if_it_ended_now(time: str) -> None:
    owner: dict[str, object] = {"subresource": "status", "fieldsV1": {"f:status": {}}, "time": time}
    assert completed(said=50, seen=[owner]) == 200


@pytest.mark.parametrize("time", NASTY)
def test_no_time_that_somebody_wrote_keeps_a_record_from_being_made(time: str) -> None:
    owner = {"subresource": "status", "fieldsV1": {"f:status": {}}, "time": time}
    obj: dict[str, Any] = dict(raw(phase="Succeeded", completionTime=time))
    obj["metadata"] = {**obj["metadata"], "managedFields": [owner]}
    record = finished_job(read_job(obj), EPOCH)
    assert -365 * DAY <= record.completed_at - EPOCH <= 1


def test_a_time_written_later_makes_a_known_job_neither_older_nor_younger() -> None:
    known = finished_job(ended(100.5, written_whole(100)), EPOCH + 101)
    for time in (-300 * DAY, 5000.0, 900 * DAY):
        again = finished_job(ended(100.5, written_whole(time)), EPOCH + 6000, known)
        assert again.completed_at == EPOCH + 100.5
    other = finished_job(ended(5000, written_whole(5000)), EPOCH + 6000, known)
    assert other.completed_at == EPOCH + 5000


def test_a_forged_end_does_not_void_the_memory_of_a_key() -> None:
    spec = {"idempotencyKey": "k", "ttlSecondsAfterFinished": 0}
    obj: dict[str, Any] = dict(raw(spec=spec, phase="Succeeded", completionTime=stamp(-30 * DAY)))
    obj["metadata"] = {**obj["metadata"], "managedFields": written(0)}
    record = finished_job(read_job(obj), EPOCH)
    assert removable_in_queue([record], OPEN_QUEUE, OPTIONS, EPOCH + DAY - 1) == []
    assert removable_in_queue([record], OPEN_QUEUE, OPTIONS, EPOCH + DAY) == [record]


def test_what_is_beyond_a_namespaces_limit_is_told_apart_from_what_is_old() -> None:
    jobs = [finished("old", 8 * DAY), *(finished(str(age), age) for age in (3, 2, 1))]
    options = RetentionOptions(namespace_limit=2)
    old = removable_in_queue(jobs, OPEN_QUEUE, options, EPOCH)
    found = plan_removals(by_queue(jobs), old, options, [], EPOCH)
    assert [record.name for record in found.jobs] == ["old", "3"]
    assert (found.total, found.excess) == (4, 1)


def test_children_of_unfinished_parents_are_among_those_that_a_namespace_holds() -> None:
    jobs, children = [finished("free", 1)], [finished("a", 2), finished("b", 1)]
    options = RetentionOptions(namespace_limit=1)
    found = plan_removals(by_queue(jobs), [], options, children, EPOCH)
    assert [record.name for record in found.jobs] == ["free", "a"]
    assert (found.total, found.excess, found.forced) == (3, 2, frozenset({"a"}))
