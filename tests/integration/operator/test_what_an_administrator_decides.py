"""What an administrator of jobs, who may delete none, may change, and which finished jobs then go.

None goes but by what its queue, its cron job or itself says of retention, and that stays as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path, cron_job_path, job_path
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.driven.crons import NEVER_DUE, Crons
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.objects.builders import cron_job, job, queue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ROLE = "asyncjob-job-admin"
QUEUE = "short"
"""Keeps one finished job, and one dead letter beside it."""

DONE, DEAD, RUN, NEXT_RUN = "done", "dead", "nightly-t1", "nightly-t2"
SCHEDULE = "nightly"
"""Keeps its last success."""


@dataclass(frozen=True)
class AdministratorSetup:
    """A namespace in which jobs have finished, and its administrator of jobs."""

    jobs: Jobs
    worker: FakeWorker
    crons: Crons
    administrator: Client

    def path(self, plural: str) -> str:
        """Return the path of a collection."""
        return collection_path(self.jobs.namespace, plural)

    def finish(self, name: str) -> None:
        """Have the worker do a job."""
        self.worker.claim(name)
        self.worker.succeed(name)

    def run_again(self) -> None:
        """Have the cron job run once more, and the run succeed."""
        path = cron_job_path(self.jobs.namespace, SCHEDULE)
        self.administrator.merge(path, {"spec": {"trigger": 2}}).object()
        self.crons.until_status(SCHEDULE, triggers=2, reserved=None)
        self.finish(NEXT_RUN)

    def until_retention_has_passed(self) -> None:
        """Wait until a job is gone that finishes now, and need not be kept for a moment."""
        self.jobs.create("marker", queue="other", ttlSecondsAfterFinished=0)
        self.finish("marker")
        until(lambda: not self.jobs.exists("marker"), 20, "a pass of retention")


def delete_the_schedule(setup: AdministratorSetup) -> None:
    """Delete it."""
    setup.administrator.delete(cron_job_path(setup.jobs.namespace, SCHEDULE)).object()


def replace_it_by_one_that_keeps_nothing(setup: AdministratorSetup) -> None:
    """Delete it, and create one of its name; it runs once."""
    delete_the_schedule(setup)
    body = cron_job(SCHEDULE)
    body["spec"] |= {"schedule": NEVER_DUE, "successfulJobsHistoryLimit": 0}
    setup.administrator.create(setup.path(CRON_JOBS), body).object()
    setup.run_again()


def create_the_queue_of_the_run(setup: AdministratorSetup) -> None:
    """Create the AsyncQueue of a queue that had none."""
    body: dict[str, Any] = queue("default", paused=True, maxConcurrency=1)
    setup.administrator.create(setup.path(QUEUES), body).object()


def change_the_queue(setup: AdministratorSetup) -> None:
    """Change all that is not its retention."""
    changes = {"spec": {"paused": True, "maxConcurrency": 1, "maxQueued": 1}}
    setup.administrator.merge(f"{setup.path(QUEUES)}/{QUEUE}", changes).object()


def cancel_another(setup: AdministratorSetup) -> None:
    """Submit one more job to the queue, and cancel it."""
    setup.administrator.create(setup.path(JOBS), job("more", queue=QUEUE)).object()
    path = job_path(setup.jobs.namespace, "more")
    setup.administrator.merge(path, {"spec": {"cancel": True}}).object()
    setup.jobs.until_phase("more", "Cancelled", 20)


def dismiss_the_dead_letter(setup: AdministratorSetup) -> None:
    """Be done with it: it is then counted among the other finished jobs, as the newest."""
    path = job_path(setup.jobs.namespace, DEAD)
    setup.administrator.merge(path, {"spec": {"cancel": True}}).object()
    setup.jobs.until_phase(DEAD, "Cancelled", 20)


TABLE: dict[str, tuple[Callable[[AdministratorSetup], None], set[str]]] = {
    "delete a cron job": (delete_the_schedule, set()),
    "replace a cron job": (replace_it_by_one_that_keeps_nothing, {NEXT_RUN}),
    "run a cron job once more": (AdministratorSetup.run_again, {RUN}),
    "create a queue": (create_the_queue_of_the_run, set()),
    "change a queue": (change_the_queue, set()),
    "cancel another job": (cancel_another, {DONE}),
    "dismiss a dead letter": (dismiss_the_dead_letter, {DONE}),
}
"""What it may change, and the finished jobs that go: beyond a number that was there before it."""


@pytest.fixture
def setup(control_plane: ControlPlane, jobs: Jobs, worker: FakeWorker) -> AdministratorSetup:
    """Let a job, a run of a cron job and a dead letter finish."""
    plane, crons = control_plane, Crons(jobs)
    space = Space(jobs.namespace, Client(plane.url, plane.ca_file, plane.admin_token))
    space.account("administrator")
    space.bind("administrator", ROLE)
    made = AdministratorSetup(jobs, worker, crons, space.as_account("administrator"))
    jobs.queue(QUEUE, retention={"maxFinished": 1})
    jobs.create(DONE, queue=QUEUE)
    made.finish(DONE)
    jobs.create(DEAD, queue=QUEUE, retryPolicy={"maxRetries": 0})
    worker.claim(DEAD)
    worker.fail(DEAD)
    crons.create(SCHEDULE, successfulJobsHistoryLimit=1, trigger=1)
    crons.until_status(SCHEDULE, triggers=1, reserved=None)
    made.finish(RUN)
    return made


@pytest.mark.parametrize("what", TABLE)
def test_what_an_administrator_of_jobs_may_change_leaves_retention_as_it_was(
    setup: AdministratorSetup, what: str
) -> None:
    change, gone = TABLE[what]
    change(setup)

    until(lambda: not any(map(setup.jobs.exists, gone)), 20, f"{gone} to be removed")
    setup.until_retention_has_passed()
    assert all(map(setup.jobs.exists, {DONE, DEAD, RUN} - gone))
