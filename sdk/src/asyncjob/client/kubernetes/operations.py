"""All operations on the jobs of one namespace; each raises the errors of a client."""

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.client import errors
from asyncjob.client.errors import to_refusal
from asyncjob.client.following import follow_job, watch_jobs
from asyncjob.client.kubernetes import changes, cron_jobs, jobs, queues, submitting
from asyncjob.client.kubernetes.calls import translate_errors
from asyncjob.client.kubernetes.jobs import KubernetesJobSource, KubernetesJobStream
from asyncjob.client.kubernetes.submitting import check_no_live_duplicate
from asyncjob.client.options import check_range
from asyncjob.client.results import ResultStore, result_of
from asyncjob.client.steps import Emissions, Emit, Steps, T
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json
from asyncjob.lifecycle.derived_jobs import rerun_name
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.job import RequestData
from asyncjob.rest.job_reading import job_of
from asyncjob.rest.jobs import Job, JobSummary, Page
from asyncjob.rest.listing import MAX_BULK_JOBS, BulkAsk, BulkReport, Selection
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, Submission, Submitted
from asyncjob.submission import JobManifest, build_manifest

MAX_PRIORITY: Final = 1000

DEFAULT_PATIENCE_SECONDS: Final = 30.0
"""How long an API server that is away is waited for."""


@dataclass(frozen=True, slots=True)
class KubernetesOperations:
    """Operations on one namespace. `clock` gives the time of day, `new_id` a fresh UUID.

    `patience` is how many seconds an API server that is away is waited for, at each request.
    """

    namespace: str
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    patience: float = DEFAULT_PATIENCE_SECONDS
    store: ResultStore | None = None

    def submit(
        self, submission: Submission, *, forwarded: RequestData | None = None
    ) -> Steps[Submitted]:
        """Submit.

        `forwarded` is what came along with an HTTP request (see `submission.build_manifest`).
        """
        return (
            yield from self.submit_manifest(self.build_manifest(submission, forwarded=forwarded))
        )

    def build_manifest(
        self, submission: Submission, *, forwarded: RequestData | None = None
    ) -> JobManifest:
        """Return the job that a submission asks for; what is large takes a while to check."""
        return build_manifest(submission, self.namespace, new_id=self.new_id(), forwarded=forwarded)

    def submit_manifest(self, manifest: JobManifest) -> Steps[Submitted]:
        """Submit what has been ordered."""
        done = submitting.submit_job(manifest, self.patience)
        return (yield from translate_errors(done, refused=_invalid_submission))

    def submit_many(self, submissions: Iterable[Submission]) -> Emissions[BatchItem]:
        """Submit one after the other."""
        for submission in submissions:
            try:
                yield Emit(BatchItem(job=(yield from self.submit(submission))))
            except AsyncJobError as error:
                yield Emit(BatchItem(error=to_refusal(error)))

    def get(self, job_id: str) -> Steps[Job]:
        """Read one."""
        return (
            yield from _translate_job_errors(
                jobs.get_job(self.namespace, job_id, self.patience), job_id
            )
        )

    def result(self, job_id: str) -> Steps[Json]:
        """Read its result."""
        return (yield from result_of((yield from self.get(job_id)), self.store))

    def follow(self, job_id: str, timeout: float | None, poll_seconds: float) -> Emissions[Job]:
        """Follow it until it has finished."""
        source = KubernetesJobSource(self.namespace, job_id)
        return follow_job(source, job_id, timeout=timeout, poll_seconds=poll_seconds)

    def list(self, selection: Selection, page_size: int) -> Emissions[JobSummary]:  # noqa: ARG002  # all are read at once
        """List all that match."""
        found = jobs.list_jobs(self.namespace, selection, self.clock(), self.patience)
        for job in (yield from translate_errors(found)):
            yield Emit(job)

    def page(self, selection: Selection, cursor: str | None, limit: int) -> Steps[Page]:
        """List a part of them."""
        now = self.clock()
        most = check_range("limit", limit, 1)
        found = jobs.list_page(
            self.namespace, selection, now, self.patience, cursor=cursor, limit=most
        )
        return (yield from translate_errors(found))

    def watch(self, selection: Selection) -> Emissions[JobSummary]:
        """Follow all that match."""
        return watch_jobs(KubernetesJobStream(self.namespace, selection, self.clock))

    def cancel(self, job_id: str, *, cascade: bool) -> Steps[Job]:
        """Cancel; a dead letter is dismissed."""
        return self._change_job(job_id, changes.set_cancel(cascade=cascade))

    def set_suspended(self, job_id: str, *, suspended: bool) -> Steps[Job]:
        """Suspend or resume."""
        return self._change_job(job_id, changes.set_field("suspend", suspended, default=False))

    def set_priority(self, job_id: str, priority: int) -> Steps[Job]:
        """Change the priority."""
        wanted = check_range("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
        return self._change_job(job_id, changes.set_field("priority", wanted, default=0))

    def rerun(self, job_id: str) -> Steps[Submitted]:
        """Ask for a rerun once the one before has been created."""
        wish = changes.ControlCounter("rerun", "reruns")
        path = jobs.job_path_of(self.namespace, job_id)
        yield from _translate_job_errors(changes.raise_counter(path, wish, self.patience), job_id)
        return Submitted(id=rerun_name(job_id, wish.number), created=True, phase=Phase.QUEUED)

    def redrive(self, job_id: str) -> Steps[Job]:
        """Run a dead letter again."""
        return self._change_job(job_id, changes.RedriveRequest(), check_no_live_duplicate)

    def dismiss(self, job_id: str) -> Steps[Job]:
        """Be done with a dead letter."""
        return self._change_job(job_id, changes.set_dismissed)

    def redrive_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Redrive all that match."""
        return self._bulk(
            selection, limit, dry_run, changes.RedriveRequest, check_no_live_duplicate
        )

    def dismiss_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Dismiss all that match."""
        return self._bulk(selection, limit, dry_run, lambda: changes.set_dismissed)

    def queues(self) -> Steps[builtins.list[QueueInfo]]:
        """Read all queues."""
        return translate_errors(queues.list_queues(self.namespace, self.clock(), self.patience))

    def queue(self, name: str) -> Steps[QueueInfo]:
        """Read one queue."""
        return translate_errors(queues.get_queue(self.namespace, name, self.clock(), self.patience))

    def set_paused(self, queue: str, *, paused: bool) -> Steps[QueueInfo]:
        """Pause a queue or let it go on."""
        now = self.clock()
        return translate_errors(
            queues.set_paused(self.namespace, queue, now, self.patience, paused=paused)
        )

    def cron_jobs(self) -> Steps[builtins.list[CronJobInfo]]:
        """Read all schedules."""
        return translate_errors(cron_jobs.list_cron_jobs(self.namespace, self.patience))

    def cron_job(self, name: str) -> Steps[CronJobInfo]:
        """Read one schedule."""
        return _translate_cron_job_errors(
            cron_jobs.get_cron_job(self.namespace, name, self.patience), name
        )

    def trigger(self, name: str) -> Steps[Submitted]:
        """Ask for one run now."""
        return _translate_cron_job_errors(
            cron_jobs.trigger(self.namespace, name, self.patience), name
        )

    def backfill(self, name: str, request: BackfillAsk) -> Steps[CronJobInfo]:
        """Ask for the runs of times gone by."""
        return _translate_cron_job_errors(
            cron_jobs.backfill(self.namespace, name, request, self.patience), name
        )

    def set_cron_job_suspended(self, name: str, *, suspended: bool) -> Steps[CronJobInfo]:
        """Suspend a schedule or let it go on."""
        done = cron_jobs.set_suspended(self.namespace, name, self.patience, suspended=suspended)
        return _translate_cron_job_errors(done, name)

    def workers(self) -> Steps[builtins.list[WorkerInfo]]:
        """Read the live workers."""
        return translate_errors(queues.list_workers(self.namespace, self.clock(), self.patience))

    def _change_job(
        self, job_id: str, decide: changes.DecideChange, check: changes.CheckJob | None = None
    ) -> Steps[Job]:
        path = jobs.job_path_of(self.namespace, job_id)
        steps = changes.apply_change(path, decide, self.patience, check)
        return job_of((yield from _translate_job_errors(steps, job_id)))

    def _bulk(
        self,
        selection: Selection,
        limit: int,
        dry_run: bool,  # noqa: FBT001  # private, and named where it comes from
        new_change: Callable[[], changes.DecideChange],
        check: changes.CheckJob | None = None,
    ) -> Steps[BulkReport]:
        ask = BulkAsk(
            selection=selection,
            limit=check_range("limit", limit, 1, MAX_BULK_JOBS),
            dry_run=dry_run,
        )
        now = self.clock()
        done = changes.change_dead_letters(
            self.namespace, ask, new_change, now, self.patience, check=check
        )
        return (yield from translate_errors(done))


def _invalid_submission(message: str) -> errors.InvalidSubmissionError:
    return errors.InvalidSubmissionError(message=message)


def _translate_job_errors(steps: Steps[T], job_id: str) -> Steps[T]:
    return translate_errors(steps, lambda _: errors.JobNotFoundError(f"there is no job {job_id}"))


def _translate_cron_job_errors(steps: Steps[T], name: str) -> Steps[T]:
    return translate_errors(
        steps, lambda _: errors.CronJobNotFoundError(f"there is no schedule {name}")
    )
