"""What can be done in a namespace on behalf of a caller.

The client on Kubernetes, with what only a gateway adds. It checks the caller's right to the Secret
or ConfigMap that a payload comes from, refuses jobs for full queues, and puts what it wrote into
its own cache.
"""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from asyncjob.client.connection import Answer, Call
from asyncjob.client.errors import JobNotFoundError
from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.client.kubernetes.connection import KubeConnection
from asyncjob.client.tracing import trace_submission
from asyncjob.errors import AsyncJobError
from asyncjob.free_json import size_of
from asyncjob.json_types import Json, JsonObject, child, opt_integer, text
from asyncjob.kube import KubeSession
from asyncjob.models.job import PayloadSource, RequestData
from asyncjob.names import CRON_JOB_KIND, JOB_KIND
from asyncjob.rest.arrays import ArrayInfo, ArraySubmission, FailedItems, SubmittedArray
from asyncjob.rest.jobs import Job, Result
from asyncjob.rest.listing import BulkAsk, BulkReport
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, QueueInfo
from asyncjob.rest.submission import BatchItem, BatchReport, Refusal, Submission, Submitted
from asyncjob.submission.manifest import build_manifest, key_name
from asyncjob.submission.validation import read_submission
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.rights import Right, read_source
from asyncjob_gateway.cache.entries import parse_version
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.cache.queue_capacity import CapacityHold
from asyncjob_gateway.clock import now
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.strict_json import PARSE_INLINE_BYTES
from asyncjob_gateway.problems import to_refused_error
from asyncjob_gateway.telemetry import GatewayMetrics, bind_log_context

_SOURCE_RESOURCES: Final = {"secretKeyRef": "secrets", "configMapKeyRef": "configmaps"}


def rights_for_source(source: PayloadSource | None) -> Iterator[Right]:
    """Yield the rights that a submission with this source takes."""
    if source:
        yield from _source_rights(source.model_dump(by_alias=True, exclude_none=True))


def rights_for_object(obj: JsonObject) -> Iterator[Right]:
    """Yield the rights that running an AsyncJob, or the jobs of an AsyncCronJob, takes."""
    spec = child(obj, "spec")
    if text(obj, "kind") == CRON_JOB_KIND:
        spec = child(child(spec, "jobTemplate"), "spec")
    yield from _source_rights(child(spec, "payloadFrom"))


def _source_rights(source: JsonObject) -> Iterator[Right]:
    for field, resource in _SOURCE_RESOURCES.items():
        if field in source:
            yield read_source(resource, text(child(source, field), "name"))


BATCH_CONCURRENCY: Final = 16
"""Jobs of one batch that are created at the same time: a quarter of the connections to the API
server (`API_SERVER_CONNECTIONS`), so that one batch does not hold up all other callers."""

Submit = Callable[[Submission], Awaitable[Submitted]]


async def submit_all(jobs: Sequence[Any], submit: Submit) -> BatchReport:
    """Return what became of each, in their order."""
    slots = asyncio.Semaphore(BATCH_CONCURRENCY)
    turns: Mapping[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def one(job: Any, prefix: str) -> BatchItem:
        async with slots:
            try:
                submission = read_submission(job, prefix=prefix)
                async with AsyncExitStack() as stack:
                    for identity in _shared_identities(submission):
                        await stack.enter_async_context(turns[identity])
                    return BatchItem(job=await submit(submission))
            except AsyncJobError as error:
                return BatchItem(error=_to_refusal(error))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(job, f"jobs.{number}")) for number, job in enumerate(jobs)]
    items = [task.result() for task in tasks]
    accepted = sum(item.job is not None for item in items)
    return BatchReport(items=items, accepted=accepted, refused=len(items) - accepted)


def _shared_identities(submission: Submission) -> list[str]:
    """Return what it may share with others, in one order for all: no two wait for each other."""
    named = (
        ("name", submission.name),
        ("key", submission.idempotency_key),
        ("id", submission.deduplication_id),
    )
    return sorted(f"{kind}/{value}" for kind, value in named if value is not None)


def _to_refusal(error: AsyncJobError) -> Refusal:
    refused = to_refused_error(error)
    return Refusal(
        status=refused.kind.status,
        title=refused.kind.title,
        detail=refused.detail,
        code=refused.kind.slug,
        job_id=refused.job_id,
    )


API_SERVER_WAIT_SECONDS: Final = 5.0
"""How long an API server that is away is waited for, at each request."""

QUEUE_FULL_RETRY_SECONDS: Final = 5.0
"""When to try again where a queue is full."""

RequireRight = Callable[[Right], Awaitable[None]]


class Operations:
    """Operations on one namespace for one caller; `require` checks a right of theirs.

    `traceparent` is the trace context of their request. Errors are those of the clients, or
    RefusedError.
    """

    def __init__(
        self,
        session: KubeSession,
        cache: NamespaceCache,
        metrics: GatewayMetrics,
        require: RequireRight,
        traceparent: str | None = None,
    ) -> None:
        self._session = session
        self._cache = cache
        self._metrics = metrics
        self._require = require
        self._traceparent = traceparent

    async def submit(
        self, submission: Submission, request_data: RequestData | None = None
    ) -> Submitted:
        """Create the job, or find the one that was created by the same request before."""
        with trace_submission(submission, self._traceparent) as sent:
            bind_log_context(trace=sent.submission.traceparent)
            try:
                done = await self._submit(sent.submission, request_data)
            except AsyncJobError:
                self._metrics.count_submission("refused")
                raise
            sent.record(done)
        bind_log_context(job=done.id)
        self._metrics.count_submission("created" if done.created else "repeated")
        return done

    async def submit_batch(
        self, jobs: Sequence[Any], request_data: RequestData | None = None
    ) -> BatchReport:
        """Create many; each is read, done or refused by itself."""
        return await submit_all(jobs, lambda submission: self.submit(submission, request_data))

    async def get(self, job_id: str) -> Job:
        """Return a job as it is now."""
        return await self._client().get(job_id)

    async def result(self, job_id: str) -> Result:
        """Return a job's result, or where it lies."""
        job = await self.get(job_id)
        if not job.has_result:
            raise RefusedError(problem_types.NO_RESULT, f"job {job_id} is {job.phase.value}")
        return Result(result=job.result, result_ref=job.result_ref)

    async def cancel(self, job_id: str, *, cascade: bool) -> Job:
        """Cancel a job, or dismiss a dead letter."""
        return await self._client().cancel(job_id, cascade=cascade)

    async def change(self, job_id: str, *, suspend: bool | None, priority: int | None) -> Job:
        """Suspend, resume, change the priority: whatever is given."""
        job: Job | None = None
        if suspend is not None:
            job = await self._client().set_suspended(job_id, suspended=suspend)
        if priority is not None:
            job = await self._client().set_priority(job_id, priority)
        return job or await self.get(job_id)

    async def signal(
        self, job_id: str, name: str, payload: Json, *, sender: str, uid: str | None
    ) -> Job:
        """Send a signal to a job, in the caller's name; with `uid` only to the one that has it."""
        return await self._client().signal_for(sender, job_id, name, payload, uid=uid)

    async def rerun(self, job_id: str) -> Submitted:
        """Ask for a new job that does the same again."""
        return await self._client(checks_payload_source=True).rerun(job_id)

    async def redrive(self, job_id: str) -> Job:
        """Run a dead letter again."""
        return await self._client().redrive(job_id)

    async def dismiss(self, job_id: str) -> Job:
        """Be done with a dead letter."""
        return await self._client().dismiss(job_id)

    async def redrive_many(self, request: BulkAsk) -> BulkReport:
        """Redrive the dead letters that match."""
        return await self._client().redrive_many(
            request.selection, limit=request.limit, dry_run=request.dry_run
        )

    async def dismiss_many(self, request: BulkAsk) -> BulkReport:
        """Dismiss the dead letters that match."""
        return await self._client().dismiss_many(
            request.selection, limit=request.limit, dry_run=request.dry_run
        )

    async def set_paused(self, queue: str, *, paused: bool) -> QueueInfo:
        """Pause a queue or let it go on."""
        changed = await self._client().set_paused(queue, paused=paused)
        return self._cache.queue(queue, now(), changed)

    async def cron_job(self, name: str) -> CronJobInfo:
        """Return a cron job."""
        return await self._client().cron_job(name)

    async def trigger(self, name: str) -> Submitted:
        """Ask for a run of a cron job now."""
        return await self._client(checks_payload_source=True).trigger(name)

    async def backfill(self, name: str, request: BackfillAsk) -> CronJobInfo:
        """Ask a cron job for the runs of times gone by."""
        return await self._client(checks_payload_source=True).request_backfill(name, request)

    async def set_cron_job_suspended(self, name: str, *, suspended: bool) -> CronJobInfo:
        """Suspend a cron job or let it go on."""
        return await self._client().set_cron_job_suspended(name, suspended=suspended)

    async def submit_array(self, submission: ArraySubmission) -> SubmittedArray:
        """Create the array, or find the one that was created by the same request before."""
        return await self._client().create_array(submission)

    async def array(self, name: str) -> ArrayInfo:
        """Return an array as it is now."""
        return await self._client().array(name)

    async def failed_items(self, name: str) -> FailedItems:
        """Return which items of an array have failed."""
        return await self._client().failed_items(name)

    async def cancel_array(self, name: str) -> ArrayInfo:
        """Cancel an array and its chunks."""
        return await self._client().cancel_array(name)

    async def set_array_suspended(self, name: str, *, suspended: bool) -> ArrayInfo:
        """Suspend an array or let it go on."""
        return await self._client().set_array_suspended(name, suspended=suspended)

    async def redrive_array(self, name: str) -> ArrayInfo:
        """Run the failed items of a failed array again."""
        return await self._client().redrive_array(name)

    async def _submit(self, submission: Submission, request_data: RequestData | None) -> Submitted:
        for right in rights_for_source(submission.payload_from):
            await self._require(right)
        order = partial(
            build_manifest, submission, self._cache.name, new_id=_new_id(), forwarded=request_data
        )
        large = submission.payload is not None and size_of(submission.payload) > PARSE_INLINE_BYTES
        made = await asyncio.to_thread(order) if large else order()
        limit = self._max_queued(submission.queue)
        if limit is None:
            return await self._client().submit_manifest(made)
        async with self._cache.capacity.hold(submission.queue, limit) as place:
            if place is None and not await self._is_repeated_request(submission):
                detail = f"queue {submission.queue} is full: maxQueued is {limit}"
                raise RefusedError(
                    problem_types.QUEUE_FULL, detail, retry_after=QUEUE_FULL_RETRY_SECONDS
                )
            return await self._client(hold=place).submit_manifest(made)

    def _max_queued(self, queue: str) -> int | None:
        obj = self._cache.queue_object(queue)
        return opt_integer(child(obj or {}, "spec"), "maxQueued")

    async def _is_repeated_request(self, submission: Submission) -> bool:
        """Return whether it repeats a request that was accepted: only new jobs are refused."""
        key = submission.idempotency_key
        return key is not None and await self._exists(key_name(self._cache.name, key))

    async def _exists(self, job_id: str) -> bool:
        try:
            await self.get(job_id)
        except JobNotFoundError:
            return False
        return True

    def _client(
        self, *, checks_payload_source: bool = False, hold: CapacityHold | None = None
    ) -> AsyncKubernetesJobsClient:
        """Return a client for one operation.

        `checks_payload_source` asks for the right to what the object's payload comes from: the
        object as read is the one that is written, because the write is conditional on its version.
        `hold` is the room in a queue that a job takes once it is created.
        """

        async def look(call: Call, answer: Answer) -> None:
            if call.method != "GET":
                self._cache.put_written(answer.object)
                if hold and call.method == "POST" and text(answer.object, "kind") == JOB_KIND:
                    hold.version = parse_version(
                        text(child(answer.object, "metadata"), "resourceVersion")
                    )
            if checks_payload_source and call.method == "GET":
                for right in rights_for_object(answer.object):
                    await self._require(right)

        return AsyncKubernetesJobsClient(
            KubeConnection(self._session, look),
            self._cache.name,
            patience=API_SERVER_WAIT_SECONDS,
            clock=now,
            known_queue=self._cache.queue_object,
        )


def _new_id() -> str:
    return str(uuid.uuid4())


__all__ = ["Operations"]
