"""Times that somebody forged, clocks that are wrong, and numbers that the schema bounds."""

from pathlib import Path
from typing import Any

import pytest

from asyncjob.names import CRON_JOB_UID_LABEL, job_path
from asyncjob_dev.controlplane import ControlPlane
from support.driven.crons import Crons, SkewedOperator, minutes_ago
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = pytest.mark.integration

LONG_AGO = "1970-01-01T00:00:00Z"
DAY = 86_400.0


def dead_since_long(jobs: Jobs, worker: FakeWorker, name: str) -> None:
    """Make a dead letter whose first worker's clock said 1970."""
    jobs.create(name, retryPolicy={"maxRetries": 0}, cancelGraceSeconds=1)
    worker.claim(name, started=LONG_AGO)
    worker.fail(name)
    status = jobs.status(name)
    assert (status["phase"], status["durationSeconds"]) == ("DeadLetter", 31_536_000)


@pytest.mark.parametrize("ending", ["succeed", "fail"])
def test_a_dead_letter_that_first_started_years_ago_can_be_run_to_its_end(
    jobs: Jobs, worker: FakeWorker, ending: str
) -> None:
    dead_since_long(jobs, worker, "old")
    jobs.change_spec("old", redrive=1)
    jobs.until_phase("old", "Queued")
    worker.claim("old")
    status = getattr(worker, ending)("old")["status"]
    assert status["phase"] == {"succeed": "Succeeded", "fail": "DeadLetter"}[ending]
    assert status["durationSeconds"] == 31_536_000


def test_a_job_that_first_started_years_ago_can_be_cancelled_and_recovered(
    jobs: Jobs, worker: FakeWorker
) -> None:
    for name in ("waiting", "running", "silent"):
        dead_since_long(jobs, worker, name)
        jobs.change_spec(name, redrive=1)
        jobs.until_phase(name, "Queued")
    jobs.change_spec("waiting", cancel=True)
    jobs.until_phase("waiting", "Cancelled")
    worker.claim("running", lease=60)
    jobs.change_spec("running", cancel=True)
    worker.claim("silent", maxRetries=0)
    assert jobs.until_phase("running", "Cancelled", 40)["durationSeconds"] == 31_536_000
    assert jobs.until_reason("silent", "LeaseExpired", 20)["phase"] == "Queued"


@pytest.mark.parametrize("forged", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_forged_time_neither_stops_others_nor_keeps_the_job(
    jobs: Jobs, worker: FakeWorker, forged: str
) -> None:
    for name in ("forged", "kept"):
        jobs.create(name, ttlSecondsAfterFinished=4)
        worker.claim(name)
        worker.succeed(name)
    path = job_path(jobs.namespace, "forged")
    fields = jobs.api.get(path)["metadata"]["managedFields"]
    changed = [{**entry, "time": forged} for entry in fields]
    jobs.api.merge(path, {"metadata": {"managedFields": changed}})
    jobs.create("honest", notAfter="2099-01-01T00:00:00Z")
    until(lambda: jobs.status("honest").get("admitted"), 5)
    until(lambda: not jobs.exists("forged"), 12)


def test_a_finished_job_is_no_run_of_a_schedule_whatever_its_labels_say(
    jobs: Jobs, worker: FakeWorker
) -> None:
    crons = Crons(jobs)
    cron = crons.create("greedy", successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0)
    for name in ("mine", "keyed", "greedy"):
        jobs.create(name, **({"idempotencyKey": "k"} if name == "keyed" else {}))
        worker.claim(name)
        worker.succeed(name)
        label = {CRON_JOB_UID_LABEL: cron["metadata"]["uid"]}
        jobs.api.merge(job_path(jobs.namespace, name), {"metadata": {"labels": label}})
    crons.change("greedy", trigger=1)
    crons.until_status("greedy", triggers=1, reserved=None)
    worker.claim("greedy-t1")
    worker.succeed("greedy-t1")
    until(lambda: not jobs.exists("greedy-t1"), 10)
    assert all(jobs.exists(name) for name in ("mine", "keyed", "greedy"))


def quota(jobs: Jobs, hard: int) -> None:
    """Let the namespace hold so many jobs, as soon as the API server has noticed."""
    path = f"/api/v1/namespaces/{jobs.namespace}/resourcequotas"
    limits = {"count/asyncjobs.asyncjob.dev": str(hard)}
    body: dict[str, Any] = {"metadata": {"name": "jobs"}, "spec": {"hard": limits}}
    if jobs.api.answers(f"{path}/jobs"):
        jobs.api.merge(f"{path}/jobs", body)
    else:
        jobs.api.create(path, body)
    used = {"status": {"hard": limits, "used": dict.fromkeys(limits, "0")}}
    jobs.api.merge(f"{path}/jobs/status", used)


@pytest.mark.parametrize(("policy", "runs"), [("Skip", 0), ("FireOnce", 1)])
def test_a_quota_that_gives_way_is_not_followed_by_a_burst(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path, policy: str, runs: int
) -> None:
    jobs = Jobs(fragile_plane.api)
    crons = Crons(jobs)
    quota(jobs, 0)
    crons.create(
        "quick",
        schedule="* * * * *",
        misfirePolicy="FireAll",
        misfireLimit=5,
        startingDeadlineSeconds=5,
        status={"settledTime": minutes_ago(5)},
    )
    home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
    with OperatorProcess(operator_access, tmp_path / "log", *QUICK, *home) as operator:
        operator.until_ready().until_leading()
        until(lambda: "exceeded quota" in operator.logs(), 15)
        reserved = crons.status("quick")["reserved"]["runs"]
        assert len(reserved) == 5
        crons.change("quick", misfirePolicy=policy)
        quota(jobs, 100)
        until(lambda: "reserved" not in crons.status("quick"), 20)
    meanwhile = 1
    assert len(crons.runs("quick")) <= runs + meanwhile
    assert crons.status("quick")["missed"] >= len(reserved) - runs - meanwhile


def test_an_operator_whose_machines_clock_is_wrong_neither_deletes_nor_runs_ahead(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    jobs = Jobs(fragile_plane.api)
    crons, worker = Crons(jobs), FakeWorker(jobs)
    home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
    skewed = SkewedOperator(
        operator_access, tmp_path / "log", *QUICK, *home, skew=31 * DAY, of="machine"
    )
    with skewed as operator:
        operator.until_ready().until_leading()
        jobs.create("kept", idempotencyKey="k")
        jobs.create("dead", retryPolicy={"maxRetries": 0})
        jobs.create("brief", ttlSecondsAfterFinished=1)
        for name in ("kept", "brief"):
            worker.claim(name)
            worker.succeed(name)
        worker.claim("dead")
        worker.fail("dead")
        crons.create("hourly", schedule="0 * * * *", trigger=1)
        status = crons.until_status("hourly", triggers=1, reserved=None)
        until(lambda: not jobs.exists("brief"), 10)
        assert jobs.exists("kept")
        assert jobs.exists("dead")
        until(lambda: "clock disagrees with the API server" in operator.logs(), 5)
    assert len(crons.names("hourly")) <= 2
    assert status["nextScheduleTime"] < minutes_ago(-61)
