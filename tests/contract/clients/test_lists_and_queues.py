"""Lists, queues, cron jobs and workers: the same by every client."""

import threading
import time
from typing import Any

import pytest

from asyncjob.client import Jobs
from asyncjob.client.errors import CronJobNotFoundError, InvalidRequestError
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import JobSummary
from asyncjob.rest.listing import Selection
from contract.clients.full_stack import ScenarioScope

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WITHIN = 30.0


def until(probe: Any) -> Any:
    """Return the first true answer of the probe."""
    give_up_at = time.monotonic() + WITHIN
    while not (answer := probe()):
        assert time.monotonic() < give_up_at, "it does not come"
        time.sleep(0.05)
    return answer


def test_jobs_are_listed_newest_first_in_pages_and_by_filter(
    jobs: Jobs, scope: ScenarioScope
) -> None:
    names = [scope.name(f"listed{number}") for number in range(5)]
    for name in names:
        jobs.submit("echo", name=name, queue=scope.queue, labels=scope.label, priority=3)
    mine = Selection(label=scope.selector)
    until(lambda: len(list(jobs.list(mine))) == len(names))
    everything = [(job.created_at, job.uid) for job in jobs.list(mine)]
    assert everything == sorted(everything, reverse=True)
    paged = [job.id for job in jobs.list(mine, page_size=2)]
    assert sorted(paged) == names
    first = jobs.page(mine, limit=2)
    rest = jobs.page(mine, first.next, limit=10)
    assert [job.id for job in (*first.items, *rest.items)] == paged
    assert (first.total, rest.next) == (5, None)
    jobs.cancel(names[0])
    jobs.wait(names[0], WITHIN)
    narrow: list[dict[str, Any]] = [
        {"phase": [Phase.CANCELLED]},
        {"reason": "CancelRequested"},
        {"text": "LISTED0-"},
    ]
    for more in narrow:
        chosen = Selection.model_validate({"label": scope.selector, **more})
        until(lambda chosen=chosen: [job.id for job in jobs.list(chosen)] == names[:1])
    for none in (
        Selection(label=scope.selector, type="other"),
        Selection(label=scope.selector, queue="default"),
        Selection(label=scope.selector, older_than_seconds=3600),
    ):
        assert list(jobs.list(none)) == []
    assert len(list(jobs.list(Selection(label=scope.selector, newer_than_seconds=3600)))) == 5


def test_a_list_of_nonsense_is_refused(jobs: Jobs) -> None:
    with pytest.raises(InvalidRequestError, match="cursor"):
        jobs.page(cursor="nonsense")
    with pytest.raises(InvalidRequestError):
        list(jobs.list(Selection(label="a=b=c")))


def test_changes_are_watched(jobs: Jobs, scope: ScenarioScope) -> None:
    seen, opened = list[JobSummary](), threading.Event()
    mine = Selection(label=scope.selector)

    def follow() -> None:
        opened.set()
        for job in jobs.watch(mine):
            seen.append(job)
            if job.phase == Phase.CANCELLED:
                return

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    opened.wait()
    number = 0
    while follower.is_alive():  # how soon it listens is nobody's promise
        name = scope.name(f"watched{number}")
        jobs.submit("echo", name=name, queue=scope.queue, labels=scope.label)
        jobs.cancel(name)
        jobs.wait(name, WITHIN)
        follower.join(0.3)
        number += 1
        assert number < 50
    assert seen[-1].phase == Phase.CANCELLED
    assert all(scope.label.items() <= job.labels.items() for job in seen)


def test_a_queue_is_paused_and_goes_on(jobs: Jobs, scope: ScenarioScope) -> None:
    queue = scope.queue
    unknown = jobs.queue(queue)
    assert (unknown.configured, unknown.paused, unknown.workers) == (False, False, 0)
    jobs.submit("echo", queue=queue)
    until(lambda: jobs.queue(queue).counts.get("Queued") == 1)
    assert queue in {one.name for one in jobs.queues()}
    assert not jobs.resume_queue(queue).configured
    paused = jobs.pause(queue)
    assert (paused.configured, paused.paused) == (True, True)
    assert jobs.pause(queue).paused
    until(lambda: jobs.queue(queue).paused)
    until(lambda: {one.name: one.paused for one in jobs.queues()}[queue])
    assert not jobs.resume_queue(queue).paused
    assert until(lambda: jobs.queue("default").workers) == 1


def test_a_schedule_is_triggered_and_suspended(jobs: Jobs, scope: ScenarioScope) -> None:
    name = scope.name("nightly")
    with pytest.raises(CronJobNotFoundError):
        jobs.cron_job(name)
    with pytest.raises(CronJobNotFoundError):
        jobs.trigger(name)
    scope.apply_cron_job(name)
    until(lambda: name in {one.name for one in jobs.cron_jobs()})
    assert [jobs.trigger(name).id for _ in range(2)] == [f"{name}-t1", f"{name}-t2"]
    until(
        lambda: (
            {job.id for job in jobs.list(Selection(cron_job=name))}
            == {
                f"{name}-t1",
                f"{name}-t2",
            }
        )
    )
    link = jobs.get(f"{name}-t1").cron_job
    assert link
    assert link.name == name
    assert jobs.suspend_cron_job(name).suspended
    whole = jobs.cron_job(name)
    assert whole.suspended
    assert whole.spec
    assert (whole.schedule, whole.type, whole.queue) == ("0 0 1 1 *", "echo", scope.queue)
    assert not jobs.resume_cron_job(name).suspended


def test_the_workers_are_told_with_what_they_run(jobs: Jobs, scope: ScenarioScope) -> None:
    gate = scope.name("gate")
    done = jobs.submit("wait", gate)
    until(lambda: jobs.get(done.id).phase == Phase.RUNNING)
    (worker,) = until(lambda: [one for one in jobs.workers() if one.running])
    assert (worker.pod, worker.queue, worker.slots) == ("worker-0", "default", 16)
    assert "echo" in worker.types
    scope.open(gate)
    jobs.wait(done.id, WITHIN)
    assert jobs.get(done.id).worker is None
