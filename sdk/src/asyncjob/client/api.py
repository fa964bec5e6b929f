"""The methods of a client, by REST and directly on Kubernetes alike.

`Jobs` is for synchronous code, `AsyncJobs` for code in an event loop; method by method the same.
Errors are those of `asyncjob.client.errors`. Ids and names are those of one namespace, the
client's.
"""

import builtins
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final, Protocol, Unpack

from asyncjob.client.options import ArrayOptionsGiven, SubmitOptions
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.item_results import ItemResult
from asyncjob.rest.arrays import (
    ArrayInfo,
    ArraySelection,
    ArraySubmission,
    FailedItems,
    SubmittedArray,
)
from asyncjob.rest.jobs import HistoryEvent, Job, JobSummary, Page
from asyncjob.rest.listing import BulkReport, Selection
from asyncjob.rest.resources import CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, Submission, Submitted

WAIT_SECONDS: Final = 3600.0
"""How long `wait` waits unless told otherwise."""

POLL_SECONDS: Final = 5.0
"""How often it looks where it cannot watch."""

ARRAY_POLL_SECONDS: Final = 2.0
"""How often an array is looked at that is waited for: not much later than it ends, and seldom
enough for one whose items stand in itself."""

PAGE_SIZE: Final = 200
"""Jobs fetched at a time while listing."""

ChangeCallback = Callable[[Job], None]
"""Called with a job that has changed."""

ArrayCallback = Callable[[ArrayInfo], None]
"""Called with an array that has changed."""

ALL_JOBS: Final = Selection()
"""Every job."""

ALL_ARRAYS: Final = ArraySelection()
"""Every array."""


class Jobs(Protocol):
    """A client for plain code."""

    def submit(
        self, what: str | Submission, payload: object = None, **options: Unpack[SubmitOptions]
    ) -> Submitted:
        """Submit a job: a type with payload and options, or a whole Submission.

        A repeat after a lost answer makes no second job. Raises InvalidSubmissionError,
        JobExistsError, KeyReusedError, DuplicateJobError, QueueFullError.
        """

    def submit_many(self, submissions: Iterable[Submission]) -> Iterator[BatchItem]:
        """Submit many jobs and yield what became of each, in their order.

        One that is refused stops none of the others.
        """

    def get(self, job_id: str) -> Job:
        """Return a job; raises JobNotFoundError."""

    def history(self, job_id: str) -> builtins.list[HistoryEvent]:
        """Return what happened to a job, oldest first."""

    def result(self, job_id: str) -> Json:
        """Return what the handler returned; raises NoResultError where there is nothing.

        Raises ResultElsewhereError where it lies in a store that the client was not given.
        """

    def wait(
        self,
        job_id: str,
        timeout: float = WAIT_SECONDS,
        *,
        raise_on_failure: bool = False,
        poll_seconds: float = POLL_SECONDS,
        on_change: ChangeCallback | None = None,
    ) -> Job:
        """Wait until the job has finished, and return it as it is then.

        It watches where it can, else looks every `poll_seconds`; a server that is away is waited
        for. Raises WaitTimeoutError after `timeout` seconds, JobGoneError if the job is deleted
        meanwhile, and JobFailedError if it did not succeed and `raise_on_failure` is set.
        """

    def poll(self, job_id: str, seconds: float = POLL_SECONDS) -> Iterator[Job]:
        """Yield the job now and whenever it has changed, until it has finished."""

    def list(
        self, selection: Selection = ALL_JOBS, *, page_size: int = PAGE_SIZE
    ) -> Iterator[JobSummary]:
        """Yield the jobs that match, newest first, fetched in pages."""

    def page(
        self, selection: Selection = ALL_JOBS, cursor: str | None = None, limit: int = PAGE_SIZE
    ) -> Page:
        """Return one page of the jobs that match, newest first; its `next` is the next cursor."""

    def watch(self, selection: Selection = ALL_JOBS) -> Iterator[JobSummary]:
        """Yield each job that matches whenever it changes, from now on, without end."""

    def cancel(self, job_id: str, *, cascade: bool = False) -> Job:
        """Ask for a job to be cancelled; a dead letter is dismissed. Raises NotCancellableError.

        `cascade` takes its unfinished children and the jobs that wait for it along.
        """

    def suspend(self, job_id: str) -> Job:
        """Keep a job from being started."""

    def resume(self, job_id: str) -> Job:
        """Let a suspended job start."""

    def set_priority(self, job_id: str, priority: int) -> Job:
        """Change the priority, -1000 to 1000; raises JobStateError while the job runs."""

    def signal(self, job_id: str, name: str, payload: object = None) -> Job:
        """Send a signal that a handler waits for, or will. Raises JobStateError if too late.

        It is sent once for each name: repeating it with the same payload changes nothing.
        """

    def rerun(self, job_id: str) -> Submitted:
        """Ask for a new job that does the same again; it is `<id>-r<n>`, and exists soon."""

    def redrive(self, job_id: str) -> Job:
        """Ask for a dead letter to run again with fresh budgets; raises NotADeadLetterError."""

    def dismiss(self, job_id: str) -> Job:
        """Ask for a dead letter to be done with; raises NotADeadLetterError."""

    def redrive_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        """Redrive the dead letters that match, oldest first, `limit` at most."""

    def dismiss_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        """Dismiss the dead letters that match, oldest first, `limit` at most."""

    def queues(self) -> builtins.list[QueueInfo]:
        """Return all queues: with an AsyncQueue, or with jobs or workers."""

    def queue(self, name: str) -> QueueInfo:
        """Return one queue; one that nobody knows is open, unlimited and empty."""

    def pause(self, queue: str) -> QueueInfo:
        """Keep all jobs of the queue from starting; creates its AsyncQueue where there is none."""

    def resume_queue(self, queue: str) -> QueueInfo:
        """Let the jobs of a paused queue start."""

    def cron_jobs(self) -> builtins.list[CronJobInfo]:
        """Return all cron jobs."""

    def cron_job(self, name: str) -> CronJobInfo:
        """Return one cron job, with spec and status; raises CronJobNotFoundError."""

    def trigger(self, name: str) -> Submitted:
        """Ask for one run of a cron job now; its job is `<name>-t<n>`, and exists soon."""

    def backfill(
        self,
        name: str,
        start: str,
        end: str,
        *,
        limit: int = 100,
        max_active: int = 1,
        replace: bool = False,
    ) -> CronJobInfo:
        """Ask a cron job for the runs from `start` to `end`, RFC 3339, both included, once each.

        Raises JobStateError while an earlier backfill is under way, unless it is to be replaced.
        """

    def suspend_cron_job(self, name: str) -> CronJobInfo:
        """Keep a cron job from creating jobs."""

    def resume_cron_job(self, name: str) -> CronJobInfo:
        """Let a suspended cron job create jobs."""

    def submit_array(
        self,
        what: str | ArraySubmission,
        items: int | Iterable[object] | None = None,
        **options: Unpack[ArrayOptionsGiven],
    ) -> SubmittedArray:
        """Submit an array: a type with items and options, or a whole ArraySubmission.

        `items` is their number, or the items themselves. A repeat after a lost answer makes no
        second array. Raises InvalidSubmissionError, ArrayExistsError.
        """

    def array(self, name: str) -> ArrayInfo:
        """Return one array, with spec and status; raises ArrayNotFoundError."""

    def arrays(
        self, selection: ArraySelection = ALL_ARRAYS, *, page_size: int = PAGE_SIZE
    ) -> Iterator[ArrayInfo]:
        """Yield the arrays that match, newest first, fetched in pages."""

    def failed_items(self, name: str) -> FailedItems:
        """Return which items of an array have failed, and the newest errors."""

    def item_results(self, name: str) -> Iterator[ItemResult]:
        """Yield what the handler has returned for the items that are done, in their order.

        They are read from the store that the client was given, without it ResultElsewhereError is
        raised. Raises NoResultError where the array keeps none, OffloadError, and ItemResultsError
        at the end if there are items without a result.
        """

    def wait_for_array(
        self,
        name: str,
        timeout: float = WAIT_SECONDS,
        *,
        raise_on_failure: bool = False,
        poll_seconds: float = ARRAY_POLL_SECONDS,
        on_change: ArrayCallback | None = None,
    ) -> ArrayInfo:
        """Wait until the array has ended, and return it as it is then.

        It looks every `poll_seconds`; a server that is away is waited for. Raises WaitTimeoutError
        after `timeout` seconds, ArrayGoneError if the array is deleted meanwhile, and
        ArrayFailedError if it did not succeed and `raise_on_failure` is set.
        """

    def cancel_array(self, name: str) -> ArrayInfo:
        """Ask for an array and its chunks to be cancelled. Raises NotCancellableError."""

    def suspend_array(self, name: str) -> ArrayInfo:
        """Keep an array from beginning further items; those that run continue."""

    def resume_array(self, name: str) -> ArrayInfo:
        """Let a suspended array go on."""

    def redrive_array(self, name: str) -> ArrayInfo:
        """Ask for the failed items of a failed array to run again; raises JobStateError."""

    def workers(self) -> builtins.list[WorkerInfo]:
        """Return the registered workers that are not silent."""


class AsyncJobs(Protocol):
    """A client for code in an event loop."""

    async def submit(
        self, what: str | Submission, payload: object = None, **options: Unpack[SubmitOptions]
    ) -> Submitted:
        """Submit a job: a type with payload and options, or a whole Submission.

        A repeat after a lost answer makes no second job. Raises InvalidSubmissionError,
        JobExistsError, KeyReusedError, DuplicateJobError, QueueFullError.
        """

    def submit_many(self, submissions: Iterable[Submission]) -> AsyncIterator[BatchItem]:
        """Submit many jobs and yield what became of each, in their order.

        One that is refused stops none of the others.
        """

    async def get(self, job_id: str) -> Job:
        """Return a job; raises JobNotFoundError."""

    async def history(self, job_id: str) -> builtins.list[HistoryEvent]:
        """Return what happened to a job, oldest first."""

    async def result(self, job_id: str) -> Json:
        """Return what the handler returned; raises NoResultError where there is nothing.

        Raises ResultElsewhereError where it lies in a store that the client was not given.
        """

    async def wait(
        self,
        job_id: str,
        timeout: float = WAIT_SECONDS,  # noqa: ASYNC109  # it ends in an error of its own
        *,
        raise_on_failure: bool = False,
        poll_seconds: float = POLL_SECONDS,
        on_change: ChangeCallback | None = None,
    ) -> Job:
        """Wait until the job has finished, and return it as it is then.

        It watches where it can, else looks every `poll_seconds`; a server that is away is waited
        for. Raises WaitTimeoutError after `timeout` seconds, JobGoneError if the job is deleted
        meanwhile, and JobFailedError if it did not succeed and `raise_on_failure` is set.
        """

    def poll(self, job_id: str, seconds: float = POLL_SECONDS) -> AsyncIterator[Job]:
        """Yield the job now and whenever it has changed, until it has finished."""

    def list(
        self, selection: Selection = ALL_JOBS, *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[JobSummary]:
        """Yield the jobs that match, newest first, fetched in pages."""

    async def page(
        self, selection: Selection = ALL_JOBS, cursor: str | None = None, limit: int = PAGE_SIZE
    ) -> Page:
        """Return one page of the jobs that match, newest first; its `next` is the next cursor."""

    def watch(self, selection: Selection = ALL_JOBS) -> AsyncIterator[JobSummary]:
        """Yield each job that matches whenever it changes, from now on, without end."""

    async def cancel(self, job_id: str, *, cascade: bool = False) -> Job:
        """Ask for a job to be cancelled; a dead letter is dismissed. Raises NotCancellableError.

        `cascade` takes its unfinished children and the jobs that wait for it along.
        """

    async def suspend(self, job_id: str) -> Job:
        """Keep a job from being started."""

    async def resume(self, job_id: str) -> Job:
        """Let a suspended job start."""

    async def set_priority(self, job_id: str, priority: int) -> Job:
        """Change the priority, -1000 to 1000; raises JobStateError while the job runs."""

    async def signal(self, job_id: str, name: str, payload: object = None) -> Job:
        """Send a signal that a handler waits for, or will. Raises JobStateError if too late.

        It is sent once for each name: repeating it with the same payload changes nothing.
        """

    async def rerun(self, job_id: str) -> Submitted:
        """Ask for a new job that does the same again; it is `<id>-r<n>`, and exists soon."""

    async def redrive(self, job_id: str) -> Job:
        """Ask for a dead letter to run again with fresh budgets; raises NotADeadLetterError."""

    async def dismiss(self, job_id: str) -> Job:
        """Ask for a dead letter to be done with; raises NotADeadLetterError."""

    async def redrive_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        """Redrive the dead letters that match, oldest first, `limit` at most."""

    async def dismiss_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        """Dismiss the dead letters that match, oldest first, `limit` at most."""

    async def queues(self) -> builtins.list[QueueInfo]:
        """Return all queues: with an AsyncQueue, or with jobs or workers."""

    async def queue(self, name: str) -> QueueInfo:
        """Return one queue; one that nobody knows is open, unlimited and empty."""

    async def pause(self, queue: str) -> QueueInfo:
        """Keep all jobs of the queue from starting; creates its AsyncQueue where there is none."""

    async def resume_queue(self, queue: str) -> QueueInfo:
        """Let the jobs of a paused queue start."""

    async def cron_jobs(self) -> builtins.list[CronJobInfo]:
        """Return all cron jobs."""

    async def cron_job(self, name: str) -> CronJobInfo:
        """Return one cron job, with spec and status; raises CronJobNotFoundError."""

    async def trigger(self, name: str) -> Submitted:
        """Ask for one run of a cron job now; its job is `<name>-t<n>`, and exists soon."""

    async def backfill(
        self,
        name: str,
        start: str,
        end: str,
        *,
        limit: int = 100,
        max_active: int = 1,
        replace: bool = False,
    ) -> CronJobInfo:
        """Ask a cron job for the runs from `start` to `end`, RFC 3339, both included, once each.

        Raises JobStateError while an earlier backfill is under way, unless it is to be replaced.
        """

    async def suspend_cron_job(self, name: str) -> CronJobInfo:
        """Keep a cron job from creating jobs."""

    async def resume_cron_job(self, name: str) -> CronJobInfo:
        """Let a suspended cron job create jobs."""

    async def submit_array(
        self,
        what: str | ArraySubmission,
        items: int | Iterable[object] | None = None,
        **options: Unpack[ArrayOptionsGiven],
    ) -> SubmittedArray:
        """Submit an array: a type with items and options, or a whole ArraySubmission.

        `items` is their number, or the items themselves. A repeat after a lost answer makes no
        second array. Raises InvalidSubmissionError, ArrayExistsError.
        """

    async def array(self, name: str) -> ArrayInfo:
        """Return one array, with spec and status; raises ArrayNotFoundError."""

    def arrays(
        self, selection: ArraySelection = ALL_ARRAYS, *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[ArrayInfo]:
        """Yield the arrays that match, newest first, fetched in pages."""

    async def failed_items(self, name: str) -> FailedItems:
        """Return which items of an array have failed, and the newest errors."""

    def item_results(self, name: str) -> AsyncIterator[ItemResult]:
        """Yield what the handler has returned for the items that are done, in their order.

        They are read from the store that the client was given, without it ResultElsewhereError is
        raised. Raises NoResultError where the array keeps none, OffloadError, and ItemResultsError
        at the end if there are items without a result.
        """

    async def wait_for_array(
        self,
        name: str,
        timeout: float = WAIT_SECONDS,  # noqa: ASYNC109  # it ends in an error of its own
        *,
        raise_on_failure: bool = False,
        poll_seconds: float = ARRAY_POLL_SECONDS,
        on_change: ArrayCallback | None = None,
    ) -> ArrayInfo:
        """Wait until the array has ended, and return it as it is then.

        It looks every `poll_seconds`; a server that is away is waited for. Raises WaitTimeoutError
        after `timeout` seconds, ArrayGoneError if the array is deleted meanwhile, and
        ArrayFailedError if it did not succeed and `raise_on_failure` is set.
        """

    async def cancel_array(self, name: str) -> ArrayInfo:
        """Ask for an array and its chunks to be cancelled. Raises NotCancellableError."""

    async def suspend_array(self, name: str) -> ArrayInfo:
        """Keep an array from beginning further items; those that run continue."""

    async def resume_array(self, name: str) -> ArrayInfo:
        """Let a suspended array go on."""

    async def redrive_array(self, name: str) -> ArrayInfo:
        """Ask for the failed items of a failed array to run again; raises JobStateError."""

    async def workers(self) -> builtins.list[WorkerInfo]:
        """Return the registered workers that are not silent."""
