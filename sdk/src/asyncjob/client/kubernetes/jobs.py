"""Reads one job, lists jobs newest first, and opens watches of one job or many.

The API server sorts by name only, so all jobs that match are read, in pages of bounded size,
whatever the limit; of each only its summary is kept. A gateway has a cache and is quicker.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from asyncjob.client import errors
from asyncjob.client.connection import Call
from asyncjob.client.errors import InvalidRequestError, JobNotFoundError
from asyncjob.client.kubernetes.calls import (
    KubernetesCalls,
    ParamPairs,
    jobs_path,
    translate_errors,
)
from asyncjob.client.options import check_name
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


KnownQueue = Callable[[str], JsonObject | None]
"""The AsyncQueue of this name, where queues are known without asking."""


async def get_job(
    api: KubernetesCalls, namespace: str, job_id: str, known_queue: KnownQueue | None = None
) -> Job:
    """Return the job; of one that waits, with what it waits for by its queue.

    With `known_queue` nothing is waited for once the job is there. Who reads for many callers would
    otherwise hold each one's job, which takes ten times its bytes, until the queue has come.
    """
    job = await api.get(job_path_of(namespace, job_id))
    queue = _queue_of_waiting(job)
    if queue is None:
        return job_of(job)
    return job_of(
        job, known_queue(queue) if known_queue else await _read_queue(api, namespace, queue)
    )


def _queue_of_waiting(job: JsonObject) -> str | None:
    """Return the name of the queue of a job that waits, None for any other job."""
    phase = Phase(text(child(job, "status"), "phase", Phase.QUEUED))
    if phase in FINISHED_PHASES or phase is Phase.RUNNING:
        return None
    return text(child(job, "spec"), "queue", "default")


async def _read_queue(api: KubernetesCalls, namespace: str, name: str) -> JsonObject | None:
    """Return the AsyncQueue; without the right to read it, nothing."""
    try:
        return await api.get(queue_path(namespace, name))
    except (ObjectNotFoundError, ForbiddenError):
        return None


async def list_jobs(
    api: KubernetesCalls, namespace: str | None, selection: Selection, now: datetime
) -> list[JobSummary]:
    """Return all jobs that match, newest first; namespace None: of all."""
    found = await _all_matching(api, namespace, selection, now)
    return sorted(found, key=position_of, reverse=True)


async def list_page(
    api: KubernetesCalls,
    namespace: str,
    selection: Selection,
    now: datetime,
    *,
    cursor: str | None,
    limit: int,
) -> Page:
    """Return the jobs that match and come after the cursor; raises InvalidRequestError."""
    after = _decode_position(cursor)
    all_ = await _all_matching(api, namespace, selection, now)
    rest = [job for job in all_ if after is None or position_of(job) < after]
    shown = heapq.nlargest(limit, rest, key=position_of)
    more = len(rest) > len(shown)
    return Page(
        items=shown, next=encode_cursor(position_of(shown[-1])) if more else None, total=len(all_)
    )


async def _all_matching(
    api: KubernetesCalls, namespace: str | None, selection: Selection, now: datetime
) -> list[JobSummary]:
    return await api.list_all(
        jobs_path(namespace), selector_params(selection), _summary_if_matching(selection, now)
    )


def selector_params(selection: Selection) -> ParamPairs:
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

    api: KubernetesCalls
    namespace: str
    job_id: str

    async def get_job(self, timeout_seconds: float | None) -> Job:
        """Return the job as it is, asking once."""
        once = replace(self.api, patience=0.0, timeout_seconds=timeout_seconds)
        with translate_errors(self._not_found):
            return await get_job(once, self.namespace, self.job_id)

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

    api: KubernetesCalls
    namespace: str | None
    selection: Selection
    clock: Callable[[], datetime]
    version: str = ""

    async def stream_request(self) -> Call:
        """Return a watch from where the last one ended; at first, from now."""
        path = jobs_path(self.namespace)
        if not self.version:
            newest = await self.api.send_once(
                Call("GET", path, (("limit", "1"),), accept=METADATA_LIST_TYPE)
            )
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
