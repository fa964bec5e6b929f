"""Finished jobs that are no longer kept."""

import time
from pathlib import Path

import pytest

from asyncjob.names import JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = pytest.mark.integration


def finish(jobs: Jobs, worker: FakeWorker, name: str, **spec: object) -> None:
    jobs.create(name, **spec)
    if "deduplicationId" in spec:
        until(lambda: jobs.status(name).get("admitted"), 5)
    worker.claim(name)
    worker.succeed(name)


def test_a_job_is_removed_when_its_own_time_to_live_is_over(jobs: Jobs, worker: FakeWorker) -> None:
    finish(jobs, worker, "brief", ttlSecondsAfterFinished=2)
    finish(jobs, worker, "kept")
    until(lambda: not jobs.exists("brief"), 8)
    assert jobs.exists("kept")


def test_a_job_with_a_long_memory_outlives_its_time_to_live(jobs: Jobs, worker: FakeWorker) -> None:
    finish(jobs, worker, "keyed", ttlSecondsAfterFinished=0, idempotencyKey="k")
    finish(jobs, worker, "plain", ttlSecondsAfterFinished=0)
    until(lambda: not jobs.exists("plain"), 8)
    time.sleep(1.5)
    assert jobs.exists("keyed")


def test_of_a_queues_finished_jobs_the_newest_are_kept(jobs: Jobs, worker: FakeWorker) -> None:
    jobs.queue("small", retention={"maxFinished": 2})
    for number in range(4):
        finish(jobs, worker, f"job-{number}", queue="small")
        time.sleep(0.01)
    until(lambda: not jobs.exists("job-0") and not jobs.exists("job-1"), 8)
    assert jobs.exists("job-2")
    assert jobs.exists("job-3")


def test_a_floor_of_the_queue_protects_what_is_beyond_its_count(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.queue("floor", retention={"maxFinished": 0, "minAgeSeconds": 3600})
    finish(jobs, worker, "young", queue="floor")
    time.sleep(2.5)
    assert jobs.exists("young")


def test_a_namespace_beyond_its_limit_is_told_of_once_in_an_event(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    jobs = Jobs(fragile_plane.api)
    home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
    limit = "--retention-namespace-limit=2"
    worker = FakeWorker(jobs)
    with OperatorProcess(operator_access, tmp_path / "log", *QUICK, *home, limit) as operator:
        operator.until_ready().until_leading()
        for begun in (0, 5):
            for number in range(begun, begun + 5):
                finish(jobs, worker, f"job-{number}")
            until(lambda: len(jobs.api.get(collection_path(jobs.namespace, JOBS))["items"]) == 2, 8)
        [event] = until(lambda: jobs.events(jobs.namespace), 5)
        warnings = operator.logs().count("too many finished jobs")
    assert (event["type"], event["reason"]) == ("Warning", "StoreNearLimit")
    assert event["involvedObject"]["kind"] == "Namespace"
    assert event["metadata"]["namespace"] == jobs.namespace
    assert warnings > 1
