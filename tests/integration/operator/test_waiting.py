"""Jobs that wait: for their time, for their gate, for a worker that never comes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, now, until
from support.processes.operator import WATCHES_OF_LONG_FILES

pytestmark = [
    pytest.mark.integration,
    pytest.mark.parametrize("operator", WATCHES_OF_LONG_FILES, indirect=True),
]


def test_a_job_with_a_start_time_is_scheduled_and_then_queued_and_admitted(jobs: Jobs) -> None:
    jobs.create("later", notBefore=now(3))
    assert jobs.until_phase("later", "Scheduled")["reason"] == "NotBefore"
    status = jobs.until_phase("later", "Queued", within=10)
    assert status["admitted"] is True
    assert status["reason"] == "StartTimeReached"


def test_a_start_time_in_the_past_admits_the_job_where_it_stands(jobs: Jobs) -> None:
    jobs.create("past", notBefore=now(-5))
    until(lambda: jobs.status("past").get("admitted"), 5)
    assert jobs.status("past")["phase"] == "Queued"


def test_a_failed_attempt_is_queued_again_after_its_delay_and_not_before(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("again", retryPolicy={"initialDelaySeconds": 2, "jitter": 0})
    worker.claim("again")
    failed = now()
    assert worker.fail("again")["status"]["phase"] == "Retrying"
    status = jobs.until_phase_after("again", "Queued", 2, since=failed, within=4.5)
    assert (status["reason"], status.get("retries", 0)) == ("BackoffElapsed", 1)


def test_cancelling_a_waiting_job_cancels_it_at_once(jobs: Jobs) -> None:
    jobs.create("unwanted")
    jobs.change_spec("unwanted", cancel=True)
    assert jobs.until_phase("unwanted", "Cancelled", within=3)["reason"] == "CancelRequested"


def test_a_job_not_started_by_its_deadline_is_cancelled(jobs: Jobs) -> None:
    jobs.create("late", notAfter=now(2))
    status = jobs.until_phase("late", "Cancelled", within=6)
    assert status["reason"] == "DeadlineExceeded"


def test_a_job_with_a_deadline_ahead_is_let_through(jobs: Jobs) -> None:
    jobs.create("early", notAfter=now(60))
    until(lambda: jobs.status("early").get("admitted"), 5)
    assert jobs.status("early")["phase"] == "Queued"


def test_a_deadline_means_nothing_to_a_job_that_has_started(jobs: Jobs, worker: FakeWorker) -> None:
    policy = {"initialDelaySeconds": 4, "jitter": 0}
    jobs.create("begun", notAfter=now(4), retryPolicy=policy)
    until(lambda: jobs.status("begun").get("admitted"), 4)
    worker.claim("begun")
    worker.fail("begun")
    assert jobs.until_phase("begun", "Queued")["admitted"] is True
    jobs.stays("begun", "Queued", 1)


def test_a_job_nobody_claims_in_time_becomes_a_dead_letter_and_an_event_says_so(
    jobs: Jobs,
) -> None:
    jobs.create("ignored", queueTimeoutSeconds=2)
    assert jobs.until_phase("ignored", "DeadLetter", within=6)["reason"] == "QueueTimeout"
    events = until(lambda: jobs.events("ignored"), 5)
    assert [(event["reason"], event["type"]) for event in events] == [("QueueTimeout", "Warning")]


def test_time_in_a_paused_queue_does_not_count_towards_the_queue_timeout(jobs: Jobs) -> None:
    jobs.queue("paused", paused=True)
    jobs.create("patient", queue="paused", queueTimeoutSeconds=1)
    jobs.stays("patient", "Queued", 2.5)


def test_a_suspended_job_waits_by_that_name_until_it_is_resumed(jobs: Jobs) -> None:
    jobs.create("held", suspend=True)
    assert jobs.until_phase("held", "Pending")["reason"] == "Suspended"
    jobs.change_spec("held", suspend=False)
    assert jobs.until_phase("held", "Queued")["reason"] == "GateOpened"


def test_a_job_with_dependencies_waits_by_that_name(jobs: Jobs) -> None:
    jobs.create("child", dependsOn=[{"name": "parent"}])
    assert jobs.until_phase("child", "Pending")["reason"] == "WaitingForDependency"


def test_of_two_jobs_with_one_deduplication_id_the_later_is_cancelled(jobs: Jobs) -> None:
    jobs.create("first", deduplicationId="one")
    until(lambda: jobs.status("first").get("admitted"), 5)
    jobs.create("second", deduplicationId="one")
    status = jobs.until_phase("second", "Cancelled", within=5)
    assert status["reason"] == "Duplicate"
    assert "first" in status["message"]
    assert jobs.status("first")["phase"] == "Queued"


def test_a_deduplication_id_is_free_again_once_its_holder_has_finished(
    jobs: Jobs, worker: FakeWorker
) -> None:
    jobs.create("one", deduplicationId="free")
    until(lambda: jobs.status("one").get("admitted"), 5)
    worker.claim("one")
    worker.succeed("one")
    jobs.create("two", deduplicationId="free")
    until(lambda: jobs.status("two").get("admitted"), 5)


def test_of_many_jobs_created_at_once_with_one_deduplication_id_exactly_one_is_let_through(
    jobs: Jobs,
) -> None:
    names = [f"competitor-{number}" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: jobs.create(name, deduplicationId="race"), names))

    def settled() -> bool:
        states = [jobs.status(name) for name in names]
        through = [state for state in states if state.get("admitted")]
        assert len(through) <= 1
        return len(through) == 1 and len([s for s in states if s["phase"] == "Cancelled"]) == 7

    until(settled, 15)
