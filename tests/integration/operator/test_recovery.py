"""Jobs of workers that died, told by their leases, their pods, or their successors."""

import time

import pytest

from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, now, until
from support.processes.operator import JOB_WATCHES, OperatorProcess

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("operator", JOB_WATCHES, indirect=True),
]

LEASE = 5


def test_a_job_whose_heartbeats_stop_is_queued_again_as_a_crash_once_its_lease_has_ended(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("silent")
    claimed = now()
    worker.claim("silent", lease=LEASE)
    status = jobs.until_phase_after("silent", "Queued", LEASE, since=claimed, within=LEASE + 4)
    assert status["reason"] == "LeaseExpired"
    assert (status.get("crashes", 0), status.get("retries", 0)) == (1, 0)
    assert not {"lease", "retryDelaySeconds", "nextAttemptTime"} & {*status}


def test_the_second_crash_waits_for_its_backoff(jobs: Jobs, worker: FakeWorker) -> None:
    jobs.create("pill", retryPolicy={"initialDelaySeconds": 1, "jitter": 0})
    worker.claim("pill", lease=60)
    worker.end_container(137)
    assert jobs.until_phase("pill", "Queued", within=5)["crashes"] == 1
    worker.start()
    worker.claim("pill", lease=60)
    worker.end_container(137)
    status = jobs.until_phase("pill", "Retrying", within=8)
    assert (status["reason"], status["crashes"]) == ("WorkerCrashed", 2)
    assert status["retryDelaySeconds"] == 2
    assert jobs.until_phase("pill", "Queued", within=6)["reason"] == "BackoffElapsed"


def test_a_job_whose_heartbeats_go_on_stays_with_its_worker(jobs: Jobs, worker: FakeWorker) -> None:
    jobs.create("steady")
    worker.claim("steady", lease=LEASE)
    for _ in range(8):
        time.sleep(1)
        worker.renew("steady")
    assert jobs.status("steady")["phase"] == "Running"


@pytest.mark.parametrize("skew", [-600, 600])
def test_a_worker_whose_clock_is_ten_minutes_off_keeps_its_job(
    jobs: Jobs, worker: FakeWorker, skew: float
) -> None:
    jobs.create("skewed")
    claimed = now()
    worker.claim("skewed", lease=LEASE, started=now(skew))
    status = jobs.until_phase_after("skewed", "Queued", LEASE, since=claimed, within=LEASE + 4)
    assert status["reason"] == "LeaseExpired"


def test_a_container_that_ended_with_an_error_is_a_crash_at_once(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("killed")
    worker.claim("killed", lease=60)
    worker.end_container(137, reason="OOMKilled")
    status = jobs.until_phase("killed", "Queued", within=5)
    assert status["reason"] == "WorkerCrashed"
    assert "OOMKilled" in status["message"]
    assert status.get("crashes", 0) == 1


def test_a_container_that_ended_well_has_released_its_jobs(jobs: Jobs, worker: FakeWorker) -> None:
    jobs.create("left")
    worker.claim("left", lease=60)
    worker.end_container(0, reason="Completed")
    status = jobs.until_phase("left", "Queued", within=5)
    assert (status["reason"], status.get("releases", 0)) == ("WorkerGone", 1)
    assert (status.get("crashes", 0), status.get("retries", 0)) == (0, 0)


def test_a_claim_in_the_very_second_of_the_containers_end_is_recovered_a_little_later(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("narrow")
    moment = now()
    worker.claim("narrow", lease=60, started=moment[:19] + ".900Z")
    worker.end_container(137, finished=moment)
    assert jobs.until_phase("narrow", "Queued", within=8)["reason"] == "WorkerCrashed"


def test_an_evicted_pod_has_released_its_jobs(jobs: Jobs, worker: FakeWorker) -> None:
    jobs.create("evicted")
    worker.claim("evicted", lease=60)
    worker.pod_status({"phase": "Failed", "reason": "Evicted"})
    assert jobs.until_phase("evicted", "Queued", within=5)["reason"] == "WorkerGone"


def test_a_newer_process_of_the_pod_frees_the_jobs_of_the_older_but_not_its_own(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("older")
    jobs.create("newer")
    worker.claim("older", lease=60)
    worker.start()
    worker.claim("newer", lease=60)
    assert jobs.until_phase("older", "Queued", within=5)["reason"] == "WorkerCrashed"
    assert jobs.status("newer")["phase"] == "Running"


def test_a_pod_merely_gone_may_still_run_so_its_lease_has_to_end(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("orphan")
    claimed = now()
    worker.claim("orphan", lease=LEASE)
    worker.delete_pod()
    status = jobs.until_phase_after("orphan", "Queued", LEASE, since=claimed, within=LEASE + 4)
    assert (status["reason"], status.get("releases", 0)) == ("WorkerGone", 1)


def test_a_job_without_crash_budget_becomes_a_dead_letter(jobs: Jobs, worker: FakeWorker) -> None:
    jobs.create("poison", retryPolicy={"maxCrashes": 0})
    worker.claim("poison", lease=60)
    worker.end_container(139)
    status = jobs.until_phase("poison", "DeadLetter", within=5)
    assert (status["reason"], status.get("crashes", 0)) == ("CrashBudgetExhausted", 1)
    assert status["error"]["category"] == "Crash"
    assert until(lambda: jobs.events("poison"), 5)[0]["reason"] == "CrashBudgetExhausted"


def test_a_cancelled_job_of_a_dead_worker_is_cancelled_not_retried(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("moot", cancelGraceSeconds=60)
    worker.claim("moot", lease=60)
    jobs.change_spec("moot", cancel=True)
    worker.end_container(137)
    assert jobs.until_phase("moot", "Cancelled", within=5)["reason"] == "CancelRequested"


def test_an_attempt_that_outlives_its_timeout_fails_although_its_heartbeats_go_on(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("endless", executionTimeoutSeconds=2)
    worker.claim("endless", lease=60)
    status = jobs.until_phase("endless", "Retrying", within=6)
    assert (status["reason"], status.get("retries", 0)) == ("ExecutionTimeout", 1)
    assert status["error"]["category"] == "Timeout"


def test_a_timeout_that_is_not_retried_ends_in_the_dead_letters(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("once", executionTimeoutSeconds=1, retryPolicy={"noRetryOn": ["Timeout"]})
    worker.claim("once", lease=60)
    assert jobs.until_phase("once", "DeadLetter", within=6)["reason"] == "ExecutionTimeout"


def test_recovered_jobs_are_counted_and_logged(
    jobs: Jobs, worker: FakeWorker, operator: OperatorProcess
) -> None:
    name, before = "asyncjob_operator_recovery_recovered_total", 0.0
    before = operator.metric(name, reason="WorkerCrashed")
    jobs.create("counted")
    worker.claim("counted", lease=60)
    worker.end_container(1)
    jobs.until_phase("counted", "Queued", within=5)
    until(lambda: operator.metric(name, reason="WorkerCrashed") == before + 1, 3)
    assert operator.metric("asyncjob_operator_recovery_cycles_total") > 0
    assert operator.metric("asyncjob_operator_recovery_duration_seconds_count") > 0
    until(lambda: "jobs recovered" in operator.logs(), 3)
