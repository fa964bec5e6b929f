"""All operations, each one or a few requests to the gateway."""

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import BaseModel

from asyncjob.client.by_rest.calls import (
    Params,
    as_body,
    as_params,
    ask_for,
    ask_for_all,
    at_cron_job,
    at_job,
    at_queue,
    path,
)
from asyncjob.client.by_rest.following import ManyJobs, OneJob
from asyncjob.client.by_rest.sending import as_sent, in_batches
from asyncjob.client.errors import CronJobNotFoundError, NotFoundError
from asyncjob.client.following import changes, follow
from asyncjob.client.limits import within
from asyncjob.client.results import ResultStore, located
from asyncjob.client.steps import Call, Emissions, Emit, Steps
from asyncjob.json_types import Json
from asyncjob.rest.job import Job, JobSummary, Page
from asyncjob.rest.results import Result
from asyncjob.rest.selection import BULK_MAX, PAGE_MAX, BulkAsk, BulkReport, Selection
from asyncjob.rest.submission import BatchItem, Submission, Submitted
from asyncjob.rest.surroundings import BackfillAsk, CronJobInfo, QueueInfo, WorkerInfo

PATIENCE_SECONDS: Final = 30.0
"""How long a gateway that is away is waited for, where a repeat does no harm."""

ONCE: Final = 0.0

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class RestOperations:
    """Operations by REST. `namespace`: None for the gateway's own. `new_id` gives a fresh UUID.

    `patience` is how many seconds a gateway that is away is waited for, at each request that may
    be repeated. Not repeated: rerun, redrive, trigger, and bulk actions.
    """

    new_id: Callable[[], str]
    namespace: str | None = None
    patience: float = PATIENCE_SECONDS
    store: ResultStore | None = None

    def submit(self, submission: Submission) -> Steps[Submitted]:
        """Submit under a name or key of its own."""
        body = as_sent(submission, self.new_id())
        call = Call("POST", path("jobs"), self._where, body=body)
        return (yield from ask_for(Submitted, call, self.patience))

    def submit_many(self, submissions: Iterable[Submission]) -> Emissions[BatchItem]:
        """Submit in batches."""
        return in_batches(submissions, self.new_id, self._where, self.patience)

    def get(self, job_id: str) -> Steps[Job]:
        """Read one."""
        return self._read(Job, at_job(job_id))

    def result(self, job_id: str) -> Steps[Json]:
        """Read its result."""
        found = yield from self._read(Result, at_job(job_id, "result"))
        if found.result_ref is None:
            return found.result
        return (yield from located(job_id, found.result_ref, self.store))

    def follow(self, job_id: str, timeout: float | None, poll_seconds: float) -> Emissions[Job]:
        """Follow it until it has finished."""
        source = OneJob(job_id, self._where)
        return follow(source, job_id, timeout=timeout, poll_seconds=poll_seconds)

    def list(self, selection: Selection, page_size: int) -> Emissions[JobSummary]:
        """List all that match, page by page."""
        cursor: str | None = None
        while True:
            page = yield from self.page(selection, cursor, page_size)
            for job in page.items:
                yield Emit(job)
            cursor = page.next
            if cursor is None:
                return

    def page(self, selection: Selection, cursor: str | None, limit: int) -> Steps[Page]:
        """List a part of them."""
        part = (("limit", str(min(limit, PAGE_MAX))), *((("cursor", cursor),) if cursor else ()))
        params = (*as_params(selection), *part, *self._where)
        return ask_for(Page, Call("GET", path("jobs"), params), self.patience)

    def watch(self, selection: Selection) -> Emissions[JobSummary]:
        """Follow all that match."""
        return changes(ManyJobs(selection, self._where))

    def cancel(self, job_id: str, *, cascade: bool) -> Steps[Job]:
        """Cancel; a dead letter is dismissed."""
        params = (*((("cascade", "true"),) if cascade else ()), *self._where)
        return ask_for(Job, Call("DELETE", at_job(job_id), params), self.patience)

    def set_suspended(self, job_id: str, *, suspended: bool) -> Steps[Job]:
        """Suspend or resume."""
        return self._change(job_id, {"suspend": suspended})

    def set_priority(self, job_id: str, priority: int) -> Steps[Job]:
        """Change the priority."""
        return self._change(job_id, {"priority": priority})

    def rerun(self, job_id: str) -> Steps[Submitted]:
        """Run again as a new job."""
        return self._act(Submitted, at_job(job_id, "rerun"))

    def redrive(self, job_id: str) -> Steps[Job]:
        """Run a dead letter again."""
        return self._act(Job, at_job(job_id, "redrive"))

    def dismiss(self, job_id: str) -> Steps[Job]:
        """Be done with a dead letter."""
        return self._act(Job, at_job(job_id, "dismiss"), patience=self.patience)

    def redrive_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Redrive all that match."""
        return self._bulk("redrive", selection, limit=limit, dry_run=dry_run)

    def dismiss_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Dismiss all that match."""
        return self._bulk("dismiss", selection, limit=limit, dry_run=dry_run)

    def queues(self) -> Steps[builtins.list[QueueInfo]]:
        """Read all queues."""
        return self._read_all(QueueInfo, path("queues"))

    def queue(self, name: str) -> Steps[QueueInfo]:
        """Read one queue."""
        return self._read(QueueInfo, at_queue(name))

    def set_paused(self, queue: str, *, paused: bool) -> Steps[QueueInfo]:
        """Pause a queue or let it go on."""
        action = "pause" if paused else "resume"
        return self._act(QueueInfo, at_queue(queue, action), patience=self.patience)

    def cron_jobs(self) -> Steps[builtins.list[CronJobInfo]]:
        """Read all schedules."""
        return self._read_all(CronJobInfo, path("cron-jobs"))

    def cron_job(self, name: str) -> Steps[CronJobInfo]:
        """Read one schedule."""
        return _of_cron_job(self._read(CronJobInfo, at_cron_job(name)))

    def trigger(self, name: str) -> Steps[Submitted]:
        """Ask for one run now."""
        return _of_cron_job(self._act(Submitted, at_cron_job(name, "trigger")))

    def backfill(self, name: str, ask: BackfillAsk) -> Steps[CronJobInfo]:
        """Ask for the runs of times gone by; asked twice, the same range is one."""
        call = Call("POST", at_cron_job(name, "backfill"), self._where, body=as_body(ask))
        return _of_cron_job(ask_for(CronJobInfo, call, self.patience))

    def set_cron_job_suspended(self, name: str, *, suspended: bool) -> Steps[CronJobInfo]:
        """Suspend a schedule or let it go on."""
        action = "suspend" if suspended else "resume"
        done = self._act(CronJobInfo, at_cron_job(name, action), patience=self.patience)
        return _of_cron_job(done)

    def workers(self) -> Steps[builtins.list[WorkerInfo]]:
        """Read the live workers."""
        return self._read_all(WorkerInfo, path("workers"))

    @property
    def _where(self) -> Params:
        return (("namespace", self.namespace),) if self.namespace else ()

    def _read(self, model: type[M], where: str) -> Steps[M]:
        return ask_for(model, Call("GET", where, self._where), self.patience)

    def _read_all(self, model: type[M], where: str) -> Steps[builtins.list[M]]:
        return ask_for_all(model, Call("GET", where, self._where), self.patience)

    def _act(self, model: type[M], where: str, patience: float = ONCE) -> Steps[M]:
        return ask_for(model, Call("POST", where, self._where), patience)

    def _change(self, job_id: str, change: dict[str, Json]) -> Steps[Job]:
        call = Call("PATCH", at_job(job_id), self._where, body=change)
        return ask_for(Job, call, self.patience)

    def _bulk(
        self, action: str, selection: Selection, *, limit: int, dry_run: bool
    ) -> Steps[BulkReport]:
        most = within("limit", limit, 1, BULK_MAX)
        body = as_body(BulkAsk(selection=selection, limit=most, dry_run=dry_run))
        call = Call("POST", path("jobs", action), self._where, body=body)
        return ask_for(BulkReport, call, ONCE)


def _of_cron_job(steps: Steps[M]) -> Steps[M]:
    try:
        return (yield from steps)
    except NotFoundError as error:
        raise CronJobNotFoundError(str(error)) from error
