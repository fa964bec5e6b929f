"""Two tenants: what one writes into labels, Leases and finalizers is nothing to the other."""

from pathlib import Path

import pytest

from asyncjob.names import (
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    JOBS,
    PARENT_LABEL,
    collection_path,
    job_path,
)
from asyncjob_dev.controlplane import ControlPlane
from support.driven.crons import Crons
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = pytest.mark.integration


@pytest.fixture
def foreign(control_plane: ControlPlane, operator: OperatorProcess) -> Jobs:
    """Jobs of another tenant, under the same operator."""
    del operator
    return Jobs(control_plane.api)


def labelled(jobs: Jobs, name: str, labels: dict[str, str], **spec: object) -> None:
    body = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {"name": name, "labels": labels},
        "spec": {"type": "test", **spec},
    }
    jobs.api.create(collection_path(jobs.namespace, JOBS), body)


def test_a_job_that_names_a_parent_in_another_namespace_holds_up_nobody_there(
    jobs: Jobs, worker: FakeWorker, foreign: Jobs
) -> None:
    parent = jobs.create("parent")["metadata"]["uid"]
    labelled(foreign, "foreign", {PARENT_LABEL: parent}, suspend=True)
    foreign.until_phase("foreign", "Pending")
    jobs.create("next", dependsOn=[{"name": "parent", "children": True}])
    worker.claim("parent")
    worker.succeed("parent")
    assert jobs.until_phase("next", "Queued")["admitted"] is True


def test_a_job_that_names_a_parent_in_another_namespace_fails_nobody_there(
    jobs: Jobs, worker: FakeWorker, foreign: Jobs
) -> None:
    parent = jobs.create("parent")["metadata"]["uid"]
    jobs.create("gate", suspend=True)
    needs = [{"name": "parent", "children": True}, {"name": "gate"}]
    jobs.create("next", dependsOn=needs)
    worker.claim("parent")
    worker.succeed("parent")
    labelled(foreign, "foreign", {PARENT_LABEL: parent}, cancel=True)
    foreign.until_phase("foreign", "Cancelled")
    jobs.change_spec("gate", suspend=False)
    jobs.until_reason("gate", "GateOpened")
    worker.claim("gate")
    worker.succeed("gate")
    assert jobs.until_phase("next", "Queued")["admitted"] is True


def test_a_job_that_names_a_schedule_of_another_namespace_keeps_none_of_its_runs_from_running(
    jobs: Jobs, foreign: Jobs
) -> None:
    crons = Crons(jobs)
    uid = crons.create("daily", concurrencyPolicy="Forbid")["metadata"]["uid"]
    crons.until_status("daily", reason="Scheduled")
    labels = {CRON_JOB_UID_LABEL: uid, CRON_JOB_LABEL: "daily"}
    labelled(foreign, "foreign", labels, suspend=True)
    foreign.until_phase("foreign", "Pending")
    crons.change("daily", trigger=1)
    crons.until_runs("daily", 1)
    status = crons.until_status("daily", triggers=1, activeCount=1, reserved=None)
    assert [one["name"] for one in status["active"]] == ["daily-t1"]


def test_finished_jobs_of_another_namespace_push_none_out_of_a_schedules_history(
    jobs: Jobs, worker: FakeWorker, foreign: Jobs
) -> None:
    crons = Crons(jobs)
    made = crons.create("daily", successfulJobsHistoryLimit=1, failedJobsHistoryLimit=1, trigger=1)
    crons.until_runs("daily", 1)
    worker.claim("daily-t1")
    worker.succeed("daily-t1")
    crons.until_status("daily", activeCount=0)
    labels = {CRON_JOB_UID_LABEL: made["metadata"]["uid"], CRON_JOB_LABEL: "daily"}
    other = FakeWorker(foreign)
    for number in range(3):
        labelled(foreign, f"foreign-{number}", labels)
        other.claim(f"foreign-{number}")
        other.succeed(f"foreign-{number}")
    # A further run shows that the cron job was looked at since.
    crons.change("daily", trigger=2)
    crons.until_runs("daily", 2)
    crons.until_status("daily", triggers=2, reserved=None)
    assert crons.names("daily") == ["daily-t1", "daily-t2"]
    assert all(foreign.exists(f"foreign-{number}") for number in range(3))


def held(jobs: Jobs, name: str, **spec: object) -> None:
    """Create a job with a finalizer, as who may delete jobs can."""
    body = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {"name": name, "finalizers": ["example.com/forgotten"]},
        "spec": {"type": "test", **spec},
    }
    jobs.api.create(collection_path(jobs.namespace, JOBS), body)


def test_a_running_job_that_is_being_deleted_gives_its_place_back_when_its_worker_is_dead(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.queue("narrow", maxConcurrency=1)
    held(jobs, "leaving", queue="narrow")
    until(lambda: jobs.status("leaving").get("admitted"), 10)
    worker.claim("leaving", lease=5)
    jobs.create("next", queue="narrow")
    jobs.api.delete(job_path(jobs.namespace, "leaving"))
    status = jobs.until_phase("leaving", "Cancelled", within=15)
    assert status["reason"] == "CancelRequested"
    until(lambda: jobs.status("next").get("admitted"), 10)
    assert jobs.get("leaving")["metadata"]["deletionTimestamp"]


def test_a_running_job_that_is_being_deleted_under_a_live_worker_has_its_grace_and_no_more(
    jobs: Jobs, worker: FakeWorker
) -> None:
    held(jobs, "stubborn", cancelGraceSeconds=1)
    worker.claim("stubborn", lease=60)
    jobs.api.delete(job_path(jobs.namespace, "stubborn"))
    assert jobs.until_phase("stubborn", "Cancelled")["reason"] == "CancelRequested"


def test_a_schedule_does_not_wait_for_a_run_that_is_being_deleted(
    jobs: Jobs, worker: FakeWorker
) -> None:
    crons = Crons(jobs)
    template = {
        "metadata": {},
        "spec": {"type": "test", "cancelGraceSeconds": 1},
    }
    crons.create("daily", concurrencyPolicy="Forbid", jobTemplate=template, trigger=1)
    crons.until_runs("daily", 1)
    crons.until_status("daily", reserved=None, activeCount=1)
    path = job_path(jobs.namespace, "daily-t1")
    jobs.api.merge(path, {"metadata": {"finalizers": ["example.com/forgotten"]}})
    worker.claim("daily-t1", lease=60)
    jobs.api.delete(path)
    crons.until_status("daily", activeCount=0)
    crons.change("daily", trigger=2)
    crons.until_runs("daily", 2)


def test_a_dismissed_job_goes_although_a_redrive_was_requested_and_never_done(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("both", retryPolicy={"maxRetries": 0}, ttlSecondsAfterFinished=0)
    worker.claim("both")
    worker.fail("both")
    jobs.change_spec("both", cancel=True, redrive=1)
    until(lambda: not jobs.exists("both"), 10, "its removal")


def test_a_lease_that_says_it_runs_fewer_than_no_jobs_stops_no_queue_and_is_not_written_down(
    jobs: Jobs, operator: OperatorProcess
) -> None:
    jobs.queue("narrow", maxConcurrency=5)
    liar = FakeWorker(jobs, "liar")
    labels = {"asyncjob.dev/queue": "narrow"}
    said = '{"types": ["test"], "slots": -1000000}'
    meta = {"labels": labels, "annotations": {"asyncjob.dev/worker": said}}
    jobs.api.merge(liar.lease_path, {"metadata": meta})
    path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{jobs.namespace}/asyncqueues/narrow"
    until(lambda: jobs.api.get(path).get("status", {}).get("workers") == 1, 20, "its number")
    assert jobs.api.get(path)["status"]["slots"] == 0
    jobs.create("job", queue="narrow")
    until(lambda: jobs.status("job").get("admitted"), 10)
    assert f"{jobs.namespace}/narrow" not in "".join(
        line for line in operator.logs().splitlines() if "not written" in line
    )


def test_a_place_goes_to_another_type_when_the_workers_of_the_one_that_has_it_are_gone(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    jobs = Jobs(fragile_plane.api)
    home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
    options = (*QUICK, *home, "--unknown-type-delay=2")
    with OperatorProcess(operator_access, tmp_path / "log", *options) as running:
        running.until_ready().until_leading()
        place_changes_hands(jobs)


def place_changes_hands(jobs: Jobs) -> None:
    jobs.queue("shared", maxConcurrency=1)
    for pod in ("a", "b"):
        worker = FakeWorker(jobs, pod)
        meta = {
            "labels": {"asyncjob.dev/queue": "shared"},
            "annotations": {"asyncjob.dev/worker": f'{{"types": ["{pod}"], "slots": 1}}'},
        }
        jobs.api.merge(worker.lease_path, {"metadata": meta})
    jobs.create("first", queue="shared", type="a")
    until(lambda: jobs.status("first").get("admitted"), 10)
    jobs.create("second", queue="shared", type="b")
    FakeWorker(jobs, "a", with_pod=False).withdraw()
    until(lambda: jobs.status("second").get("admitted"), 15)
    assert "lists type a any more" in str(jobs.status("first")["history"])
    assert not jobs.status("first").get("admitted")
