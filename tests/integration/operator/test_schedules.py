"""Cron jobs under one operator: what is due, what was missed, and what users ask for."""

import pytest

from asyncjob.names import (
    BACKFILL_LABEL,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    TRIGGER_ANNOTATION,
    cron_job_path,
)
from asyncjob_dev.errors import ApiStatusError
from support.driven.crons import Crons
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until

pytestmark = pytest.mark.integration

TEMPLATE = {
    "metadata": {"labels": {"team": "night"}, "annotations": {"note": "n"}},
    "spec": {
        "type": "report",
        "payload": {"b": [None, {"a": 1}], "a": 2**53},
        "retryPolicy": {"maxRetries": 1},
        "request": {"headers": {"x": ["1"]}},
    },
}


@pytest.fixture
def crons(jobs: Jobs) -> Crons:
    return Crons(jobs)


def finish(worker: FakeWorker, name: str) -> None:
    worker.claim(name)
    worker.succeed(name)


def test_a_trigger_creates_the_templates_job_once_and_is_acknowledged(
    crons: Crons, worker: FakeWorker
) -> None:
    created = crons.create("daily", jobTemplate=TEMPLATE)
    status = crons.until_status("daily", reason="Scheduled")
    assert status["nextScheduleTime"].startswith("2028-02-29T00:00:00")
    crons.change("daily", trigger=3)
    [run] = crons.until_runs("daily", 1)
    stored = crons.get("daily")["spec"]["jobTemplate"]["spec"]
    assert run["metadata"]["name"] == "daily-t3"
    assert run["spec"] == stored
    assert run["metadata"]["labels"]["team"] == "night"
    assert run["metadata"]["labels"][CRON_JOB_UID_LABEL] == created["metadata"]["uid"]
    assert run["metadata"]["annotations"]["note"] == "n"
    assert run["metadata"]["annotations"][TRIGGER_ANNOTATION] == "3"
    status = crons.until_status("daily", triggers=3, activeCount=1, reserved=None)
    assert status["active"] == [{"name": "daily-t3", "uid": run["metadata"]["uid"]}]
    assert "lastScheduleTime" not in status
    finish(worker, "daily-t3")
    assert crons.until_status("daily", activeCount=0)["lastSuccessfulTime"]
    crons.until_quiet("daily")
    assert crons.names("daily") == ["daily-t3"]
    with pytest.raises(ApiStatusError, match="must not decrease"):
        crons.change("daily", trigger=2)


def test_forbid_leaves_out_and_replace_waits_for_what_it_cancels(
    crons: Crons, worker: FakeWorker
) -> None:
    for policy in ("Forbid", "Replace"):
        crons.create(policy.lower(), concurrencyPolicy=policy, trigger=1)
    crons.until_runs("forbid", 1)
    crons.until_runs("replace", 1)
    crons.until_status("replace", reserved=None)
    worker.claim("replace-t1", lease=60)
    crons.change("forbid", trigger=2)
    status = crons.until_status("forbid", triggers=2, reason="TriggerRefused")
    assert "forbid-t1" in status["message"]
    assert crons.names("forbid") == ["forbid-t1"]
    crons.change("replace", trigger=2)
    until(lambda: crons.jobs.get("replace-t1")["spec"].get("cancel"), 10)
    crons.until_status("replace", triggers=2)
    crons.until_quiet("replace")
    assert crons.names("replace") == ["replace-t1"]
    worker.end_container(0)
    crons.jobs.until_phase("replace-t1", "Cancelled")
    crons.until_runs("replace", 2)
    finish(worker, "forbid-t1")
    crons.until_status("forbid", activeCount=0)
    crons.change("forbid", trigger=3)
    crons.until_runs("forbid", 2)


def test_a_backfill_goes_through_its_range_once_a_few_at_a_time(
    crons: Crons, worker: FakeWorker
) -> None:
    control = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T04:00:00Z", "maxActive": 2}
    crons.create("fill", schedule="0 * * * *", suspend=True, backfill=control)
    for step in range(0, 4, 2):
        runs = crons.until_runs("fill", step + 2)
        crons.until_quiet("fill")
        assert len(crons.runs("fill")) == step + 2
        for run in runs[step:]:
            finish(worker, run["metadata"]["name"])
    crons.until_status("fill", reason="Backfilled", reserved=None)
    done = crons.until_quiet("fill")["backfill"]
    assert (done["total"], done["created"], done["completed"]) == (5, 5, True)
    assert crons.names("fill")[-1] == "fill-20260101t0400z"
    assert crons.runs("fill")[-1]["metadata"]["labels"][BACKFILL_LABEL] == "true"
    crons.change("fill", backfill={"limit": 7})
    assert crons.until_quiet("fill")["backfill"]["created"] == 5
    crons.change("fill", backfill={"to": "2026-01-31T00:00:00Z", "limit": 100})
    assert "more than 100" in crons.until_status("fill", reason="BackfillRefused")["message"]


def test_history_limits_keep_the_newest_even_below_retentions_floors(
    crons: Crons, worker: FakeWorker
) -> None:
    crons.jobs.queue("floor", retention={"minAgeSeconds": 3600})
    template = {"spec": {"type": "test", "queue": "floor", "retryPolicy": {"maxRetries": 0}}}
    crons.create(
        "short", jobTemplate=template, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0
    )
    for number in (1, 2):
        crons.change("short", trigger=number)
        until(lambda number=number: crons.jobs.exists(f"short-t{number}"), 10)  # type: ignore[misc]  # bound at once
        crons.until_status("short", triggers=number, reserved=None)
        finish(worker, f"short-t{number}")
    until(lambda: crons.names("short") == ["short-t2"], 10)
    crons.change("short", trigger=3)
    until(lambda: crons.jobs.exists("short-t3"), 10)
    crons.until_status("short", triggers=3, reserved=None)
    worker.claim("short-t3")
    worker.fail("short-t3")
    until(lambda: crons.names("short") == ["short-t2"], 10)
    assert crons.until_quiet("short")["activeCount"] == 0


def test_what_is_wrong_with_a_schedule_is_said_and_others_go_on(crons: Crons) -> None:
    crons.create("zone", timeZone="Mars/Olympus")
    crons.create("range", schedule="5-1 * * * *")
    crons.create("never", schedule="0 0 30 2 *")
    crons.create("fine", trigger=1)
    crons.jobs.create("taken-t1")
    crons.create("taken", trigger=1)
    bad_label = {"metadata": {"labels": {"a": "not a label!"}}, "spec": {"type": "test"}}
    crons.create("refused", jobTemplate=bad_label, trigger=1)
    crons.until_runs("fine", 1)
    assert "spec.timeZone" in crons.until_status("zone", reason="BadTimeZone")["message"]
    assert "minute" in crons.until_status("range", reason="BadSchedule")["message"]
    assert "no day" in crons.until_status("never", reason="NeverFires")["message"]
    assert "taken-t1" in crons.until_status("taken", reason="NameTaken")["message"]
    crons.until_status("refused", reason="JobRefused", reserved=None)
    until(lambda: crons.jobs.events("zone"), 5)
    crons.change("zone", timeZone="Europe/Berlin")
    crons.until_status("zone", reason="Scheduled", message=None)
    assert crons.names("taken") == []
    assert CRON_JOB_LABEL not in crons.jobs.get("taken-t1")["metadata"].get("labels", {})


def test_a_deleted_schedule_leaves_its_jobs_alone(crons: Crons, worker: FakeWorker) -> None:
    crons.create("gone", trigger=1)
    crons.until_runs("gone", 1)
    crons.until_status("gone", reserved=None)
    crons.api.delete(cron_job_path(crons.jobs.namespace, "gone"))
    finish(worker, "gone-t1")
    again = crons.create("gone", trigger=1)
    assert "another job" in crons.until_status("gone", reason="NameTaken")["message"]
    crons.change("gone", trigger=2)
    crons.until_status("gone", triggers=2, reserved=None)
    owners = {run["metadata"]["labels"][CRON_JOB_UID_LABEL] for run in crons.runs("gone")}
    assert len(owners) == 2
    assert again["metadata"]["uid"] in owners
