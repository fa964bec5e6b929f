"""Watches of one job, and of many."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from asyncjob.client.errors import JobNotFoundError
from asyncjob.client.on_kubernetes.calls import jobs_path, translate_errors
from asyncjob.client.on_kubernetes.jobs import get_job
from asyncjob.client.on_kubernetes.listing import selector_params
from asyncjob.client.steps import Call, Steps
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.rest.choosing import matches_selection
from asyncjob.rest.job import Job, JobSummary
from asyncjob.rest.reading import job_of, summary_of
from asyncjob.rest.selection import Selection


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
