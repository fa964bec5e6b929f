"""Following jobs and asking things of them: the same by every client."""

import threading
from typing import Any

import pytest

from asyncjob import RetryPolicy
from asyncjob.client import Jobs
from asyncjob.client.errors import (
    JobFailedError,
    JobGoneError,
    JobNotFoundError,
    JobStateError,
    NoResultError,
    NotADeadLetterError,
    NotCancellableError,
    WaitTimeoutError,
)
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import Job
from asyncjob.rest.listing import Selection
from contract.clients.full_stack import ScenarioScope

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WITHIN = 30.0
NO_RETRY = RetryPolicy(max_retries=0)


def dead(jobs: Jobs, scope: ScenarioScope, **options: Any) -> Job:
    """Return a dead letter."""
    done = jobs.submit("fail", "broken", retry=NO_RETRY, labels=scope.label, **options)
    return jobs.wait(done.id, WITHIN)


def test_a_job_is_waited_for_and_tells_its_result_and_history(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    gate, seen = scope.name("gate"), list[Job]()

    def on_change(job: Job) -> None:
        seen.append(job)
        if job.phase == "Running":
            scope.open(gate)

    done = jobs.submit("wait", gate, labels=scope.label)
    job = jobs.wait(done.id, WITHIN, on_change=on_change, raise_on_failure=True)
    phases = list(dict.fromkeys(one.phase.value for one in seen))
    assert phases[-2:] == ["Running", "Succeeded"]
    assert (job.succeeded, job.result, job.attempt) == (True, "waited", 1)
    assert jobs.result(done.id) == "waited"
    happened = [one.phase for one in jobs.history(done.id)]
    assert happened == ["Created", "Succeeded"]
    assert jobs.history(done.id)[1].start_time == job.started_at
    assert job.duration_seconds is not None


def test_progress_is_polled_until_the_job_has_finished(jobs: Jobs, scope: ScenarioScope) -> None:
    gate = scope.name("gate")
    payload = {"rows": 4, "hold": 2, "gate": gate}
    done = jobs.submit("steps", payload, lease=5)
    reports = list[Any]()
    for job in jobs.poll(done.id, 0.2):
        if job.progress:
            reports.append((job.progress.percent, job.progress.message))
        if (25, "row 1") in reports:
            scope.open(gate)
    assert jobs.get(done.id).succeeded
    assert (25, "row 1") in reports
    assert reports[-1][0] == 100


def test_a_failure_tells_attempts_retries_and_the_last_error(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    retry = RetryPolicy(max_retries=1, initial_delay_seconds=0, jitter=0)
    done = jobs.submit("break", "no luck", retry=retry)
    with pytest.raises(JobFailedError, match=r"DeadLetter .* after 1 of 1 retries: .*no luck") as e:
        jobs.wait(done.id, WITHIN, raise_on_failure=True)
    failed = e.value
    assert (failed.attempts, failed.retries, failed.max_retries) == (2, 1, 1)
    assert failed.error
    assert failed.error.message == "no luck"
    with pytest.raises(NoResultError):
        jobs.result(done.id)


def test_waiting_ends_in_time_and_tells_where_the_job_is(jobs: Jobs, scope: ScenarioScope) -> None:
    done = jobs.submit("echo", queue=scope.queue)
    with pytest.raises(WaitTimeoutError, match="it is Queued") as caught:
        jobs.wait(done.id, 0.5)
    assert caught.value.job
    assert caught.value.job.id == done.id


def test_a_job_that_vanishes_while_it_is_waited_for_is_told_of(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    name = scope.name("vanishes")
    scope.apply(name)

    def delete(_: Job) -> None:
        scope.delete(name)

    with pytest.raises(JobGoneError, match="deleted"):
        jobs.wait(name, WITHIN, on_change=delete)


@pytest.mark.parametrize("job_id", ["nobody", "../../etc", "a/b", "", "Ä", "x" * 300, "%2e%2e"])
def test_what_is_no_job_is_not_found(jobs: Jobs, job_id: str) -> None:
    with pytest.raises(JobNotFoundError):
        jobs.get(job_id)
    with pytest.raises(JobNotFoundError):
        jobs.cancel(job_id)
    with pytest.raises(JobNotFoundError):
        jobs.wait(job_id, 5)


def test_a_job_is_cancelled_and_a_succeeded_one_is_not(jobs: Jobs, scope: ScenarioScope) -> None:
    done = jobs.submit("echo", queue=scope.queue)
    assert jobs.cancel(done.id).id == done.id
    job = jobs.wait(done.id, WITHIN)
    assert (job.phase, job.reason, job.cancelled_at is not None) == (
        "Cancelled",
        "CancelRequested",
        True,
    )
    assert jobs.cancel(done.id).phase == "Cancelled"
    succeeded = jobs.submit("echo", 1)
    jobs.wait(succeeded.id, WITHIN, raise_on_failure=True)
    with pytest.raises(NotCancellableError, match=succeeded.id):
        jobs.cancel(succeeded.id)


def test_a_cancel_takes_along_what_waits_for_the_job(jobs: Jobs, scope: ScenarioScope) -> None:
    first = jobs.submit("echo", queue=scope.queue)
    second = jobs.submit("echo", queue=scope.queue, depends_on=[first])
    jobs.cancel(first.id, cascade=True)
    assert jobs.wait(second.id, WITHIN).phase == "Cancelled"


def test_a_job_is_suspended_and_given_another_priority(jobs: Jobs, scope: ScenarioScope) -> None:
    gate = scope.name("gate")
    done = jobs.submit("wait", gate, suspend=True)
    assert jobs.suspend(done.id).suspended
    assert jobs.set_priority(done.id, 5).priority == 5
    assert not jobs.resume(done.id).suspended
    for job in jobs.poll(done.id):
        if job.phase == "Running":
            break
    with pytest.raises(JobStateError, match="priority"):
        jobs.set_priority(done.id, 6)
    scope.open(gate)
    assert jobs.wait(done.id, WITHIN).succeeded


def test_a_rerun_is_a_new_job_linked_to_the_old(jobs: Jobs, scope: ScenarioScope) -> None:
    done = jobs.submit("echo", {"n": 1}, name=scope.name("original"))
    jobs.wait(done.id, WITHIN)
    again = [jobs.rerun(done.id) for _ in range(2)]
    assert [one.id for one in again] == [f"{done.id}-r1", f"{done.id}-r2"]
    for one in again:
        job = eventually(jobs, one.id)
        assert (job.rerun_of and job.rerun_of.name, job.result) == (done.id, {"n": 1})


def eventually(jobs: Jobs, job_id: str) -> Job:
    """Return a job that is about to be created, once it has finished."""
    for _ in range(100):
        try:
            return jobs.wait(job_id, WITHIN)
        except JobNotFoundError:
            threading.Event().wait(0.1)
    raise AssertionError(f"{job_id} is never created")


def test_a_dead_letter_is_redriven_and_dismissed(jobs: Jobs, scope: ScenarioScope) -> None:
    job = dead(jobs, scope)
    assert (job.phase, job.failed_at is not None) == ("DeadLetter", True)
    again = jobs.redrive(job.id)
    while not (again.redrives == 1 and again.finished):
        again = jobs.get(job.id)
    assert again.phase == "DeadLetter"
    jobs.dismiss(job.id)
    while again.phase != "Cancelled":
        again = jobs.get(job.id)
    assert again.reason == "Dismissed"
    with pytest.raises(NotADeadLetterError, match="Cancelled"):
        jobs.redrive(job.id)
    live = jobs.submit("echo", queue=scope.queue)
    with pytest.raises(NotADeadLetterError, match="Queued"):
        jobs.dismiss(live.id)


def test_many_dead_letters_are_redriven_and_dismissed_by_filter(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    names = [scope.name(f"dead{number}") for number in range(3)]
    for name in names:
        dead(jobs, scope, name=name)
    jobs.submit("echo", queue=scope.queue, labels=scope.label)
    mine = Selection(label=scope.selector)
    dry = jobs.redrive_many(mine, limit=2, dry_run=True)
    assert (dry.matched, len(dry.done), dry.dry_run) == (3, 2, True)
    assert all(jobs.get(name).redrives == 0 for name in names)
    done = jobs.redrive_many(mine, limit=2)
    assert (sorted(done.done), done.failed) == (sorted(dry.done), [])
    for name in done.done:
        while not ((job := jobs.get(name)).redrives == 1 and job.finished):
            pass
    everyone = jobs.dismiss_many(mine)
    assert sorted(everyone.done) == names
    for name in names:
        while jobs.get(name).phase != "Cancelled":
            pass
    none = jobs.dismiss_many(Selection(label=scope.selector, phase=[Phase.QUEUED]))
    assert (none.matched, none.done) == (0, [])
