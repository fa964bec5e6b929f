"""An AsyncCronJob that says nothing is read by the defaults of its schema, and else as it says."""

from typing import Any

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, MisfirePolicy
from asyncjob_operator.core.schedules.view import read_cron_job


def test_what_a_spec_leaves_out_has_the_schemas_defaults() -> None:
    view = read_cron_job({"spec": {"schedule": "@daily"}})
    assert (view.schedule, view.time_zone, view.jitter_seconds) == ("@daily", "UTC", 0)
    assert view.concurrency_policy is ConcurrencyPolicy.ALLOW
    assert (view.misfire_policy, view.misfire_limit) == (MisfirePolicy.FIRE_ONCE, 100)
    assert (view.successful_jobs_history_limit, view.failed_jobs_history_limit) == (3, 3)
    assert (view.starting_deadline_seconds, view.backfill) == (None, None)
    assert (view.suspend, view.deleting, view.trigger) == (False, False, 0)
    assert (view.claims, view.triggers, view.missed) == (0, 0, 0)
    assert (view.runs, view.active, view.created) == ((), (), 0.0)


def test_a_spec_is_read_as_it_says() -> None:
    spec: dict[str, Any] = {
        "schedule": "H * * * *",
        "timeZone": "Europe/Berlin",
        "jitterSeconds": 7,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 60,
        "misfirePolicy": "Skip",
        "misfireLimit": 5,
        "suspend": True,
        "trigger": 2,
        "successfulJobsHistoryLimit": 8,
        "failedJobsHistoryLimit": 9,
    }
    meta = {"namespace": "ns", "name": "n", "uid": "u", "resourceVersion": "4"}
    view = read_cron_job({"metadata": {**meta, "deletionTimestamp": "t"}, "spec": spec})
    assert (view.namespace, view.name, view.uid, view.resource_version) == ("ns", "n", "u", "4")
    assert (view.key, view.deleting, view.suspend) == ("ns/n", True, True)
    assert (view.schedule, view.time_zone) == ("H * * * *", "Europe/Berlin")
    assert (view.jitter_seconds, view.starting_deadline_seconds) == (7, 60)
    assert view.concurrency_policy is ConcurrencyPolicy.FORBID
    assert (view.misfire_policy, view.misfire_limit, view.trigger) == (MisfirePolicy.SKIP, 5, 2)
    assert (view.successful_jobs_history_limit, view.failed_jobs_history_limit) == (8, 9)


def test_a_backfill_has_the_schemas_defaults() -> None:
    asked = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z"}
    found = read_cron_job({"spec": {"backfill": asked}}).backfill
    assert found is not None
    assert found.end - found.start == 86_400
    assert (found.limit, found.max_active) == (100, 1)
