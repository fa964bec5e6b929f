"""All operations on the jobs of one namespace, each with its errors in a client's words."""

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.client import errors
from asyncjob.client.following import changes, follow
from asyncjob.client.limits import within
from asyncjob.client.on_kubernetes import (
    bulk,
    cron_jobs,
    jobs,
    listing,
    queues,
    submitting,
    wishes,
    workers,
)
from asyncjob.client.on_kubernetes.calls import in_words
from asyncjob.client.on_kubernetes.following import ManyJobs, OneJob
from asyncjob.client.on_kubernetes.holders import refuse_if_held
from asyncjob.client.refusals import refusal
from asyncjob.client.results import ResultStore, result_of
from asyncjob.client.steps import Emissions, Emit, Steps, T
from asyncjob.errors import AsyncJobError
from asyncjob.intake import Order, order
from asyncjob.json_types import Json
from asyncjob.lifecycle.derived_names import rerun_name
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.spec import RequestData
from asyncjob.rest.job import Job, JobSummary, Page
from asyncjob.rest.reading import job_of
from asyncjob.rest.selection import BULK_MAX, BulkAsk, BulkReport, Selection
from asyncjob.rest.submission import BatchItem, Submission, Submitted
from asyncjob.rest.surroundings import BackfillAsk, CronJobInfo, QueueInfo, WorkerInfo

PRIORITY_MAX: Final = 1000

PATIENCE_SECONDS: Final = 30.0
"""How long an API server that is away is waited for."""


@dataclass(frozen=True, slots=True)
class KubernetesOperations:
    """Operations on one namespace. `clock` gives the time of day, `new_id` a fresh UUID.

    `patience` is how many seconds an API server that is away is waited for, at each request.
    """

    namespace: str
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    patience: float = PATIENCE_SECONDS
    store: ResultStore | None = None

    def submit(
        self, submission: Submission, *, carried: RequestData | None = None
    ) -> Steps[Submitted]:
        """Submit; `carried` is what came along with an HTTP request (see `intake.order`)."""
        return (yield from self.place(self.order(submission, carried=carried)))

    def order(self, submission: Submission, *, carried: RequestData | None = None) -> Order:
        """Return the job that a submission asks for; what is large takes a while to check."""
        return order(submission, self.namespace, new_id=self.new_id(), carried=carried)

    def place(self, made: Order) -> Steps[Submitted]:
        """Submit what has been ordered."""
        done = submitting.submit(made, self.patience)
        return (yield from in_words(done, refused=_refused))

    def submit_many(self, submissions: Iterable[Submission]) -> Emissions[BatchItem]:
        """Submit one after the other."""
        for submission in submissions:
            try:
                yield Emit(BatchItem(job=(yield from self.submit(submission))))
            except AsyncJobError as error:
                yield Emit(BatchItem(error=refusal(error)))

    def get(self, job_id: str) -> Steps[Job]:
        """Read one."""
        return (yield from _of_job(jobs.get(self.namespace, job_id, self.patience), job_id))

    def result(self, job_id: str) -> Steps[Json]:
        """Read its result."""
        return (yield from result_of((yield from self.get(job_id)), self.store))

    def follow(self, job_id: str, timeout: float | None, poll_seconds: float) -> Emissions[Job]:
        """Follow it until it has finished."""
        source = OneJob(self.namespace, job_id)
        return follow(source, job_id, timeout=timeout, poll_seconds=poll_seconds)

    def list(self, selection: Selection, page_size: int) -> Emissions[JobSummary]:  # noqa: ARG002  # all are read at once
        """List all that match."""
        found = listing.chosen(self.namespace, selection, self.clock(), self.patience)
        for job in (yield from in_words(found)):
            yield Emit(job)

    def page(self, selection: Selection, cursor: str | None, limit: int) -> Steps[Page]:
        """List a part of them."""
        now = self.clock()
        most = within("limit", limit, 1)
        found = listing.page(
            self.namespace, selection, now, self.patience, cursor=cursor, limit=most
        )
        return (yield from in_words(found))

    def watch(self, selection: Selection) -> Emissions[JobSummary]:
        """Follow all that match."""
        return changes(ManyJobs(self.namespace, selection, self.clock))

    def cancel(self, job_id: str, *, cascade: bool) -> Steps[Job]:
        """Cancel; a dead letter is dismissed."""
        return self._wish(job_id, wishes.cancel(cascade=cascade))

    def set_suspended(self, job_id: str, *, suspended: bool) -> Steps[Job]:
        """Suspend or resume."""
        return self._wish(job_id, wishes.setting("suspend", suspended, otherwise=False))

    def set_priority(self, job_id: str, priority: int) -> Steps[Job]:
        """Change the priority."""
        wanted = within("priority", priority, -PRIORITY_MAX, PRIORITY_MAX)
        return self._wish(job_id, wishes.setting("priority", wanted, otherwise=0))

    def rerun(self, job_id: str) -> Steps[Submitted]:
        """Ask for a rerun once the one before has been created."""
        wish = wishes.Numbered("rerun", "reruns")
        path = jobs.path_of(self.namespace, job_id)
        yield from _of_job(wishes.one_more(path, wish, self.patience), job_id)
        return Submitted(id=rerun_name(job_id, wish.number), created=True, phase=Phase.QUEUED)

    def redrive(self, job_id: str) -> Steps[Job]:
        """Run a dead letter again."""
        return self._wish(job_id, wishes.Redrive(), refuse_if_held)

    def dismiss(self, job_id: str) -> Steps[Job]:
        """Be done with a dead letter."""
        return self._wish(job_id, wishes.dismiss)

    def redrive_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Redrive all that match."""
        return self._bulk(selection, limit, dry_run, wishes.Redrive, refuse_if_held)

    def dismiss_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Dismiss all that match."""
        return self._bulk(selection, limit, dry_run, lambda: wishes.dismiss)

    def queues(self) -> Steps[builtins.list[QueueInfo]]:
        """Read all queues."""
        return in_words(queues.queues(self.namespace, self.clock(), self.patience))

    def queue(self, name: str) -> Steps[QueueInfo]:
        """Read one queue."""
        return in_words(queues.queue(self.namespace, name, self.clock(), self.patience))

    def set_paused(self, queue: str, *, paused: bool) -> Steps[QueueInfo]:
        """Pause a queue or let it go on."""
        now = self.clock()
        return in_words(queues.set_paused(self.namespace, queue, now, self.patience, paused=paused))

    def cron_jobs(self) -> Steps[builtins.list[CronJobInfo]]:
        """Read all schedules."""
        return in_words(cron_jobs.cron_jobs(self.namespace, self.patience))

    def cron_job(self, name: str) -> Steps[CronJobInfo]:
        """Read one schedule."""
        return _of_cron_job(cron_jobs.cron_job(self.namespace, name, self.patience), name)

    def trigger(self, name: str) -> Steps[Submitted]:
        """Ask for one run now."""
        return _of_cron_job(cron_jobs.trigger(self.namespace, name, self.patience), name)

    def backfill(self, name: str, ask: BackfillAsk) -> Steps[CronJobInfo]:
        """Ask for the runs of times gone by."""
        return _of_cron_job(cron_jobs.backfill(self.namespace, name, ask, self.patience), name)

    def set_cron_job_suspended(self, name: str, *, suspended: bool) -> Steps[CronJobInfo]:
        """Suspend a schedule or let it go on."""
        done = cron_jobs.set_suspended(self.namespace, name, self.patience, suspended=suspended)
        return _of_cron_job(done, name)

    def workers(self) -> Steps[builtins.list[WorkerInfo]]:
        """Read the live workers."""
        return in_words(workers.workers(self.namespace, self.clock(), self.patience))

    def _wish(
        self, job_id: str, decide: wishes.Decide, check: wishes.Check | None = None
    ) -> Steps[Job]:
        path = jobs.path_of(self.namespace, job_id)
        steps = wishes.wished(path, decide, self.patience, check)
        return job_of((yield from _of_job(steps, job_id)))

    def _bulk(
        self,
        selection: Selection,
        limit: int,
        dry_run: bool,  # noqa: FBT001  # private, and named where it comes from
        wish: Callable[[], wishes.Decide],
        check: wishes.Check | None = None,
    ) -> Steps[BulkReport]:
        ask = BulkAsk(
            selection=selection, limit=within("limit", limit, 1, BULK_MAX), dry_run=dry_run
        )
        now = self.clock()
        done = bulk.on_dead_letters(self.namespace, ask, wish, now, self.patience, check=check)
        return (yield from in_words(done))


def _refused(said: str) -> errors.InvalidSubmissionError:
    return errors.InvalidSubmissionError(message=said)


def _of_job(steps: Steps[T], job_id: str) -> Steps[T]:
    return in_words(steps, lambda _: errors.JobNotFoundError(f"there is no job {job_id}"))


def _of_cron_job(steps: Steps[T], name: str) -> Steps[T]:
    return in_words(steps, lambda _: errors.CronJobNotFoundError(f"there is no schedule {name}"))
