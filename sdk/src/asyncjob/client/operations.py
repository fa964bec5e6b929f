"""What both ways of doing it offer to the shells: one operation for each method of a client."""

import builtins
from collections.abc import Iterable
from typing import Protocol

from asyncjob.client.steps import Emissions, Steps
from asyncjob.json_types import Json
from asyncjob.rest.jobs import Job, JobSummary, Page
from asyncjob.rest.listing import BulkReport, Selection
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, Submission, Submitted


class Operations(Protocol):
    """Operations on the jobs of one namespace; what they do is said in `api`."""

    def submit(self, submission: Submission) -> Steps[Submitted]:
        """Submit one."""

    def submit_many(self, submissions: Iterable[Submission]) -> Emissions[BatchItem]:
        """Submit many."""

    def get(self, job_id: str) -> Steps[Job]:
        """Read one."""

    def result(self, job_id: str) -> Steps[Json]:
        """Read its result."""

    def follow(self, job_id: str, timeout: float | None, poll_seconds: float) -> Emissions[Job]:
        """Follow it until it has finished."""

    def list(self, selection: Selection, page_size: int) -> Emissions[JobSummary]:
        """List all that match."""

    def page(self, selection: Selection, cursor: str | None, limit: int) -> Steps[Page]:
        """List a part of them."""

    def watch(self, selection: Selection) -> Emissions[JobSummary]:
        """Follow all that match."""

    def cancel(self, job_id: str, *, cascade: bool) -> Steps[Job]:
        """Cancel."""

    def set_suspended(self, job_id: str, *, suspended: bool) -> Steps[Job]:
        """Suspend or resume."""

    def set_priority(self, job_id: str, priority: int) -> Steps[Job]:
        """Change the priority."""

    def rerun(self, job_id: str) -> Steps[Submitted]:
        """Run again as a new job."""

    def redrive(self, job_id: str) -> Steps[Job]:
        """Run a dead letter again."""

    def dismiss(self, job_id: str) -> Steps[Job]:
        """Be done with a dead letter."""

    def redrive_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Redrive all that match."""

    def dismiss_many(self, selection: Selection, *, limit: int, dry_run: bool) -> Steps[BulkReport]:
        """Dismiss all that match."""

    def queues(self) -> Steps[builtins.list[QueueInfo]]:
        """Read all queues."""

    def queue(self, name: str) -> Steps[QueueInfo]:
        """Read one queue."""

    def set_paused(self, queue: str, *, paused: bool) -> Steps[QueueInfo]:
        """Pause a queue or let it go on."""

    def cron_jobs(self) -> Steps[builtins.list[CronJobInfo]]:
        """Read all schedules."""

    def cron_job(self, name: str) -> Steps[CronJobInfo]:
        """Read one schedule."""

    def trigger(self, name: str) -> Steps[Submitted]:
        """Ask for one run now."""

    def backfill(self, name: str, request: BackfillAsk) -> Steps[CronJobInfo]:
        """Ask for the runs of times gone by."""

    def set_cron_job_suspended(self, name: str, *, suspended: bool) -> Steps[CronJobInfo]:
        """Suspend a schedule or let it go on."""

    def workers(self) -> Steps[builtins.list[WorkerInfo]]:
        """Read the live workers."""
