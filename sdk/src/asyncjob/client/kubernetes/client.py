"""`AsyncKubernetesJobsClient` and its sync twin: jobs directly on Kubernetes, without a gateway."""

import builtins
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Final, Self

from asyncjob.client import errors
from asyncjob.client.api import ALL_JOBS, PAGE_SIZE
from asyncjob.client.async_client import AsyncClient
from asyncjob.client.connection import Connection
from asyncjob.client.errors import to_refusal
from asyncjob.client.following import follow_job, watch_jobs
from asyncjob.client.following_arrays import follow_array
from asyncjob.client.kubernetes import arrays, changes, cron_jobs, jobs, queues, signals
from asyncjob.client.kubernetes.calls import KubernetesCalls, translate_errors
from asyncjob.client.kubernetes.connection import KubeConnection
from asyncjob.client.kubernetes.jobs import KubernetesJobSource, KubernetesJobStream
from asyncjob.client.kubernetes.submitting import check_no_live_duplicate, submit_job
from asyncjob.client.options import check_range, check_signal
from asyncjob.client.results import LocatedResult, ResultFetcher, result_of
from asyncjob.client.sync_client import InThread, SyncClient
from asyncjob.errors import AsyncJobError
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.derived_jobs import rerun_name
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.policy import MAX_PRIORITY
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.rest.arrays import (
    ArrayInfo,
    ArraySelection,
    ArraySubmission,
    FailedItems,
    SubmittedArray,
)
from asyncjob.rest.job_reading import job_of
from asyncjob.rest.jobs import Job, JobSummary, Page
from asyncjob.rest.listing import MAX_BULK_JOBS, BulkAsk, BulkReport, Selection
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, Submission, Submitted
from asyncjob.submission import JobManifest, build_manifest
from asyncjob.submission.arrays import build_array_manifest

FIELD_MANAGER: Final = "asyncjob-client"


DEFAULT_PATIENCE_SECONDS: Final = 30.0
"""How long an API server that is away is waited for."""


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return str(uuid.uuid4())


class AsyncKubernetesJobsClient(AsyncClient):
    """Jobs straight on Kubernetes, for an event loop; the methods are those of `AsyncJobs`.

    It needs of RBAC what the methods do that are called.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        *,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        store: ResultFetcher | None = None,
        clock: Callable[[], datetime] = _now,
        new_id: Callable[[], str] = _new_id,
        known_queue: jobs.KnownQueue | None = None,
    ) -> None:
        """`clock` gives the time of day, `new_id` a fresh UUID; `connect` knows the rest.

        `known_queue` gives what is known of an AsyncQueue, so that none is read for a job.
        """
        self._api = KubernetesCalls(connection, patience)
        self._namespace = namespace
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._known_queue = known_queue

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | None = None,
        namespace: str | None = None,
        *,
        context: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        store: ResultFetcher | None = None,
    ) -> Self:
        """Return a client of one namespace; see `KubernetesJobsClient.connect`."""
        access = await load_access(kubeconfig, namespace, context)
        session = KubeSession(access, field_manager=FIELD_MANAGER)
        return cls(KubeConnection(session), access.namespace, patience=patience, store=store)

    async def close(self) -> None:
        """Close all connections."""
        await self._api.connection.close()

    async def submit_untraced(self, submission: Submission) -> Submitted:
        manifest = build_manifest(submission, self._namespace, new_id=self._new_id())
        return await self.submit_manifest(manifest)

    async def submit_manifest(self, manifest: JobManifest) -> Submitted:
        """Create the job of a manifest, or find the one that was created by it before."""
        with translate_errors(refused=_invalid_submission):
            return await submit_job(self._api, manifest)

    async def submit_many_untraced(
        self, submissions: Iterable[Submission]
    ) -> AsyncGenerator[BatchItem]:
        for submission in submissions:
            try:
                item = BatchItem(job=await self.submit_untraced(submission))
            except AsyncJobError as error:
                item = BatchItem(error=to_refusal(error))
            yield item

    async def get(self, job_id: str) -> Job:
        with _job_errors(job_id):
            return await jobs.get_job(self._api, self._namespace, job_id, self._known_queue)

    async def locate_result(self, job_id: str) -> LocatedResult:
        return result_of(await self.get(job_id), self._store)

    def follow(
        self, job_id: str, timeout: float | None, poll_seconds: float
    ) -> AsyncGenerator[Job]:
        return follow_job(
            self._api.connection,
            KubernetesJobSource(self._api, self._namespace, job_id),
            job_id,
            timeout=timeout,
            poll_seconds=poll_seconds,
        )

    async def pages(
        self,
        selection: Selection,
        page_size: int,  # noqa: ARG002  # the API server sorts by name alone: all are read at once
    ) -> AsyncGenerator[builtins.list[JobSummary]]:
        with translate_errors():
            found = await jobs.list_jobs(self._api, self._namespace, selection, self._clock())
        yield found

    async def page(
        self, selection: Selection = ALL_JOBS, cursor: str | None = None, limit: int = PAGE_SIZE
    ) -> Page:
        most = check_range("limit", limit, 1)
        now = self._clock()
        with translate_errors():
            return await jobs.list_page(
                self._api, self._namespace, selection, now, cursor=cursor, limit=most
            )

    def watch(self, selection: Selection = ALL_JOBS) -> AsyncIterator[JobSummary]:
        stream = KubernetesJobStream(self._api, self._namespace, selection, self._clock)
        return watch_jobs(self._api.connection, stream)

    async def cancel(self, job_id: str, *, cascade: bool = False) -> Job:
        return await self._change_job(job_id, changes.set_cancel(cascade=cascade))

    async def set_suspended(self, job_id: str, *, suspended: bool) -> Job:
        decide = changes.set_field("suspend", suspended, default=False)
        return await self._change_job(job_id, decide)

    async def set_priority(self, job_id: str, priority: int) -> Job:
        wanted = check_range("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
        return await self._change_job(job_id, changes.set_field("priority", wanted, default=0))

    async def signal(self, job_id: str, name: str, payload: object = None) -> Job:
        checked = check_signal(name, payload)
        with _job_errors(job_id):
            sender = await signals.own_name(self._api)
        return await self.signal_for(sender, job_id, name, checked)

    async def signal_for(
        self, sender: str, job_id: str, name: str, payload: object, *, uid: str | None = None
    ) -> Job:
        """Send a signal in another's name, for who may `vouch` for them.

        With `uid` only to the job that has it: JobStateError if another has its name by now.
        """
        checked, now = check_signal(name, payload), format_timestamp(self._clock())
        path = jobs.job_path_of(self._namespace, job_id)
        with _job_errors(job_id):
            job = await signals.send_signal(
                self._api, path, name, checked, sent_by=sender, now=now, uid=uid
            )
        return job_of(job)

    async def rerun(self, job_id: str) -> Submitted:
        counter = changes.ControlCounter("rerun", "reruns")
        path = jobs.job_path_of(self._namespace, job_id)
        with _job_errors(job_id):
            await changes.raise_counter(self._api, path, counter)
        return Submitted(id=rerun_name(job_id, counter.number), created=True, phase=Phase.QUEUED)

    async def redrive(self, job_id: str) -> Job:
        request = changes.RedriveRequest(self._server_now)
        return await self._change_job(job_id, request, check_no_live_duplicate)

    async def dismiss(self, job_id: str) -> Job:
        return await self._change_job(job_id, changes.set_dismissed)

    async def redrive_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        ask = _bulk_ask(selection, limit, dry_run=dry_run)
        request = partial(changes.RedriveRequest, self._server_now)
        late = partial(changes.why_too_late, now=self._server_now)
        return await self._change_many(ask, request, check_no_live_duplicate, late)

    async def dismiss_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        ask = _bulk_ask(selection, limit, dry_run=dry_run)
        return await self._change_many(ask, lambda: changes.set_dismissed)

    async def queues(self) -> builtins.list[QueueInfo]:
        with translate_errors():
            return await queues.list_queues(self._api, self._namespace, self._clock())

    async def queue(self, name: str) -> QueueInfo:
        with translate_errors():
            return await queues.get_queue(self._api, self._namespace, name, self._clock())

    async def set_paused(self, queue: str, *, paused: bool) -> QueueInfo:
        now = self._clock()
        with translate_errors():
            return await queues.set_paused(self._api, self._namespace, queue, now, paused=paused)

    async def cron_jobs(self) -> builtins.list[CronJobInfo]:
        with translate_errors():
            return await cron_jobs.list_cron_jobs(self._api, self._namespace)

    async def cron_job(self, name: str) -> CronJobInfo:
        with _cron_job_errors(name):
            return await cron_jobs.get_cron_job(self._api, self._namespace, name)

    async def trigger(self, name: str) -> Submitted:
        with _cron_job_errors(name):
            return await cron_jobs.trigger(self._api, self._namespace, name)

    async def request_backfill(self, name: str, request: BackfillAsk) -> CronJobInfo:
        with _cron_job_errors(name):
            return await cron_jobs.backfill(self._api, self._namespace, name, request)

    async def set_cron_job_suspended(self, name: str, *, suspended: bool) -> CronJobInfo:
        with _cron_job_errors(name):
            return await cron_jobs.set_suspended(
                self._api, self._namespace, name, suspended=suspended
            )

    async def create_array(self, submission: ArraySubmission) -> SubmittedArray:
        manifest = build_array_manifest(submission, self._namespace, new_id=self._new_id())
        with translate_errors(refused=_invalid_submission):
            return await arrays.submit_array(self._api, manifest)

    async def array(self, name: str) -> ArrayInfo:
        return await self._read_array(self._api, name)

    async def failed_items(self, name: str) -> FailedItems:
        with _array_errors(name):
            return await arrays.get_failed_items(self._api, self._namespace, name)

    async def array_pages(
        self,
        selection: ArraySelection,
        page_size: int,  # noqa: ARG002  # the API server sorts by name alone: all are read at once
    ) -> AsyncGenerator[builtins.list[ArrayInfo]]:
        with translate_errors():
            found = await arrays.list_arrays(self._api, self._namespace, selection)
        yield found

    def follow_array(
        self, name: str, timeout: float | None, poll_seconds: float
    ) -> AsyncGenerator[ArrayInfo]:
        async def read(timeout_seconds: float | None) -> ArrayInfo:
            once = KubernetesCalls(self._api.connection, 0.0, timeout_seconds)
            return await self._read_array(once, name)

        return follow_array(
            self._api.connection, read, name, timeout=timeout, poll_seconds=poll_seconds
        )

    async def cancel_array(self, name: str) -> ArrayInfo:
        return await self._change_array(name, arrays.set_array_cancel)

    async def set_array_suspended(self, name: str, *, suspended: bool) -> ArrayInfo:
        return await self._change_array(name, arrays.set_array_suspended(suspended=suspended))

    async def redrive_array(self, name: str) -> ArrayInfo:
        return await self._change_array(name, arrays.ArrayRedriveRequest())

    async def workers(self) -> builtins.list[WorkerInfo]:
        with translate_errors():
            return await queues.list_workers(self._api, self._namespace, self._clock())

    async def _change_job(
        self, job_id: str, decide: changes.DecideChange, check: changes.CheckJob | None = None
    ) -> Job:
        path = jobs.job_path_of(self._namespace, job_id)
        with _job_errors(job_id):
            return job_of(await changes.apply_change(self._api, path, decide, check))

    async def _read_array(self, api: KubernetesCalls, name: str) -> ArrayInfo:
        with _array_errors(name):
            return await arrays.get_array(api, self._namespace, name)

    async def _change_array(self, name: str, decide: changes.DecideChange) -> ArrayInfo:
        with _array_errors(name):
            return await arrays.change_array(self._api, self._namespace, name, decide)

    async def _change_many(
        self,
        ask: BulkAsk,
        new_change: Callable[[], changes.DecideChange],
        check: changes.CheckJob | None = None,
        why_not: changes.WhyNot = lambda _: None,
    ) -> BulkReport:
        api, now = self._api, self._clock()
        with translate_errors():
            return await changes.change_dead_letters(
                api, self._namespace, ask, new_change, now, check=check, why_not=why_not
            )

    def _server_now(self) -> datetime:
        """Return the API server's time as it has told it, else this machine's."""
        told = self._api.connection.server_time()
        return self._clock() if told is None else datetime.fromtimestamp(told, UTC)


def _bulk_ask(selection: Selection, limit: int, *, dry_run: bool) -> BulkAsk:
    most = check_range("limit", limit, 1, MAX_BULK_JOBS)
    return BulkAsk(selection=selection, limit=most, dry_run=dry_run)


def _invalid_submission(message: str) -> errors.InvalidSubmissionError:
    return errors.InvalidSubmissionError(message=message)


def _job_errors(job_id: str) -> AbstractContextManager[None]:
    return translate_errors(lambda _: errors.JobNotFoundError(f"there is no job {job_id}"))


def _array_errors(name: str) -> AbstractContextManager[None]:
    return translate_errors(lambda _: errors.ArrayNotFoundError(f"there is no array {name}"))


def _cron_job_errors(name: str) -> AbstractContextManager[None]:
    return translate_errors(lambda _: errors.CronJobNotFoundError(f"there is no cron job {name}"))


class KubernetesJobsClient(SyncClient):
    """Jobs straight on Kubernetes, for plain code; the methods are those of `Jobs`.

    It needs of RBAC what the methods do that are called, and no event loop of its user's.
    """

    @classmethod
    def connect(
        cls,
        kubeconfig: str | None = None,
        namespace: str | None = None,
        *,
        context: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        store: ResultFetcher | None = None,
    ) -> Self:
        """Return a client of one namespace.

        Without a kubeconfig it goes by KUBECONFIG, else by the pod it runs in, else by
        ~/.kube/config; without a namespace by what that says. `context` is one of the kubeconfig,
        if not its current one. `patience` is how many seconds an API
        server that is away is waited for. Raises NoClusterError.
        """
        open_client = partial(
            AsyncKubernetesJobsClient.connect,
            kubeconfig,
            namespace,
            context=context,
            patience=patience,
            store=store,
        )
        runner = InThread(AsyncKubernetesJobsClient, open_client)
        runner.open()
        return cls(runner)
