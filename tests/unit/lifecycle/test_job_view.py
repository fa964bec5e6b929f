"""What is read off a job, and what follows from it."""

from typing import Any

import pytest

from asyncjob.lifecycle.job_view import (
    ControlFields,
    DependencyView,
    Gates,
    JobView,
    LeaseView,
    read_job,
)
from asyncjob.lifecycle.phases import Phase

META = {
    "namespace": "ns",
    "name": "job",
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": "created",
}


def view(
    spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any
) -> JobView:
    return read_job({"metadata": {**META, **meta}, "spec": spec or {}, "status": status or {}})


def test_a_job_that_says_nothing_is_a_new_one_in_the_default_queue() -> None:
    job = view()
    assert (job.key, job.uid, job.resource_version) == ("ns/job", "u", "7")
    assert (job.type, job.queue, job.phase, job.priority) == ("", "default", Phase.QUEUED, 0)
    assert (job.control, job.gates, job.lease, job.effective) == (
        ControlFields(),
        Gates(),
        None,
        None,
    )
    counters = (job.attempt, job.retries, job.crashes, job.releases, job.redrives, job.reruns)
    assert counters == (0, 0, 0, 0, 0, 0)
    assert (job.parks, job.waiting) == (0, ())
    flags = (job.deleting, job.admitted, job.has_dedup_key, job.gated, job.finished)
    assert not any(flags)
    assert (job.parent_uid, job.claim, job.reason, job.pending_message) == ("", "", "", "")


def test_parks_are_counted_as_the_status_says() -> None:
    assert view(status={"parks": 3}).parks == 3


def test_a_spec_is_read_as_it_says() -> None:
    spec = {
        "type": "t",
        "queue": "mail",
        "priority": 3,
        "cancel": True,
        "suspend": True,
        "redrive": 1,
        "rerun": 2,
        "cancelCascade": True,
        "notBefore": "early",
        "notAfter": "late",
        "dependsOn": [{"name": "a"}, {"name": "b", "outcome": "Any", "children": True}],
        "deduplicationId": "d",
        "concurrencyKey": "c",
        "queueTimeoutSeconds": 4,
        "cancelGraceSeconds": 5,
        "ttlSecondsAfterFinished": 6,
    }
    job = view(spec)
    assert (job.type, job.queue, job.priority) == ("t", "mail", 3)
    assert job.control == ControlFields(
        cancel=True, suspend=True, redrive=1, rerun=2, cancel_cascade=True
    )
    assert job.gates == Gates(
        not_before="early",
        not_after="late",
        depends_on=(
            DependencyView("a"),
            DependencyView("b", any_outcome=True, children=True),
        ),
        deduplication_id="d",
        concurrency_key="c",
    )
    times = (job.queue_timeout_seconds, job.cancel_grace_seconds, job.ttl_seconds_after_finished)
    assert times == (4, 5, 6)


@pytest.mark.parametrize(
    "gate",
    [
        {"notBefore": "early"},
        {"notAfter": "late"},
        {"dependsOn": [{"name": "a"}]},
        {"deduplicationId": "d"},
        {"suspend": True},
        {"cancel": True},
    ],
)
def test_each_of_these_keeps_workers_away_until_the_job_is_admitted(gate: dict[str, Any]) -> None:
    assert view(gate).gated
    assert not view({"concurrencyKey": "c", "redrive": 1}).gated


@pytest.mark.parametrize("key", ["idempotencyKey", "deduplicationId"])
def test_a_key_of_either_kind_is_one_that_others_may_rely_on(key: str) -> None:
    assert view({key: "k"}).has_dedup_key


def test_a_status_is_read_as_it_says() -> None:
    job = view(
        status={
            "phase": "Pending",
            "reason": "Suspended",
            "message": "why",
            "attempt": 1,
            "claim": "c",
            "retries": 2,
            "crashes": 3,
            "releases": 4,
            "redrives": 5,
            "reruns": 6,
            "admitted": True,
            "startTime": "start",
            "firstStartTime": "first",
            "lastTransitionTime": "last",
            "nextAttemptTime": "next",
            "retryDelaySeconds": 1.5,
            "lease": {
                "holder": "pod",
                "holderUID": "pod-uid",
                "worker": "pod/1",
                "renewals": 9,
                "durationSeconds": 45,
            },
        },
        deletionTimestamp="now",
        labels={"asyncjob.dev/parent": "parent-uid"},
    )
    assert (job.phase, job.reason, job.pending_message) == (Phase.PENDING, "Suspended", "why")
    counters = (job.attempt, job.retries, job.crashes, job.releases, job.redrives, job.reruns)
    assert counters == (1, 2, 3, 4, 5, 6)
    assert (job.claim, job.parent_uid) == ("c", "parent-uid")
    assert (job.admitted, job.deleting) == (True, True)
    times = (job.start_time, job.first_start_time, job.last_transition_time, job.next_attempt_time)
    assert times == ("start", "first", "last", "next")
    assert job.retry_delay_seconds == 1.5
    assert job.lease == LeaseView("pod", "pod-uid", "pod/1", 9, 45)


def test_a_lease_that_does_not_say_how_long_lasts_a_minute() -> None:
    lease = view(status={"phase": "Running", "lease": {"holder": "pod"}}).lease
    assert lease == LeaseView("pod", "", "", 0, 60)


def test_only_a_pending_jobs_message_is_kept() -> None:
    assert view(status={"phase": "Retrying", "message": "why"}).pending_message == ""


@pytest.mark.parametrize("phase", Phase)
def test_a_cancel_cascades_from_every_job_but_one_that_has_succeeded(phase: Phase) -> None:
    both = {"cancel": True, "cancelCascade": True}
    assert view(both, {"phase": phase}).cascades_cancel is (phase is not Phase.SUCCEEDED)
    for name in both:
        assert not view({name: True}, {"phase": phase}).cascades_cancel


def write_of(time: str, **entry: Any) -> dict[str, Any]:
    owned: dict[str, Any] = {"f:status": {"f:completionTime": {}}}
    return {"time": time, "subresource": "status", "fieldsV1": owned, **entry}


WHOLE: dict[str, Any] = {"f:status": {}}


@pytest.mark.parametrize(
    ("entries", "time"),
    [
        ([], None),
        ([write_of("1")], "1"),
        ([write_of("1"), write_of("2", fieldsV1=WHOLE), write_of("")], "2"),
        ([write_of("1"), write_of("2", subresource="")], "1"),
        ([write_of("1"), write_of("2", fieldsV1={"f:metadata": {}})], "1"),
        ([write_of("1"), write_of("2", fieldsV1={"f:status": {"f:phase": {}}})], "1"),
    ],
)
def test_when_it_was_finished_is_told_by_the_last_write_of_who_owns_its_completion(
    entries: list[Any], time: str | None
) -> None:
    done = {"phase": "Succeeded", "completionTime": "c"}
    job = view(status=done, managedFields=entries)
    assert (job.completion_time, job.completion_write_time) == ("c", time)
    assert view(status={"phase": "Running"}, managedFields=entries).completion_write_time is None
