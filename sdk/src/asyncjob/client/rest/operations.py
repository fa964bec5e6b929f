"""All operations; each is one or a few requests to the gateway.

A submission is checked before it is sent, and gets a name or key of its own, so that the request
may be repeated when its response is lost, and no job is created twice.
"""

import builtins
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from pydantic import BaseModel

from asyncjob.client.errors import CronJobNotFoundError, NotFoundError, to_refusal
from asyncjob.client.following import follow_job, watch_jobs
from asyncjob.client.options import check_range
from asyncjob.client.rest.calls import (
    Params,
    api_path,
    cron_job_path,
    job_path,
    queue_path,
    request_list,
    request_model,
    to_body,
    to_params,
)
from asyncjob.client.rest.events import RestJobSource, RestJobStream
from asyncjob.client.results import ResultStore, fetch_stored_result
from asyncjob.client.steps import Call, Emissions, Emit, Steps
from asyncjob.json_types import Json, JsonObject
from asyncjob.rest.jobs import Job, JobSummary, Page, Result
from asyncjob.rest.listing import MAX_BULK_JOBS, MAX_PAGE_SIZE, BulkAsk, BulkReport, Selection
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, BatchReport, Submission, Submitted
from asyncjob.submission import InvalidSubmissionError
from asyncjob.submission.manifest import set_fields
from asyncjob.submission.validation import check_submission

BATCH_SIZE: Final = 100
"""Jobs sent at a time."""


def to_request_body(submission: Submission, new_id: str) -> JsonObject:
    """Return what is sent; raises InvalidSubmissionError."""
    told_apart = _with_key_or_name(submission, new_id)
    fields = set_fields(told_apart)
    check_submission(told_apart, fields)
    return fields


def _with_key_or_name(submission: Submission, new_id: str) -> Submission:
    if submission.idempotency_key or submission.name:
        return submission
    field = "idempotency_key" if submission.deduplication_id else "name"
    return submission.model_copy(update={field: new_id})


def submit_in_batches(
    submissions: Iterable[Submission], new_id: Callable[[], str], params: Params, patience: float
) -> Emissions[BatchItem]:
    """Send many and hand out what became of each, in their order."""
    rest = iter(submissions)
    while chunk := list(islice(rest, BATCH_SIZE)):
        prepared = [_to_body_or_refusal(one, new_id()) for one in chunk]
        good = [one for one in prepared if not isinstance(one, BatchItem)]
        answers: Iterator[BatchItem] = iter(())
        if good:
            call = Call("POST", api_path("jobs", "batch"), params, body={"jobs": good})
            answers = iter((yield from request_model(BatchReport, call, patience)).items)
        for one in prepared:
            yield Emit(one if isinstance(one, BatchItem) else next(answers))


def _to_body_or_refusal(submission: Submission, new_id: str) -> JsonObject | BatchItem:
    try:
        return to_request_body(submission, new_id)
    except InvalidSubmissionError as error:
        return BatchItem(error=to_refusal(error))


DEFAULT_PATIENCE_SECONDS: Final = 30.0
"""How long a gateway that is away is waited for, where a repeat does no harm."""

NO_RETRY: Final = 0.0

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class RestOperations:
    """Operations by REST. `namespace`: None for the gateway's own. `new_id` gives a fresh UUID.

    `patience` is how many seconds a gateway that is away is waited for, at each request that may
    be repeated. Not repeated: rerun, redrive, trigger, and bulk actions.
    """

    new_id: Callable[[], str]
    namespace: str | None = None
    patience: float = DEFAULT_PATIENCE_SECONDS
    store: ResultStore | None = None

    def submit(self, submission: Submission) -> Steps[Submitted]:
        """Submit under a name or key of its own."""
        body = to_request_body(submission, self.new_id())
        call = Call("POST", api_path("jobs"), self._namespace_params, body=body)
        return (yield from request_model(Submitted, call, self.patience))

    def submit_many(self, submissions: Iterable[Submission]) -> Emissions[BatchItem]:
        """Submit in batches."""
        return submit_in_batches(submissions, self.new_id, self._namespace_params, self.patience)

    def get(self, job_id: str) -> Steps[Job]:
        """Read one."""
        return self._read(Job, job_path(job_id))

    def result(self, job_id: str) -> Steps[Json]:
        """Read its result."""
        found = yield from self._read(Result, job_path(job_id, "result"))
        if found.result_ref is None:
            return found.result
        return (yield from fetch_stored_result(job_id, found.result_ref, self.store))

    def follow(self, job_id: str, timeout: float | None, poll_seconds: float) -> Emissions[Job]:
        """Follow it until it has finished."""
        source = RestJobSource(job_id, self._namespace_params)
        return follow_job(source, job_id, timeout=timeout, poll_seconds=poll_seconds)

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
        part = (
            ("limit", str(min(limit, MAX_PAGE_SIZE))),
            *((("cursor", cursor),) if cursor else ()),
        )
        params = (*to_params(selection), *part, *self._namespace_params)
        return request_model(Page, Call("GET", api_path("jobs"), params), self.patience)

    def watch(self, selection: Selection) -> Emissions[JobSummary]:
        """Follow all that match."""
        return watch_jobs(RestJobStream(selection, self._namespace_params))

    def cancel(self, job_id: str, *, cascade: bool) -> Steps[Job]:
        """Cancel; a dead letter is dismissed."""
        params = (*((("cascade", "true"),) if cascade else ()), *self._namespace_params)
        return request_model(Job, Call("DELETE", job_path(job_id), params), self.patience)

    def set_suspended(self, job_id: str, *, suspended: bool) -> Steps[Job]:
        """Suspend or resume."""
        return self._change(job_id, {"suspend": suspended})

    def set_priority(self, job_id: str, priority: int) -> Steps[Job]:
        """Change the priority."""
        return self._change(job_id, {"priority": priority})

    def rerun(self, job_id: str) -> Steps[Submitted]:
        """Run again as a new job."""
        return self._act(Submitted, job_path(job_id, "rerun"))

    def redrive(self, job_id: str) -> Steps[Job]:
        """Run a dead letter again."""
        return self._act(Job, job_path(job_id, "redrive"))

    def dismiss(self, job_id: str) -> Steps[Job]:
        """Be done with a dead letter."""
        return self._act(Job, job_path(job_id, "dismiss"), patience=self.patience)

    def redrive_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Redrive all that match."""
        return self._bulk("redrive", selection, limit=limit, dry_run=dry_run)

    def dismiss_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Dismiss all that match."""
        return self._bulk("dismiss", selection, limit=limit, dry_run=dry_run)

    def queues(self) -> Steps[builtins.list[QueueInfo]]:
        """Read all queues."""
        return self._read_all(QueueInfo, api_path("queues"))

    def queue(self, name: str) -> Steps[QueueInfo]:
        """Read one queue."""
        return self._read(QueueInfo, queue_path(name))

    def set_paused(self, queue: str, *, paused: bool) -> Steps[QueueInfo]:
        """Pause a queue or let it go on."""
        action = "pause" if paused else "resume"
        return self._act(QueueInfo, queue_path(queue, action), patience=self.patience)

    def cron_jobs(self) -> Steps[builtins.list[CronJobInfo]]:
        """Read all schedules."""
        return self._read_all(CronJobInfo, api_path("cron-jobs"))

    def cron_job(self, name: str) -> Steps[CronJobInfo]:
        """Read one schedule."""
        return _translate_cron_job_errors(self._read(CronJobInfo, cron_job_path(name)))

    def trigger(self, name: str) -> Steps[Submitted]:
        """Ask for one run now."""
        return _translate_cron_job_errors(self._act(Submitted, cron_job_path(name, "trigger")))

    def backfill(self, name: str, request: BackfillAsk) -> Steps[CronJobInfo]:
        """Ask for the runs of times gone by; asked twice, the same range is one."""
        call = Call(
            "POST", cron_job_path(name, "backfill"), self._namespace_params, body=to_body(request)
        )
        return _translate_cron_job_errors(request_model(CronJobInfo, call, self.patience))

    def set_cron_job_suspended(self, name: str, *, suspended: bool) -> Steps[CronJobInfo]:
        """Suspend a schedule or let it go on."""
        action = "suspend" if suspended else "resume"
        done = self._act(CronJobInfo, cron_job_path(name, action), patience=self.patience)
        return _translate_cron_job_errors(done)

    def workers(self) -> Steps[builtins.list[WorkerInfo]]:
        """Read the live workers."""
        return self._read_all(WorkerInfo, api_path("workers"))

    @property
    def _namespace_params(self) -> Params:
        return (("namespace", self.namespace),) if self.namespace else ()

    def _read(self, model: type[M], path: str) -> Steps[M]:
        return request_model(model, Call("GET", path, self._namespace_params), self.patience)

    def _read_all(self, model: type[M], path: str) -> Steps[builtins.list[M]]:
        return request_list(model, Call("GET", path, self._namespace_params), self.patience)

    def _act(self, model: type[M], path: str, patience: float = NO_RETRY) -> Steps[M]:
        return request_model(model, Call("POST", path, self._namespace_params), patience)

    def _change(self, job_id: str, change: dict[str, Json]) -> Steps[Job]:
        call = Call("PATCH", job_path(job_id), self._namespace_params, body=change)
        return request_model(Job, call, self.patience)

    def _bulk(
        self, action: str, selection: Selection, *, limit: int, dry_run: bool
    ) -> Steps[BulkReport]:
        most = check_range("limit", limit, 1, MAX_BULK_JOBS)
        body = to_body(BulkAsk(selection=selection, limit=most, dry_run=dry_run))
        call = Call("POST", api_path("jobs", action), self._namespace_params, body=body)
        return request_model(BulkReport, call, NO_RETRY)


def _translate_cron_job_errors(steps: Steps[M]) -> Steps[M]:
    try:
        return (yield from steps)
    except NotFoundError as error:
        raise CronJobNotFoundError(str(error)) from error
