"""What both async clients have in common, whatever way leads to the jobs.

The docstrings of a client's methods are those of `AsyncJobs`.
"""

import builtins
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import islice
from types import TracebackType
from typing import ClassVar, Self, Unpack

from asyncjob.client.api import (
    ALL_ARRAYS,
    ALL_JOBS,
    ARRAY_POLL_SECONDS,
    PAGE_SIZE,
    POLL_SECONDS,
    WAIT_SECONDS,
    ArrayCallback,
    AsyncJobs,
    ChangeCallback,
)
from asyncjob.client.options import (
    ArrayOptionsGiven,
    SubmitOptions,
    build_backfill,
    to_array_submission,
    to_submission,
)
from asyncjob.client.results import (
    ItemResults,
    LocatedResult,
    ResultFetcher,
    check_array_outcome,
    check_outcome,
    item_results_of,
)
from asyncjob.client.tracing import trace_submission, with_current_trace
from asyncjob.daemon_threads import run_in_daemon_thread
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.item_results import ItemResult
from asyncjob.rest.arrays import ArrayInfo, ArraySelection, ArraySubmission, SubmittedArray
from asyncjob.rest.jobs import HistoryEvent, Job, JobSummary
from asyncjob.rest.listing import Selection
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, QueueInfo
from asyncjob.rest.submission import BatchItem, Submission, Submitted


class AsyncClient(AsyncJobs):
    """A client of one event loop. `async with` closes it at the end."""

    batch_size: ClassVar[int] = 1
    """How many submissions go with one request."""

    _store: ResultFetcher | None
    """Where results are read that are kept outside of jobs and arrays."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""

    async def submit(
        self, what: str | Submission, payload: object = None, **options: Unpack[SubmitOptions]
    ) -> Submitted:
        submission = to_submission(what, payload, options, now=datetime.now(UTC))
        with trace_submission(submission) as sent:
            done = await self.submit_untraced(sent.submission)
            sent.record(done)
        return done

    async def submit_many(self, submissions: Iterable[Submission]) -> AsyncIterator[BatchItem]:
        traced = map(with_current_trace, submissions)
        async with aclosing(self.submit_many_untraced(traced)) as found:
            async for one in found:
                yield one

    async def history(self, job_id: str) -> builtins.list[HistoryEvent]:
        return (await self.get(job_id)).history

    async def result(self, job_id: str) -> Json:
        found = await self.locate_result(job_id)
        if found.reference is None:
            return found.value
        return await run_in_daemon_thread(found.read, "store")

    async def wait(
        self,
        job_id: str,
        timeout: float = WAIT_SECONDS,  # noqa: ASYNC109  # it ends in an error of its own
        *,
        raise_on_failure: bool = False,
        poll_seconds: float = POLL_SECONDS,
        on_change: ChangeCallback | None = None,
    ) -> Job:
        last: Job | None = None
        async with aclosing(self.follow(job_id, timeout, poll_seconds)) as seen:
            async for last in seen:
                if on_change is not None:
                    on_change(last)
        return check_outcome(last, job_id, raise_on_failure=raise_on_failure)

    async def poll(self, job_id: str, seconds: float = POLL_SECONDS) -> AsyncIterator[Job]:
        async with aclosing(self.follow(job_id, None, seconds)) as found:
            async for one in found:
                yield one

    async def list(
        self, selection: Selection = ALL_JOBS, *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[JobSummary]:
        async with aclosing(self.pages(selection, page_size)) as pages:
            async for page in pages:
                for job in page:
                    yield job

    async def suspend(self, job_id: str) -> Job:
        return await self.set_suspended(job_id, suspended=True)

    async def resume(self, job_id: str) -> Job:
        return await self.set_suspended(job_id, suspended=False)

    async def pause(self, queue: str) -> QueueInfo:
        return await self.set_paused(queue, paused=True)

    async def resume_queue(self, queue: str) -> QueueInfo:
        return await self.set_paused(queue, paused=False)

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
        ask = build_backfill(start, end, limit=limit, max_active=max_active, replace=replace)
        return await self.request_backfill(name, ask)

    async def suspend_cron_job(self, name: str) -> CronJobInfo:
        return await self.set_cron_job_suspended(name, suspended=True)

    async def resume_cron_job(self, name: str) -> CronJobInfo:
        return await self.set_cron_job_suspended(name, suspended=False)

    async def submit_array(
        self,
        what: str | ArraySubmission,
        items: int | Iterable[object] | None = None,
        **options: Unpack[ArrayOptionsGiven],
    ) -> SubmittedArray:
        return await self.create_array(
            to_array_submission(what, items, options, now=datetime.now(UTC))
        )

    async def arrays(
        self, selection: ArraySelection = ALL_ARRAYS, *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[ArrayInfo]:
        async with aclosing(self.array_pages(selection, page_size)) as pages:
            async for page in pages:
                for array in page:
                    yield array

    async def wait_for_array(
        self,
        name: str,
        timeout: float = WAIT_SECONDS,  # noqa: ASYNC109  # it ends in an error of its own
        *,
        raise_on_failure: bool = False,
        poll_seconds: float = ARRAY_POLL_SECONDS,
        on_change: ArrayCallback | None = None,
    ) -> ArrayInfo:
        last: ArrayInfo | None = None
        async with aclosing(self.follow_array(name, timeout, poll_seconds)) as seen:
            async for last in seen:
                if on_change is not None:
                    on_change(last)
        return check_array_outcome(last, name, raise_on_failure=raise_on_failure)

    async def item_results(self, name: str) -> AsyncIterator[ItemResult]:
        results = await self.locate_item_results(name)
        found = iter(results)
        while batch := await run_in_daemon_thread(lambda: [*islice(found, PAGE_SIZE)], "store"):
            for one in batch:
                yield one
        results.check()

    async def locate_item_results(self, name: str) -> ItemResults:
        """Return the results of an array's items, which block while they are read."""
        return item_results_of(await self.array(name), self._store)

    async def suspend_array(self, name: str) -> ArrayInfo:
        return await self.set_array_suspended(name, suspended=True)

    async def resume_array(self, name: str) -> ArrayInfo:
        return await self.set_array_suspended(name, suspended=False)

    # What of it is done in another way behind a gateway than on Kubernetes.

    @abstractmethod
    async def submit_untraced(self, submission: Submission) -> Submitted:
        """Submit as it is."""

    @abstractmethod
    def submit_many_untraced(self, submissions: Iterable[Submission]) -> AsyncGenerator[BatchItem]:
        """Submit all as they are."""

    @abstractmethod
    async def locate_result(self, job_id: str) -> LocatedResult:
        """Return the result, or where it lies and who fetches it."""

    @abstractmethod
    def follow(
        self, job_id: str, timeout: float | None, poll_seconds: float
    ) -> AsyncGenerator[Job]:
        """Yield the job now and at each change, until it has finished."""

    @abstractmethod
    def pages(
        self, selection: Selection, page_size: int
    ) -> AsyncGenerator[builtins.list[JobSummary]]:
        """Yield the jobs that match, newest first, as many at a time as are fetched at once."""

    @abstractmethod
    async def set_suspended(self, job_id: str, *, suspended: bool) -> Job:
        """Suspend or resume a job."""

    @abstractmethod
    async def set_paused(self, queue: str, *, paused: bool) -> QueueInfo:
        """Pause a queue or let it go on."""

    @abstractmethod
    async def request_backfill(self, name: str, request: BackfillAsk) -> CronJobInfo:
        """Ask a cron job for the runs of times gone by."""

    @abstractmethod
    async def set_cron_job_suspended(self, name: str, *, suspended: bool) -> CronJobInfo:
        """Suspend a cron job or let it go on."""

    @abstractmethod
    async def create_array(self, submission: ArraySubmission) -> SubmittedArray:
        """Submit an array as it is."""

    @abstractmethod
    def follow_array(
        self, name: str, timeout: float | None, poll_seconds: float
    ) -> AsyncGenerator[ArrayInfo]:
        """Yield the array now and at each change, until it has ended."""

    @abstractmethod
    def array_pages(
        self, selection: ArraySelection, page_size: int
    ) -> AsyncGenerator[builtins.list[ArrayInfo]]:
        """Yield the arrays that match, newest first, as many at a time as are fetched at once."""

    @abstractmethod
    async def set_array_suspended(self, name: str, *, suspended: bool) -> ArrayInfo:
        """Suspend an array or let it go on."""
