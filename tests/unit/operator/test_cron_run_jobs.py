"""The job that a cron job makes for a run, and what is kept of it."""

from typing import Any

import pytest

from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.schedules.jobs import (
    ScheduledJob,
    cron_job_uid_of,
    is_job_of_run,
    run_body,
    scheduled_job,
)
from asyncjob_operator.core.schedules.view import Run, read_cron_job
from support.objects.schedules import name_at, raw_cron, seconds
from support.objects.snapshots import CREATED, EPOCH, raw, stamp

HOURLY = "2026-11-20T03:00"
RUN = Run(name_at(HOURLY), int(seconds(HOURLY)))
TEMPLATE = {
    "metadata": {
        "labels": {
            "team": "a",
            "asyncjob.dev/cron-job": "forged",
            "asyncjob.dev/array-uid": "forged",
        },
        "annotations": {"note": "b", "asyncjob.dev/scheduled-time": "forged"},
    },
    "spec": {"type": "report", "payload": {"a": [None]}},
}


def made(run: Run = RUN, **template: Any) -> Any:
    obj = raw_cron(jobTemplate={**TEMPLATE, **template})
    return run_body(read_cron_job(obj), obj, run)


def test_a_run_is_the_template_and_says_of_which_schedule_and_time_it_is() -> None:
    assert made() == {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {
            "name": "nightly-20261120t0300z",
            "namespace": "ns",
            "labels": {
                "team": "a",
                "asyncjob.dev/cron-job": "nightly",
                "asyncjob.dev/cron-job-uid": "uid-nightly",
                "asyncjob.dev/shard": "48",
            },
            "annotations": {
                "note": "b",
                "asyncjob.dev/scheduled-time": "2026-11-20T03:00:00.000Z",
            },
        },
        "spec": TEMPLATE["spec"],
    }


def test_a_run_on_demand_says_what_asked_for_it() -> None:
    triggered = made(Run("nightly-t4", RUN.time, trigger=4))["metadata"]
    assert triggered["annotations"]["asyncjob.dev/trigger"] == "4"
    assert "asyncjob.dev/backfill" not in triggered["labels"]
    filled = made(Run(RUN.name, RUN.time, backfill=True))["metadata"]
    assert filled["labels"]["asyncjob.dev/backfill"] == "true"
    assert "asyncjob.dev/trigger" not in filled["annotations"]


@pytest.mark.parametrize(
    ("change", "is_it"),
    [
        ({}, True),
        ({"labels": {"asyncjob.dev/cron-job": "nightly"}}, True),
        ({"labels": {"asyncjob.dev/cron-job": "other"}}, False),
        ({"annotations": {"asyncjob.dev/scheduled-time": "2026-11-20T04:00:00.000Z"}}, False),
        ({"labels": {}, "annotations": {}}, False),
    ],
)
def test_a_job_is_the_run_if_it_has_the_schedules_name_and_the_time(
    change: dict[str, Any], is_it: bool
) -> None:
    existing = made()
    existing["metadata"] |= change
    assert is_job_of_run(existing, read_cron_job(raw_cron()), RUN) is is_it


def test_a_triggered_job_is_the_run_only_of_the_very_schedule() -> None:
    run = Run("nightly-t4", RUN.time, trigger=4)
    existing = made(run)
    assert cron_job_uid_of(existing) == "uid-nightly"
    assert is_job_of_run(existing, read_cron_job(raw_cron()), run)
    existing["metadata"]["labels"]["asyncjob.dev/cron-job-uid"] = "of its predecessor"
    assert not is_job_of_run(existing, read_cron_job(raw_cron()), run)


def kept(previous: ScheduledJob | None = None, seen: float = 0.0, **job: Any) -> ScheduledJob:
    """Return what is kept of a job that is seen so many seconds after the epoch of the tests."""
    obj = raw("nightly-t4", **job)
    return scheduled_job(read_job(obj), obj, EPOCH + seen, previous)


def test_of_a_run_is_kept_what_decisions_about_its_schedule_need() -> None:
    assert kept(attempt=2) == ScheduledJob(
        namespace="ns",
        name="nightly-t4",
        uid="uid-nightly-t4",
        version="10",
        phase=Phase.QUEUED,
        created=CREATED,
        finished=False,
        completed_at=0.0,
        cancel_requested=False,
        has_open_request=False,
        backfill=False,
        deleting=False,
        attempt=2,
        has_dedup_key=False,
    )


@pytest.mark.parametrize(
    ("spec", "phase", "field"),
    [
        ({"cancel": True}, "Queued", "cancel_requested"),
        ({"rerun": 1}, "Succeeded", "has_open_request"),
        ({"redrive": 1}, "DeadLetter", "has_open_request"),
        ({"idempotencyKey": "k"}, "Queued", "has_dedup_key"),
    ],
)
def test_of_a_run_is_kept_what_somebody_wants_of_it(
    spec: dict[str, Any], phase: str, field: str
) -> None:
    assert getattr(kept(spec=spec, phase=phase), field) is True
    assert getattr(kept(phase=phase), field) is False


def test_a_run_of_a_backfill_and_one_that_is_being_deleted_are_known_as_such() -> None:
    obj: Any = raw("nightly-t4")
    obj["metadata"] |= {"labels": {"asyncjob.dev/backfill": "true"}, "deletionTimestamp": "now"}
    seen = scheduled_job(read_job(obj), obj)
    assert (seen.backfill, seen.deleting) == (True, True)


def test_a_redrive_that_was_dismissed_is_wanted_no_more() -> None:
    assert not kept(spec={"redrive": 1}, phase="Cancelled").has_open_request
    assert not kept(spec={"rerun": 1}, phase="Succeeded", reruns=1).has_open_request


def test_a_run_has_ended_when_it_says_so_within_the_second_of_the_write() -> None:
    for reported, ended in ((-49.5, -49.5), (-500, -50), (-10, -49)):
        obj: Any = raw("nightly-t4", phase="Succeeded", completionTime=stamp(reported))
        owned = {"fieldsV1": {"f:status": {}}, "subresource": "status", "time": stamp(-50)}
        obj["metadata"] |= {"managedFields": [owned]}
        assert scheduled_job(read_job(obj), obj, EPOCH).completed_at == EPOCH + ended


def test_a_run_that_is_seen_finished_has_ended_just_now_and_keeps_that_time() -> None:
    ended: dict[str, Any] = {"phase": "Succeeded", "completionTime": stamp(-500)}
    first = kept(**ended)
    assert first.completed_at == EPOCH
    assert kept(first, seen=60, **ended).completed_at == EPOCH
    assert kept(first, seen=60, attempt=1, **ended).completed_at == EPOCH + 60
    assert kept(first, seen=60, **ended | {"phase": "Cancelled"}).completed_at == EPOCH + 60
    assert kept(kept(), seen=60, **ended).completed_at == EPOCH + 60
