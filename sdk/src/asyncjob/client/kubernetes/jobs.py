"""Reads one job, lists jobs newest first, and opens watches of one job or many.

The API server sorts by name only, so all jobs that match are read, in pages of bounded size,
whatever the limit; of each only its summary is kept. A gateway has a cache and is quicker.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from asyncjob.client import errors
from asyncjob.client.errors import InvalidRequestError, JobNotFoundError
from asyncjob.client.kubernetes.calls import Params, jobs_path, list_all, translate_errors
from asyncjob.client.options import check_name
from asyncjob.client.steps import Call, Steps, call_with_retries
from asyncjob.errors import ForbiddenError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.lifecycle.derived_jobs import cron_label_value
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.names import CRON_JOB_LABEL, PARENT_LABEL, job_path, queue_path
from asyncjob.rest.job_reading import job_of, summary_of
from asyncjob.rest.jobs import Job, JobSummary, Page
from asyncjob.rest.listing import (
    BadCursorError,
    ListPosition,
    Selection,
    decode_cursor,
    encode_cursor,
    matches_selection,
    position_of,
    selected_phases,
)


def job_path_of(namespace: str, job_id: str) -> str:
    """Return the path of a job; raises JobNotFoundError for what cannot be a job's id."""
    return job_path(namespace, check_name(job_id, errors.JobNotFoundError))


def get_job(namespace: str, job_id: str, patience: float) -> Steps[Job]:
    """Return the job; of one that waits, with what it waits for by its queue."""
    job = (
        yield from call_with_retries(Call("GET", job_path_of(namespace, job_id)), patience)
    ).object
    return job_of(job, (yield from _queue_of(namespace, job, patience)))


def _queue_of(namespace: str, job: JsonObject, patience: float) -> Steps[JsonObject | None]:
    """Return the AsyncQueue of a job that waits; without the right to read it, nothing."""
    phase = Phase(text(child(job, "status"), "phase", Phase.QUEUED))
    if phase in FINISHED_PHASES or phase is Phase.RUNNING:
        return None
    call = Call("GET", queue_path(namespace, text(child(job, "spec"), "queue", "default")))
    try:
        return (yield from call_with_retries(call, patience)).object
    except (ObjectNotFoundError, ForbiddenError):
        return None


WallClock = Callable[[], datetime]


def list_jobs(
    namespace: str | None, selection: Selection, now: datetime, patience: float
) -> Steps[list[JobSummary]]:
    """Return all jobs that match, newest first; namespace None: of all."""
    found = yield from list_all(
        jobs_path(namespace),
        selector_params(selection),
        patience,
        _summary_if_matching(selection, now),
    )
    return sorted(found, key=position_of, reverse=True)


def list_page(
    namespace: str,
    selection: Selection,
    now: datetime,
    patience: float,
    *,
    cursor: str | None,
    limit: int,
) -> Steps[Page]:
    """Return the jobs that match and come after the cursor; raises InvalidRequestError."""
    after = _decode_position(cursor)
    all_ = yield from list_all(
        jobs_path(namespace),
        selector_params(selection),
        patience,
        _summary_if_matching(selection, now),
    )
    rest = [job for job in all_ if after is None or position_of(job) < after]
    shown = heapq.nlargest(limit, rest, key=position_of)
    more = len(rest) > len(shown)
    return Page(
        items=shown, next=encode_cursor(position_of(shown[-1])) if more else None, total=len(all_)
    )


def selector_params(selection: Selection) -> Params:
    """Return what of a selection the API server itself can look at."""
    params = (
        ("fieldSelector", _field_selector(selection)),
        ("labelSelector", _label_selector(selection)),
    )
    return tuple((name, value) for name, value in params if value)


def _field_selector(selection: Selection) -> str:
    left_out = [] if selection.phase is None else sorted(set(Phase) - selected_phases(selection))
    wanted = [("spec.type", selection.type), ("spec.queue", selection.queue)]
    terms = [f"{field}={value}" for field, value in wanted if value is not None]
    return ",".join([*terms, *(f"status.phase!={phase.value}" for phase in left_out)])


def _label_selector(selection: Selection) -> str:
    terms = [selection.label] if selection.label else []
    if selection.cron_job is not None:
        terms.append(f"{CRON_JOB_LABEL}={cron_label_value(selection.cron_job)}")
    if selection.parent is not None:
        terms.append(PARENT_LABEL)
    return ",".join(terms)


def _summary_if_matching(
    selection: Selection, now: datetime
) -> Callable[[JsonObject], JobSummary | None]:
    def keep(obj: JsonObject) -> JobSummary | None:
        job = summary_of(obj)
        return job if matches_selection(job, obj, selection, now) else None

    return keep


def _decode_position(cursor: str | None) -> ListPosition | None:
    try:
        return None if cursor is None else decode_cursor(cursor)
    except BadCursorError as error:
        raise InvalidRequestError(f"cursor: {error}") from error


def _event_version(event: JsonObject) -> str:
    return text(child(child(event, "object"), "metadata"), "resourceVersion")


@dataclass(frozen=True, slots=True)
class KubernetesJobSource:
    """A job on Kubernetes."""

    namespace: str
    job_id: str

    def get_job(self) -> Steps[Job]:
        """Return the job as it is."""
        return translate_errors(get_job(self.namespace, self.job_id, 0.0), self._not_found)

    def stream_request(self, last: Job) -> Call:
        """Return a watch of the one job."""
        params = (
            ("fieldSelector", f"metadata.name={self.job_id}"),
            ("resourceVersion", last.resource_version),
        )
        return Call("GET", jobs_path(self.namespace), params)

    def read_event(self, event: JsonObject, last: Job) -> Job | None:  # noqa: ARG002  # it is whole
        """Return the job; that it was deleted is confirmed by a look."""
        return None if text(event, "type") == "DELETED" else job_of(child(event, "object"))

    def is_idle(self, event: JsonObject) -> bool:
        """Return whether it only shows that the watch is alive."""
        return text(event, "type") == "BOOKMARK"

    def _not_found(self, _: str) -> JobNotFoundError:
        return JobNotFoundError(f"there is no job {self.job_id}")


@dataclass(slots=True)
class KubernetesJobStream:
    """Jobs on Kubernetes that match; namespace None: of all."""

    namespace: str | None
    selection: Selection
    clock: Callable[[], datetime]
    version: str = ""

    def stream_request(self) -> Steps[Call]:
        """Return a watch from where the last one ended; at first, from now."""
        path = jobs_path(self.namespace)
        if not self.version:
            newest = yield Call("GET", path, (("limit", "1"),), accept=METADATA_LIST_TYPE)
            self.version = text(child(newest.object, "metadata"), "resourceVersion")
        version, self.version = self.version, ""  # it counts again once the watch says something
        return Call("GET", path, (*selector_params(self.selection), ("resourceVersion", version)))

    def read_event(self, event: JsonObject) -> JobSummary | None:
        """Return the job if it matches."""
        self.version = _event_version(event)
        if text(event, "type") in {"BOOKMARK", "DELETED"}:
            return None
        obj = child(event, "object")
        job = summary_of(obj)
        return job if matches_selection(job, obj, self.selection, self.clock()) else None
