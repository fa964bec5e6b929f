"""`AsyncJobsClient` and its sync twin: jobs behind a gateway.

A submission is checked before it is sent, and gets a name or key of its own, so that the request
may be repeated when its response is lost, and no job is created twice.
"""

import builtins
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from ssl import SSLContext
from typing import ClassVar, Final, TypeVar

import httpx
from pydantic import BaseModel

from asyncjob.client.api import ALL_JOBS, PAGE_SIZE
from asyncjob.client.async_client import AsyncClient
from asyncjob.client.connection import Call, Connection
from asyncjob.client.errors import (
    ArrayNotFoundError,
    CronJobNotFoundError,
    NotFoundError,
    to_refusal,
)
from asyncjob.client.following import follow_job, watch_jobs
from asyncjob.client.following_arrays import follow_array
from asyncjob.client.options import check_range, check_signal
from asyncjob.client.rest.auth import TokenSource, address_from, token_from
from asyncjob.client.rest.calls import (
    GatewayCalls,
    ParamPairs,
    api_path,
    array_path,
    cron_job_path,
    job_path,
    queue_path,
    to_body,
    to_params,
)
from asyncjob.client.rest.connection import BlockingConnection, HttpConnection, RequestBuilder
from asyncjob.client.rest.events import RestJobSource, RestJobStream
from asyncjob.client.results import LocatedResult, ResultFetcher, stored_result
from asyncjob.client.sync_client import InPlace, SyncClient
from asyncjob.json_types import Json, JsonObject
from asyncjob.rest.arrays import (
    ArrayInfo,
    ArrayPage,
    ArraySelection,
    ArraySubmission,
    FailedItems,
    SubmittedArray,
)
from asyncjob.rest.jobs import Job, JobSummary, Page, Result
from asyncjob.rest.listing import MAX_BULK_JOBS, MAX_PAGE_SIZE, BulkAsk, BulkReport, Selection
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, BatchReport, Submission, Submitted
from asyncjob.submission import InvalidSubmissionError
from asyncjob.submission.arrays import array_fields, check_array
from asyncjob.submission.manifest import set_fields
from asyncjob.submission.validation import check_submission

BATCH_SIZE: Final = 100
"""Jobs sent at a time."""

DEFAULT_PATIENCE_SECONDS: Final = 30.0
"""How long a gateway that is away is waited for, where a repeat does no harm."""

NO_RETRY: Final = 0.0

M = TypeVar("M", bound=BaseModel)


class RestClient(AsyncClient):
    """Jobs behind a gateway, by a connection to it. `namespace`: None for the gateway's own.

    `patience` is how many seconds a gateway that is away is waited for, at each request that may
    be repeated. Not repeated: rerun, redrive, trigger, and bulk actions.
    """

    batch_size: ClassVar[int] = BATCH_SIZE

    def __init__(
        self,
        connection: Connection,
        *,
        namespace: str | None,
        patience: float,
        store: ResultFetcher | None,
    ) -> None:
        self._gateway = GatewayCalls(connection)
        self._params: ParamPairs = (("namespace", namespace),) if namespace else ()
        self._patience = patience
        self._store = store

    async def close(self) -> None:
        """Close all connections."""
        await self._gateway.connection.close()

    async def submit_untraced(self, submission: Submission) -> Submitted:
        body = to_request_body(submission, _new_id())
        call = Call("POST", api_path("jobs"), self._params, body=body)
        return await self._request(Submitted, call)

    async def submit_many_untraced(
        self, submissions: Iterable[Submission]
    ) -> AsyncGenerator[BatchItem]:
        rest = iter(submissions)
        while chunk := list(islice(rest, BATCH_SIZE)):
            prepared = [_to_body_or_refusal(one, _new_id()) for one in chunk]
            good = [one for one in prepared if not isinstance(one, BatchItem)]
            answers: Iterator[BatchItem] = iter(())
            if good:
                call = Call("POST", api_path("jobs", "batch"), self._params, body={"jobs": good})
                answers = iter((await self._request(BatchReport, call)).items)
            for one in prepared:
                yield one if isinstance(one, BatchItem) else next(answers)

    async def get(self, job_id: str) -> Job:
        return await self._read(Job, job_path(job_id))

    async def locate_result(self, job_id: str) -> LocatedResult:
        found = await self._read(Result, job_path(job_id, "result"))
        if found.result_ref is None:
            return LocatedResult(found.result)
        return stored_result(job_id, found.result_ref, self._store)

    def follow(
        self, job_id: str, timeout: float | None, poll_seconds: float
    ) -> AsyncGenerator[Job]:
        return follow_job(
            self._gateway.connection,
            RestJobSource(self._gateway, job_id, self._params),
            job_id,
            timeout=timeout,
            poll_seconds=poll_seconds,
        )

    async def pages(
        self, selection: Selection, page_size: int
    ) -> AsyncGenerator[builtins.list[JobSummary]]:
        cursor: str | None = None
        while True:
            page = await self.page(selection, cursor, page_size)
            yield page.items
            cursor = page.next
            if cursor is None:
                return

    async def page(
        self, selection: Selection = ALL_JOBS, cursor: str | None = None, limit: int = PAGE_SIZE
    ) -> Page:
        part = (
            ("limit", str(min(limit, MAX_PAGE_SIZE))),
            *((("cursor", cursor),) if cursor else ()),
        )
        params = (*to_params(selection), *part, *self._params)
        return await self._request(Page, Call("GET", api_path("jobs"), params))

    def watch(self, selection: Selection = ALL_JOBS) -> AsyncIterator[JobSummary]:
        return watch_jobs(self._gateway.connection, RestJobStream(selection, self._params))

    async def cancel(self, job_id: str, *, cascade: bool = False) -> Job:
        params = (*((("cascade", "true"),) if cascade else ()), *self._params)
        return await self._request(Job, Call("DELETE", job_path(job_id), params))

    async def set_suspended(self, job_id: str, *, suspended: bool) -> Job:
        return await self._change(job_id, {"suspend": suspended})

    async def set_priority(self, job_id: str, priority: int) -> Job:
        return await self._change(job_id, {"priority": priority})

    async def signal(self, job_id: str, name: str, payload: object = None) -> Job:
        checked = check_signal(name, payload)
        call = Call(
            "POST", job_path(job_id, "signals", name), self._params, body={"payload": checked}
        )
        return await self._request(Job, call)

    async def rerun(self, job_id: str) -> Submitted:
        return await self._act_once(Submitted, job_path(job_id, "rerun"))

    async def redrive(self, job_id: str) -> Job:
        return await self._act_once(Job, job_path(job_id, "redrive"))

    async def dismiss(self, job_id: str) -> Job:
        return await self._act(Job, job_path(job_id, "dismiss"))

    async def redrive_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        return await self._bulk("redrive", selection, limit, dry_run=dry_run)

    async def dismiss_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        return await self._bulk("dismiss", selection, limit, dry_run=dry_run)

    async def queues(self) -> builtins.list[QueueInfo]:
        return await self._read_all(QueueInfo, api_path("queues"))

    async def queue(self, name: str) -> QueueInfo:
        return await self._read(QueueInfo, queue_path(name))

    async def set_paused(self, queue: str, *, paused: bool) -> QueueInfo:
        action = "pause" if paused else "resume"
        return await self._act(QueueInfo, queue_path(queue, action))

    async def cron_jobs(self) -> builtins.list[CronJobInfo]:
        return await self._read_all(CronJobInfo, api_path("cron-jobs"))

    async def cron_job(self, name: str) -> CronJobInfo:
        with _cron_job_errors():
            return await self._read(CronJobInfo, cron_job_path(name))

    async def trigger(self, name: str) -> Submitted:
        with _cron_job_errors():
            return await self._act_once(Submitted, cron_job_path(name, "trigger"))

    async def request_backfill(self, name: str, request: BackfillAsk) -> CronJobInfo:
        path = cron_job_path(name, "backfill")  # asked twice, the same range is one
        with _cron_job_errors():
            call = Call("POST", path, self._params, body=to_body(request))
            return await self._request(CronJobInfo, call)

    async def set_cron_job_suspended(self, name: str, *, suspended: bool) -> CronJobInfo:
        action = "suspend" if suspended else "resume"
        with _cron_job_errors():
            return await self._act(CronJobInfo, cron_job_path(name, action))

    async def create_array(self, submission: ArraySubmission) -> SubmittedArray:
        named = submission.model_copy(update={"name": submission.name or _new_id()})
        body = array_fields(named)
        check_array(named, body)
        call = Call("POST", api_path("arrays"), self._params, body=body)
        return await self._request(SubmittedArray, call)

    async def array(self, name: str) -> ArrayInfo:
        with _array_errors():
            return await self._read(ArrayInfo, array_path(name))

    async def failed_items(self, name: str) -> FailedItems:
        with _array_errors():
            return await self._read(FailedItems, array_path(name, "failed-items"))

    async def array_pages(
        self, selection: ArraySelection, page_size: int
    ) -> AsyncGenerator[builtins.list[ArrayInfo]]:
        limit, cursor = str(min(page_size, MAX_PAGE_SIZE)), ""
        while True:
            part = (("limit", limit), *((("cursor", cursor),) if cursor else ()))
            params = (*to_params(selection), *part, *self._params)
            page = await self._request(ArrayPage, Call("GET", api_path("arrays"), params))
            yield page.items
            if page.next is None:
                return
            cursor = page.next

    def follow_array(
        self, name: str, timeout: float | None, poll_seconds: float
    ) -> AsyncGenerator[ArrayInfo]:
        async def read(timeout_seconds: float | None) -> ArrayInfo:
            path = array_path(name)
            call = Call("GET", path, self._params, timeout_seconds=timeout_seconds)
            with _array_errors():
                return await self._gateway.request_model(ArrayInfo, call, patience=NO_RETRY)

        return follow_array(
            self._gateway.connection, read, name, timeout=timeout, poll_seconds=poll_seconds
        )

    async def cancel_array(self, name: str) -> ArrayInfo:
        with _array_errors():
            return await self._act(ArrayInfo, array_path(name, "cancel"))

    async def set_array_suspended(self, name: str, *, suspended: bool) -> ArrayInfo:
        action = "suspend" if suspended else "resume"
        with _array_errors():
            return await self._act(ArrayInfo, array_path(name, action))

    async def redrive_array(self, name: str) -> ArrayInfo:
        with _array_errors():
            return await self._act_once(ArrayInfo, array_path(name, "redrive"))

    async def workers(self) -> builtins.list[WorkerInfo]:
        return await self._read_all(WorkerInfo, api_path("workers"))

    async def _request(self, model: type[M], call: Call) -> M:
        return await self._gateway.request_model(model, call, patience=self._patience)

    async def _read(self, model: type[M], path: str) -> M:
        return await self._request(model, Call("GET", path, self._params))

    async def _read_all(self, model: type[M], path: str) -> builtins.list[M]:
        call = Call("GET", path, self._params)
        return await self._gateway.request_list(model, call, patience=self._patience)

    async def _act(self, model: type[M], path: str) -> M:
        return await self._request(model, Call("POST", path, self._params))

    async def _act_once(self, model: type[M], path: str) -> M:
        """Ask for what would do harm if it were done twice."""
        call = Call("POST", path, self._params)
        return await self._gateway.request_model(model, call, patience=NO_RETRY)

    async def _change(self, job_id: str, change: dict[str, Json]) -> Job:
        return await self._request(Job, Call("PATCH", job_path(job_id), self._params, body=change))

    async def _bulk(
        self, action: str, selection: Selection, limit: int, *, dry_run: bool
    ) -> BulkReport:
        most = check_range("limit", limit, 1, MAX_BULK_JOBS)
        body = to_body(BulkAsk(selection=selection, limit=most, dry_run=dry_run))
        call = Call("POST", api_path("jobs", action), self._params, body=body)
        return await self._gateway.request_model(BulkReport, call, patience=NO_RETRY)


class AsyncJobsClient(RestClient):
    """Jobs behind a gateway, for an event loop; the methods are those of `AsyncJobs`.

    It is made like a JobsClient.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | TokenSource | Path | None = None,
        namespace: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        verify: SSLContext | bool = True,
        store: ResultFetcher | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        requests = RequestBuilder(address_from(url), token_from(token))
        http = httpx.AsyncClient(verify=verify, transport=transport)
        connection = HttpConnection(http, requests)
        super().__init__(connection, namespace=namespace, patience=patience, store=store)


class JobsClient(SyncClient):
    """Jobs behind a gateway, for plain code; the methods are those of `Jobs`.

    `url` is the gateway's address, else ASYNCJOB_SERVER. `token` is a bearer token, a function or
    a file that gives it, else ASYNCJOB_TOKEN or the file ASYNCJOB_TOKEN_FILE. `namespace`: else
    the gateway's own. `patience` is how many seconds a gateway that is away is waited for, where
    repeating does no harm. `verify` is whom to trust with TLS, as httpx takes it. `store` fetches
    results that are kept outside of their jobs.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | TokenSource | Path | None = None,
        namespace: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        verify: SSLContext | bool = True,
        store: ResultFetcher | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        requests = RequestBuilder(address_from(url), token_from(token))
        connection = BlockingConnection(
            lambda: httpx.Client(verify=verify, transport=transport), requests
        )
        client = RestClient(connection, namespace=namespace, patience=patience, store=store)
        super().__init__(InPlace(client))


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


def _to_body_or_refusal(submission: Submission, new_id: str) -> JsonObject | BatchItem:
    try:
        return to_request_body(submission, new_id)
    except InvalidSubmissionError as error:
        return BatchItem(error=to_refusal(error))


def _new_id() -> str:
    return str(uuid.uuid4())


@contextmanager
def _array_errors() -> Iterator[None]:
    try:
        yield
    except ArrayNotFoundError:
        raise
    except NotFoundError as error:
        raise ArrayNotFoundError(str(error)) from error


@contextmanager
def _cron_job_errors() -> Iterator[None]:
    try:
        yield
    except NotFoundError as error:
        raise CronJobNotFoundError(str(error)) from error
