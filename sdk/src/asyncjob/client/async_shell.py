"""The methods of a client in an event loop: each runs one operation.

Its twin for plain code is `shell`; neither knows how anything is done.
"""

import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, Unpack

from asyncjob.client.api import ALL_JOBS, PAGE_SIZE, POLL_SECONDS, WAIT_SECONDS, ChangeCallback
from asyncjob.client.driving import AsyncWorld, iterate_async, run_async
from asyncjob.client.operations import Operations
from asyncjob.client.options import SubmitOptions, build_backfill, to_submission
from asyncjob.client.results import check_outcome
from asyncjob.client.steps import Emissions, Steps, T
from asyncjob.client.tracing import trace_submission, with_current_trace
from asyncjob.json_types import Json
from asyncjob.rest.jobs import Happening, Job, JobSummary, Page
from asyncjob.rest.listing import BulkReport, Selection
from asyncjob.rest.resources import CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, Submission, Submitted


class AsyncShell:
    """A client of one event loop. `async with` closes it at the end."""

    def __init__(
        self,
        operations: Operations,
        world: Callable[[], AsyncWorld],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._do = operations
        self._world = world
        self._close = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._close()

    async def submit(
        self, what: str | Submission, payload: object = None, **options: Unpack[SubmitOptions]
    ) -> Submitted:
        """Submit a job: a type with payload and options, or a whole Submission.

        A repeat after a lost answer makes no second job. Raises InvalidSubmissionError,
        JobExistsError, KeyReusedError, DuplicateJobError, QueueFullError.
        """
        submission = to_submission(what, payload, options, now=datetime.now(UTC))
        with trace_submission(submission) as sent:
            done = await self._run(self._do.submit(sent.submission))
            sent.record(done)
        return done

    async def submit_many(self, submissions: Iterable[Submission]) -> AsyncIterator[BatchItem]:
        """Submit many jobs and yield what became of each, in their order.

        One that is refused stops none of the others.
        """
        async with aclosing(
            self._iterate(self._do.submit_many(map(with_current_trace, submissions)))
        ) as found:
            async for one in found:
                yield one

    async def get(self, job_id: str) -> Job:
        """Return a job; raises JobNotFoundError."""
        return await self._run(self._do.get(job_id))

    async def history(self, job_id: str) -> builtins.list[Happening]:
        """Return what happened to a job, oldest first."""
        return (await self.get(job_id)).history

    async def result(self, job_id: str) -> Json:
        """Return what the handler returned; raises NoResultError where there is nothing.

        Raises ResultElsewhereError where it lies in a store that the client was not given.
        """
        return await self._run(self._do.result(job_id))

    async def wait(
        self,
        job_id: str,
        timeout: float = WAIT_SECONDS,  # noqa: ASYNC109  # it is told by an error of its own
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
        last: Job | None = None
        async with aclosing(self._iterate(self._do.follow(job_id, timeout, poll_seconds))) as seen:
            async for last in seen:
                if on_change is not None:
                    on_change(last)
        return check_outcome(last, job_id, raise_on_failure=raise_on_failure)

    async def poll(self, job_id: str, seconds: float = POLL_SECONDS) -> AsyncIterator[Job]:
        """Yield the job now and whenever it has changed, until it has finished."""
        async with aclosing(self._iterate(self._do.follow(job_id, None, seconds))) as found:
            async for one in found:
                yield one

    async def list(
        self, selection: Selection = ALL_JOBS, *, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[JobSummary]:
        """Yield the jobs that match, newest first, fetched in pages."""
        async with aclosing(self._iterate(self._do.list(selection, page_size))) as found:
            async for one in found:
                yield one

    async def page(
        self, selection: Selection = ALL_JOBS, cursor: str | None = None, limit: int = PAGE_SIZE
    ) -> Page:
        """Return one page of the jobs that match, newest first; its `next` is the next cursor."""
        return await self._run(self._do.page(selection, cursor, limit))

    async def watch(self, selection: Selection = ALL_JOBS) -> AsyncIterator[JobSummary]:
        """Yield each job that matches whenever it changes, from now on, for ever."""
        async with aclosing(self._iterate(self._do.watch(selection))) as found:
            async for one in found:
                yield one

    async def cancel(self, job_id: str, *, cascade: bool = False) -> Job:
        """Ask for a job to be cancelled; a dead letter is dismissed. Raises NotCancellableError.

        `cascade` takes its unfinished children and the jobs that wait for it along.
        """
        return await self._run(self._do.cancel(job_id, cascade=cascade))

    async def suspend(self, job_id: str) -> Job:
        """Keep a job from being started."""
        return await self._run(self._do.set_suspended(job_id, suspended=True))

    async def resume(self, job_id: str) -> Job:
        """Let a suspended job start."""
        return await self._run(self._do.set_suspended(job_id, suspended=False))

    async def set_priority(self, job_id: str, priority: int) -> Job:
        """Change the priority, -1000 to 1000; raises JobStateError while the job runs."""
        return await self._run(self._do.set_priority(job_id, priority))

    async def rerun(self, job_id: str) -> Submitted:
        """Ask for a new job that does the same again; it is `<id>-r<n>`, and exists soon."""
        return await self._run(self._do.rerun(job_id))

    async def redrive(self, job_id: str) -> Job:
        """Ask for a dead letter to run again with fresh budgets; raises NotADeadLetterError."""
        return await self._run(self._do.redrive(job_id))

    async def dismiss(self, job_id: str) -> Job:
        """Ask for a dead letter to be done with; raises NotADeadLetterError."""
        return await self._run(self._do.dismiss(job_id))

    async def redrive_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        """Redrive the dead letters that match, oldest first, `limit` at most."""
        return await self._run(self._do.redrive_many(selection, limit=limit, dry_run=dry_run))

    async def dismiss_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        """Dismiss the dead letters that match, oldest first, `limit` at most."""
        return await self._run(self._do.dismiss_many(selection, limit=limit, dry_run=dry_run))

    async def queues(self) -> builtins.list[QueueInfo]:
        """Return all queues: with an AsyncQueue, or with jobs or workers."""
        return await self._run(self._do.queues())

    async def queue(self, name: str) -> QueueInfo:
        """Return one queue; one that nobody knows is open, unlimited and empty."""
        return await self._run(self._do.queue(name))

    async def pause(self, queue: str) -> QueueInfo:
        """Keep all jobs of the queue from starting; creates its AsyncQueue where there is none."""
        return await self._run(self._do.set_paused(queue, paused=True))

    async def resume_queue(self, queue: str) -> QueueInfo:
        """Let the jobs of a paused queue start."""
        return await self._run(self._do.set_paused(queue, paused=False))

    async def cron_jobs(self) -> builtins.list[CronJobInfo]:
        """Return all schedules."""
        return await self._run(self._do.cron_jobs())

    async def cron_job(self, name: str) -> CronJobInfo:
        """Return one schedule, with spec and status; raises CronJobNotFoundError."""
        return await self._run(self._do.cron_job(name))

    async def trigger(self, name: str) -> Submitted:
        """Ask for one run of a schedule now; its job is `<name>-t<n>`, and exists soon."""
        return await self._run(self._do.trigger(name))

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
        """Ask a schedule for the runs from `start` to `end`, RFC 3339, both included, once each.

        Raises JobStateError while an earlier backfill is under way, unless it is to be replaced.
        """
        ask = build_backfill(start, end, limit=limit, max_active=max_active, replace=replace)
        return await self._run(self._do.backfill(name, ask))

    async def suspend_cron_job(self, name: str) -> CronJobInfo:
        """Keep a schedule from creating jobs."""
        return await self._run(self._do.set_cron_job_suspended(name, suspended=True))

    async def resume_cron_job(self, name: str) -> CronJobInfo:
        """Let a suspended schedule create jobs."""
        return await self._run(self._do.set_cron_job_suspended(name, suspended=False))

    async def workers(self) -> builtins.list[WorkerInfo]:
        """Return the workers that have announced themselves and are not silent."""
        return await self._run(self._do.workers())

    async def _run(self, steps: Steps[T]) -> T:
        return await run_async(steps, self._world())

    def _iterate(self, emissions: Emissions[T]) -> AsyncGenerator[T]:
        return iterate_async(emissions, self._world())
