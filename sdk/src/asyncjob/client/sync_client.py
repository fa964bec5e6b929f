"""The clients for plain code: an async client, run by the caller or waited for in a thread.

What calls back runs where the caller is: the callback of `wait`, the iterable of `submit_many` and
the store of `result` may themselves use the client, and spans end in the caller's thread.
"""

import asyncio
import functools
import weakref
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
)
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast

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
    Jobs,
)
from asyncjob.client.async_client import AsyncClient
from asyncjob.client.options import (
    ArrayOptionsGiven,
    SubmitOptions,
    to_array_submission,
    to_submission,
)
from asyncjob.client.portal import Portal, iterate_in_place, run_in_place
from asyncjob.client.results import check_array_outcome, check_outcome
from asyncjob.client.tracing import trace_submission, with_current_trace
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.item_results import ItemResult
from asyncjob.rest.arrays import ArrayInfo, ArraySelection, ArraySubmission, SubmittedArray
from asyncjob.rest.jobs import Job, JobSummary
from asyncjob.rest.listing import Selection
from asyncjob.rest.submission import BatchItem, Submission, Submitted

P = ParamSpec("P")
T = TypeVar("T")

OpenClient = Callable[[], Awaitable[AsyncClient]]
"""Opens the async client, in the event loop that it is to be used in."""


def _waited_for(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[SyncClient, P], T]":
    """Return the method of the async client as one that is waited for."""

    @functools.wraps(method)
    def call(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        def begin(jobs: AsyncClient) -> Awaitable[T]:
            made: Awaitable[T] = getattr(jobs, method.__name__)(*args, **kwargs)
            return made

        return self._runner.run(begin)

    return call


class SyncClient(Jobs):
    """A client. Any thread may call it. `with` closes it at the end."""

    def __init__(self, runner: "ClientRunner") -> None:
        self._runner = runner

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; calls that still wait fail."""
        self._runner.close()

    def submit(
        self, what: str | Submission, payload: object = None, **options: Unpack[SubmitOptions]
    ) -> Submitted:
        """Submit a job: a type with payload and options, or a whole Submission.

        A repeat after a lost answer makes no second job. Raises InvalidSubmissionError,
        JobExistsError, KeyReusedError, DuplicateJobError, QueueFullError.
        """
        submission = to_submission(what, payload, options, now=datetime.now(UTC))
        with trace_submission(submission) as sent:
            done = self._runner.run(lambda jobs: jobs.submit_untraced(sent.submission))
            sent.record(done)
        return done

    def submit_many(self, submissions: Iterable[Submission]) -> Iterator[BatchItem]:
        """Submit many jobs and yield what became of each, in their order.

        One that is refused stops none of the others.
        """
        rest = map(with_current_trace, submissions)
        while batch := list(islice(rest, self._runner.batch_size)):
            yield from self._runner.iterate(partial(_submit_batch, batch))

    get = _waited_for(AsyncJobs.get)
    history = _waited_for(AsyncJobs.history)

    def result(self, job_id: str) -> Json:
        """Return what the handler returned; raises NoResultError where there is nothing.

        Raises ResultElsewhereError where it lies in a store that the client was not given.
        """
        return self._runner.run(lambda jobs: jobs.locate_result(job_id)).read()

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
        last: Job | None = None
        for last in self._runner.iterate(lambda jobs: jobs.follow(job_id, timeout, poll_seconds)):
            if on_change is not None:
                on_change(last)
        return check_outcome(last, job_id, raise_on_failure=raise_on_failure)

    def poll(self, job_id: str, seconds: float = POLL_SECONDS) -> Iterator[Job]:
        """Yield the job now and whenever it has changed, until it has finished."""
        return self._runner.iterate(lambda jobs: jobs.poll(job_id, seconds))

    def list(
        self, selection: Selection = ALL_JOBS, *, page_size: int = PAGE_SIZE
    ) -> Iterator[JobSummary]:
        """Yield the jobs that match, newest first, fetched in pages."""
        # A page at a time: to ask the thread for each job would take longer than the rest.
        for page in self._runner.iterate(lambda jobs: jobs.pages(selection, page_size)):
            yield from page

    page = _waited_for(AsyncJobs.page)

    def watch(self, selection: Selection = ALL_JOBS) -> Iterator[JobSummary]:
        """Yield each job that matches whenever it changes, from now on, without end."""
        return self._runner.iterate(lambda jobs: jobs.watch(selection))

    cancel = _waited_for(AsyncJobs.cancel)
    suspend = _waited_for(AsyncJobs.suspend)
    resume = _waited_for(AsyncJobs.resume)
    set_priority = _waited_for(AsyncJobs.set_priority)
    signal = _waited_for(AsyncJobs.signal)
    rerun = _waited_for(AsyncJobs.rerun)
    redrive = _waited_for(AsyncJobs.redrive)
    dismiss = _waited_for(AsyncJobs.dismiss)
    redrive_many = _waited_for(AsyncJobs.redrive_many)
    dismiss_many = _waited_for(AsyncJobs.dismiss_many)
    queues = _waited_for(AsyncJobs.queues)
    queue = _waited_for(AsyncJobs.queue)
    pause = _waited_for(AsyncJobs.pause)
    resume_queue = _waited_for(AsyncJobs.resume_queue)
    cron_jobs = _waited_for(AsyncJobs.cron_jobs)
    cron_job = _waited_for(AsyncJobs.cron_job)
    trigger = _waited_for(AsyncJobs.trigger)
    backfill = _waited_for(AsyncJobs.backfill)
    suspend_cron_job = _waited_for(AsyncJobs.suspend_cron_job)
    resume_cron_job = _waited_for(AsyncJobs.resume_cron_job)
    workers = _waited_for(AsyncJobs.workers)

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
        # Here, because the iterable is the caller's.
        submission = to_array_submission(what, items, options, now=datetime.now(UTC))
        return self._runner.run(lambda jobs: jobs.create_array(submission))

    array = _waited_for(AsyncJobs.array)

    def arrays(
        self, selection: ArraySelection = ALL_ARRAYS, *, page_size: int = PAGE_SIZE
    ) -> Iterator[ArrayInfo]:
        """Yield the arrays that match, newest first, fetched in pages."""
        for page in self._runner.iterate(lambda jobs: jobs.array_pages(selection, page_size)):
            yield from page

    failed_items = _waited_for(AsyncJobs.failed_items)

    def item_results(self, name: str) -> Iterator[ItemResult]:
        """Yield what the handler has returned for the items that are done, in their order.

        They are read from the store that the client was given, without it ResultElsewhereError is
        raised. Raises NoResultError where the array keeps none, OffloadError, and ItemResultsError
        at the end if there are items without a result.
        """
        results = self._runner.run(lambda jobs: jobs.locate_item_results(name))
        yield from results
        results.check()

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
        last: ArrayInfo | None = None
        for last in self._runner.iterate(
            lambda jobs: jobs.follow_array(name, timeout, poll_seconds)
        ):
            if on_change is not None:
                on_change(last)
        return check_array_outcome(last, name, raise_on_failure=raise_on_failure)

    cancel_array = _waited_for(AsyncJobs.cancel_array)
    suspend_array = _waited_for(AsyncJobs.suspend_array)
    resume_array = _waited_for(AsyncJobs.resume_array)
    redrive_array = _waited_for(AsyncJobs.redrive_array)


def _submit_batch(batch: list[Submission], jobs: AsyncClient) -> AsyncIterator[BatchItem]:
    return jobs.submit_many_untraced(batch)


class _OpenedOnce:
    """The async client, opened when it is first asked for, and once more in a forked process."""

    def __init__(self, open_client: OpenClient) -> None:
        self._open = open_client
        self._opening: asyncio.Future[AsyncClient] | None = None
        self._inherited: list[asyncio.Future[AsyncClient]] = []

    async def get(self) -> AsyncClient:
        """Return it; several may ask at once."""
        opening = self._opening
        if opening is not None and opening.get_loop() is not asyncio.get_running_loop():
            self._inherited.append(opening)  # collected, it would close sockets that are shared
            opening = None
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(opening)

    async def close(self) -> None:
        """Close it, if it was opened."""
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled() or opening.exception():
            return
        await opening.result().close()


class ClientRunner(ABC):
    """Runs the methods of an async client for a caller that has no event loop."""

    batch_size: int
    """How many submissions go with one request."""

    @abstractmethod
    def run(self, call: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """Return what the call returns, once it does."""

    @abstractmethod
    def iterate(self, begin: Callable[[AsyncClient], AsyncIterator[T]]) -> Iterator[T]:
        """Yield what the iterator yields, each once it is asked for."""

    @abstractmethod
    def close(self) -> None:
        """Close the client."""


class InPlace(ClientRunner):
    """Runs a client in the caller's thread; its connection blocks, and never waits."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.batch_size = client.batch_size

    def run(self, call: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """Return what the call returns."""
        return run_in_place(call(self._client))

    def iterate(self, begin: Callable[[AsyncClient], AsyncIterator[T]]) -> Iterator[T]:
        """Yield what the iterator yields."""
        return iterate_in_place(cast("AsyncGenerator[T]", begin(self._client)))

    def close(self) -> None:
        """Close the client."""
        run_in_place(self._client.close())


class InThread(ClientRunner):
    """Waits for a client that an event loop runs in a thread, where it is opened as well."""

    def __init__(self, client_type: type[AsyncClient], open_client: OpenClient) -> None:
        self.batch_size = client_type.batch_size
        self._portal = Portal()
        self._opened = opened = _OpenedOnce(open_client)
        # One that nobody closes ends when nobody has it any more, as connections do.
        weakref.finalize(self, self._portal.begin_close, opened.close).atexit = False

    def open(self) -> None:
        """Open it before it is used; raises what that raises, and is closed then."""
        try:
            self._portal.run(self._opened.get())
        except BaseException:
            self.close()
            raise

    def run(self, call: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """Return what the call returns, once it does."""

        async def work() -> T:
            return await call(await self._opened.get())

        return self._portal.run(work())

    def iterate(self, begin: Callable[[AsyncClient], AsyncIterator[T]]) -> Iterator[T]:
        """Yield what the iterator yields."""
        jobs = self._portal.run(self._opened.get())
        yield from self._portal.iterate(cast("AsyncGenerator[T]", begin(jobs)))

    def close(self) -> None:
        """Close all connections; calls that still wait raise RuntimeError."""
        self._portal.close(self._opened.close)
