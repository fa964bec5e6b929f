"""Schedules under one operator: what is due, what was missed, and what users ask for."""

import pytest

from asyncjob.names import CRON_JOB_UID_LABEL, TRIGGER_ANNOTATION
from asyncjob_dev.errors import ApiError
from support.crons import Crons
from support.operator import FakeWorker, Jobs

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
    status = crons.until_status("daily", activeCount=0)
    assert status["lastSuccessfulTime"]
    crons.until_quiet("daily")
    assert crons.names("daily") == ["daily-t3"]
    with pytest.raises(ApiError, match="never shrinks"):
        crons.change("daily", trigger=2)
