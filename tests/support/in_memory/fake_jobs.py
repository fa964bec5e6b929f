"""Jobs in memory, behind the interface that all clients have; and builders of what they return."""

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from asyncjob.client.api import ALL_ARRAYS, ALL_JOBS, PAGE_SIZE
from asyncjob.client.errors import (
    ArrayNotFoundError,
    CronJobNotFoundError,
    JobNotFoundError,
    JobStateError,
    NoResultError,
    NotADeadLetterError,
    NotCancellableError,
)
from asyncjob.client.options import check_signal
from asyncjob.client.results import item_results_of
from asyncjob.lifecycle.arrays.item_results import ItemResult
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.models.array import AsyncArrayStatus
from asyncjob.rest.arrays import (
    ArrayInfo,
    ArraySelection,
    ArraySubmission,
    FailedItems,
    SubmittedArray,
    matches_array,
)
from asyncjob.rest.job_records import SignalInfo
from asyncjob.rest.jobs import HistoryEvent, Job, JobSummary, Page
from asyncjob.rest.listing import BulkFailure, BulkReport, Selection
from asyncjob.rest.resources import CronJobInfo, QueueInfo, WorkerInfo
from asyncjob.rest.submission import BatchItem, Refusal, Submission, Submitted

CREATED = "2026-11-21T20:00:00Z"


def a_job(name: str = "report-42", phase: str = "Queued", **fields: Any) -> Job:
    """Build a job; fields by the names of Python or of JSON."""
    base: dict[str, Any] = {
        "id": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "type": "report.csv",
        "queue": "default",
        "phase": phase,
        "created_at": CREATED,
        "resource_version": "1",
        "history": [HistoryEvent(time=CREATED, phase="Created")],
    }
    return Job.model_validate({**base, **fields})


def a_queue(name: str = "default", **fields: Any) -> QueueInfo:
    """Build a queue."""
    base: dict[str, Any] = {"name": name, "namespace": "default", "configured": True}
    return QueueInfo.model_validate({**base, **fields})


def a_cron(name: str = "nightly", **fields: Any) -> CronJobInfo:
    """Build a cron job."""
    base: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "schedule": "30 2 * * *",
        "time_zone": "Europe/Berlin",
        "type": "report.csv",
        "queue": "default",
    }
    return CronJobInfo.model_validate({**base, **fields})


def an_array(name: str = "thumbs", phase: str = "Pending", **fields: Any) -> ArrayInfo:
    """Build an array; fields by the names of Python or of JSON."""
    base: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "type": "thumb",
        "queue": "default",
        "phase": phase,
        "total": 1000,
        "created_at": CREATED,
    }
    return ArrayInfo.model_validate({**base, **fields})


def a_worker(pod: str = "worker-0", **fields: Any) -> WorkerInfo:
    """Build a worker."""
    base: dict[str, Any] = {
        "name": f"asyncjob-worker-{pod}",
        "namespace": "default",
        "pod": pod,
        "queue": "default",
        "slots": 4,
        "types": ["report.csv"],
        "seen_at": CREATED,
    }
    return WorkerInfo.model_validate({**base, **fields})


@dataclass
class FakeJobs:
    """The double. `script` has what becomes of jobs each time that one is looked at."""

    jobs: dict[str, Job] = field(default_factory=dict)
    all_queues: dict[str, QueueInfo] = field(default_factory=dict)
    crons: dict[str, CronJobInfo] = field(default_factory=dict)
    all_workers: list[WorkerInfo] = field(default_factory=list)
    backfills: list[tuple[Any, ...]] = field(default_factory=list)
    changes: list[JobSummary] = field(default_factory=list)
    submitted: list[Submission] = field(default_factory=list)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    script: dict[str, list[Job | BaseException]] = field(default_factory=dict)
    all_arrays: dict[str, ArrayInfo] = field(default_factory=dict)
    submitted_arrays: list[ArraySubmission] = field(default_factory=list)
    array_script: dict[str, list[ArrayInfo | BaseException]] = field(default_factory=dict)
    refuse: Callable[[Submission], str | None] = lambda _: None
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, *jobs: Job) -> "FakeJobs":
        self.jobs.update({job.id: job for job in jobs})
        return self

    # ---- submitting

    def submit(self, what: str | Submission, payload: object = None, **options: Any) -> Submitted:
        assert isinstance(what, Submission)
        assert payload is None
        assert not options
        name = what.name or f"job-{next(self._ids)}"
        known = name in self.jobs
        self.submitted.append(what)
        self.jobs.setdefault(name, a_job(name, type=what.type, queue=what.queue))
        return Submitted(id=name, created=not known, phase=self.jobs[name].phase)

    def submit_many(self, submissions: Iterable[Submission]) -> Iterator[BatchItem]:
        for one in submissions:
            detail = self.refuse(one)
            if detail is None:
                yield BatchItem(job=self.submit(one))
            else:
                refusal = Refusal(status=409, title="Taken", detail=detail, code="key-reused")
                yield BatchItem(error=refusal)

    # ---- reading

    def get(self, job_id: str) -> Job:
        coming = self.script.get(job_id)
        if coming:
            then = coming.pop(0)
            if isinstance(then, BaseException):
                raise then
            self.jobs[job_id] = then
        if job_id not in self.jobs:
            raise JobNotFoundError(f"there is no job {job_id} in namespace default")
        return self.jobs[job_id]

    def history(self, job_id: str) -> builtins.list[HistoryEvent]:
        return self.get(job_id).history

    def result(self, job_id: str) -> Any:
        job = self.get(job_id)
        if not job.has_result:
            raise NoResultError(f"{job_id} has no result: it is {job.phase}")
        return job.result

    def list(
        self, selection: Selection = ALL_JOBS, *, page_size: int = PAGE_SIZE
    ) -> Iterator[JobSummary]:
        assert page_size == PAGE_SIZE
        self.asked.append(("list", selection))
        for job in self.jobs.values():
            if selection.phase is None or job.phase in selection.phase:
                yield job

    def watch(self, selection: Selection = ALL_JOBS) -> Iterator[JobSummary]:
        self.asked.append(("watch", selection))
        yield from self.changes

    # ---- acting

    def cancel(self, job_id: str, *, cascade: bool = False) -> Job:
        job = self.get(job_id)
        if job.phase is Phase.SUCCEEDED:
            raise NotCancellableError(f"{job_id} has succeeded")
        self.asked.append(("cancel", job_id, cascade))
        return self._change(job_id, cancelling=job.phase is not Phase.CANCELLED)

    def suspend(self, job_id: str) -> Job:
        return self._change(job_id, suspended=True)

    def resume(self, job_id: str) -> Job:
        return self._change(job_id, suspended=False)

    def set_priority(self, job_id: str, priority: int) -> Job:
        return self._change(job_id, priority=priority)

    def signal(self, job_id: str, name: str, payload: object = None) -> Job:
        sent = SignalInfo(name=name, sent_by="ada", payload=check_signal(name, payload))
        self.asked.append(("signal", job_id, name, sent.payload))
        if self.get(job_id).phase in FINISHED_PHASES:
            raise JobStateError(f"job {job_id} takes no signals")
        return self._change(job_id, signals=[*self.get(job_id).signals, sent])

    def rerun(self, job_id: str) -> Submitted:
        job = self.get(job_id)
        return Submitted(id=f"{job.id}-r{job.reruns + 1}", created=True, phase="Queued")

    def redrive(self, job_id: str) -> Job:
        return self._bury("redrive", job_id)

    def dismiss(self, job_id: str) -> Job:
        return self._bury("dismiss", job_id)

    def redrive_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        return self._many("redrive", selection, limit, dry_run)

    def dismiss_many(
        self, selection: Selection = ALL_JOBS, *, limit: int = 100, dry_run: bool = False
    ) -> BulkReport:
        return self._many("dismiss", selection, limit, dry_run)

    def _bury(self, deed: str, job_id: str) -> Job:
        if self.get(job_id).phase is not Phase.DEAD_LETTER:
            raise NotADeadLetterError(f"{job_id} is {self.get(job_id).phase}, not a dead letter")
        self.asked.append((deed, job_id))
        return self.get(job_id)

    def _many(self, deed: str, selection: Any, limit: int, dry_run: bool) -> BulkReport:
        self.asked.append((f"{deed}_many", selection, limit, dry_run))
        dead = [job.id for job in self.jobs.values() if job.phase is Phase.DEAD_LETTER]
        stubborn = [name for name in dead[:limit] if name.startswith("stubborn") and not dry_run]
        return BulkReport(
            matched=len(dead),
            done=[name for name in dead[:limit] if name not in stubborn],
            failed=[BulkFailure(id=name, detail="it was redriven meanwhile") for name in stubborn],
            dry_run=dry_run,
        )

    def _change(self, job_id: str, **fields: Any) -> Job:
        self.jobs[job_id] = self.get(job_id).model_copy(update=fields)
        return self.jobs[job_id]

    # ---- around jobs

    def queues(self) -> builtins.list[QueueInfo]:
        return [*self.all_queues.values()]

    def queue(self, name: str) -> QueueInfo:
        return self.all_queues.get(name) or a_queue(name, configured=False)

    def pause(self, queue: str) -> QueueInfo:
        return self._set(queue, paused=True)

    def resume_queue(self, queue: str) -> QueueInfo:
        return self._set(queue, paused=False)

    def _set(self, queue: str, *, paused: bool) -> QueueInfo:
        self.all_queues[queue] = self.queue(queue).model_copy(update={"paused": paused})
        return self.all_queues[queue]

    def cron_jobs(self) -> builtins.list[CronJobInfo]:
        return [*self.crons.values()]

    def cron_job(self, name: str) -> CronJobInfo:
        if name not in self.crons:
            raise CronJobNotFoundError(f"there is no cron job {name} in namespace default")
        return self.crons[name]

    def trigger(self, name: str) -> Submitted:
        return Submitted(id=f"{self.cron_job(name).name}-t1", created=True, phase="Queued")

    def backfill(self, name: str, start: str, end: str, **options: Any) -> CronJobInfo:
        self.backfills.append((name, start, end, options))
        return self.cron_job(name)

    def suspend_cron_job(self, name: str) -> CronJobInfo:
        return self._cron(name, suspended=True)

    def resume_cron_job(self, name: str) -> CronJobInfo:
        return self._cron(name, suspended=False)

    def _cron(self, name: str, **fields: Any) -> CronJobInfo:
        self.crons[name] = self.cron_job(name).model_copy(update=fields)
        return self.crons[name]

    def workers(self) -> builtins.list[WorkerInfo]:
        return self.all_workers

    # ---- arrays

    def submit_array(
        self, what: str | ArraySubmission, items: object = None, **options: Any
    ) -> SubmittedArray:
        assert isinstance(what, ArraySubmission)
        assert items is None
        assert not options
        name = what.name or f"array-{next(self._ids)}"
        known = name in self.all_arrays
        self.submitted_arrays.append(what)
        total = what.items.count or len(what.items.inline or ())
        made = an_array(name, type=what.type, queue=what.queue, total=total)
        phase = self.all_arrays.setdefault(name, made).phase
        return SubmittedArray(name=name, created=not known, phase=phase)

    def array(self, name: str) -> ArrayInfo:
        coming = self.array_script.get(name)
        if coming:
            then = coming.pop(0)
            if isinstance(then, BaseException):
                raise then
            self.all_arrays[name] = then
        if name not in self.all_arrays:
            raise ArrayNotFoundError(f"there is no array {name} in namespace default")
        return self.all_arrays[name]

    def arrays(
        self, selection: ArraySelection = ALL_ARRAYS, *, page_size: int = PAGE_SIZE
    ) -> Iterator[ArrayInfo]:
        assert page_size == PAGE_SIZE
        self.asked.append(("arrays", selection))
        return (one for one in self.all_arrays.values() if matches_array(one, selection))

    def failed_items(self, name: str) -> FailedItems:
        array = self.array(name)
        status = array.status or AsyncArrayStatus()
        return FailedItems(
            failed=array.failed,
            items=status.failed_items or "",
            unlisted=status.failed_unlisted or 0,
            errors=status.errors or [],
        )

    def item_results(self, name: str) -> Iterator[ItemResult]:
        return iter(item_results_of(self.array(name), None))

    def cancel_array(self, name: str) -> ArrayInfo:
        if self.array(name).phase is ArrayPhase.SUCCEEDED:
            raise NotCancellableError(f"array {name} has succeeded")
        return self._array("cancel", name, cancelling=not self.array(name).finished)

    def suspend_array(self, name: str) -> ArrayInfo:
        return self._array("suspend", name, suspended=True)

    def resume_array(self, name: str) -> ArrayInfo:
        return self._array("resume", name, suspended=False)

    def redrive_array(self, name: str) -> ArrayInfo:
        phase = self.array(name).phase
        if phase is not ArrayPhase.FAILED:
            raise JobStateError(f"array {name} is {phase}; only a failed array can be redriven")
        return self._array("redrive", name, redriving=True)

    def _array(self, deed: str, name: str, **fields: Any) -> ArrayInfo:
        self.all_arrays[name] = self.array(name).model_copy(update=fields)
        self.asked.append((deed, name))
        return self.all_arrays[name]

    # ---- what no command asks for

    def page(self, *_: Any, **__: Any) -> Page:
        raise AssertionError

    def poll(self, *_: Any, **__: Any) -> Iterator[Job]:
        raise AssertionError

    def wait(self, *_: Any, **__: Any) -> Job:
        raise AssertionError

    def wait_for_array(self, *_: Any, **__: Any) -> ArrayInfo:
        raise AssertionError
