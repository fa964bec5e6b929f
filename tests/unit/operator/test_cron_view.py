"""An AsyncCronJob that says nothing is read by the defaults of its schema, and else as it says."""

from typing import Any

import pytest

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, MisfirePolicy
from asyncjob_operator.core.schedules.view import (
    ActiveJobRef,
    BackfillState,
    ObservedSpec,
    ReservedRuns,
    Run,
    read_cron_job,
    runs_to_json,
)
from support.objects.schedules import seconds


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


DAY = "2026-11-20T00:00"
RUNS = (Run("n-1", int(seconds(DAY))), Run("n-t4", int(seconds(DAY)), 4), Run("n-2", 0, None, True))


def test_a_status_is_read_as_it_says() -> None:
    view = read_cron_job(
        {
            "status": {
                "observed": {"schedule": "@daily", "timeZone": "UTC", "suspend": True},
                "reserved": {"by": "me", "runs": runs_to_json(RUNS)},
                "claims": 3,
                "triggers": 4,
                "missed": 5,
                "active": [{"name": "a", "uid": "u"}],
                "activeCount": 6,
                "backfill": {
                    "from": f"{DAY}:00Z",
                    "to": "2026-11-21T00:00:00Z",
                    "through": "2026-11-20T12:00:00Z",
                    "total": 7,
                    "created": 2,
                    "completed": True,
                },
            }
        }
    )
    assert view.observed == ObservedSpec("@daily", "UTC", suspend=True)
    assert view.reserved == ReservedRuns("me", 3, RUNS)
    assert view.runs == RUNS
    assert (view.claims, view.triggers, view.missed, view.active_count) == (3, 4, 5, 6)
    assert view.active == (ActiveJobRef("a", "u"),)
    start = seconds(DAY)
    assert view.backfill_state == BackfillState(start, start + 86_400, start + 43_200, 7, 2, True)


def test_what_a_status_leaves_out_has_not_happened() -> None:
    view = read_cron_job({"status": {"backfill": {"total": 1}}})
    assert (view.observed, view.reserved, view.runs, view.active) == (None, None, (), ())
    assert view.backfill_state == BackfillState(0.0, 0.0, None, 1, 0, completed=False)
    assert read_cron_job({}).backfill_state is None


@pytest.mark.parametrize(
    ("status", "settled"),
    [
        ({}, "2026-11-01T00:00"),
        ({"settledTime": f"{DAY}:00Z"}, DAY),
        ({"lastScheduleTime": f"{DAY}:00Z", "settledTime": "2026-11-19T00:00:00Z"}, DAY),
        ({"settledTime": "yesterday"}, "2026-11-01T00:00"),
    ],
)
def test_all_is_settled_up_to_the_latest_time_that_is_told_or_the_creation(
    status: dict[str, Any], settled: str
) -> None:
    meta = {"creationTimestamp": "2026-11-01T00:00:00Z"}
    view = read_cron_job({"metadata": meta, "status": status})
    assert (view.created, view.settled_time) == (seconds("2026-11-01T00:00"), seconds(settled))
