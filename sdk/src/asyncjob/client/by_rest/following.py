"""Streams of the gateway: of one job, and of many."""

from dataclasses import dataclass, field

from asyncjob.client.by_rest.calls import api_path, job_path, read_model, request_model, to_params
from asyncjob.client.steps import Call, Pause, Steps
from asyncjob.json_types import JsonObject, child, text
from asyncjob.rest.job import Job, JobSummary
from asyncjob.rest.selection import Selection

EVENT_STREAM_TYPE = "text/event-stream"
Params = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RestJobSource:
    """A job behind a gateway, whose stream tells summaries of it."""

    job_id: str
    params: Params

    def get_job(self) -> Steps[Job]:
        """Return the job as it is."""
        return request_model(Job, Call("GET", job_path(self.job_id), self.params), 0.0)

    def stream_request(self, last: Job) -> Call:  # noqa: ARG002  # it begins with the job as it is
        """Return its stream."""
        return Call("GET", job_path(self.job_id, "events"), self.params, accept=EVENT_STREAM_TYPE)

    def read_event(self, event: JsonObject, last: Job) -> Job | None:
        """Return the job with what is new; how it ended takes another look."""
        if text(event, "event") != "job":
            return None
        summary = read_model(JobSummary, child(event, "data"))
        if summary.finished or summary.uid != last.uid:
            return None
        return last.model_copy(update={name: getattr(summary, name) for name in _SUMMARY_FIELDS})

    def is_idle(self, event: JsonObject) -> bool:
        """Return whether the event tells nothing of the job."""
        return text(event, "event") not in {"job", "deleted"}


_SUMMARY_FIELDS = frozenset(JobSummary.model_fields)


@dataclass(slots=True)
class RestJobStream:
    """Jobs behind a gateway that match."""

    selection: Selection
    params: Params
    last_event_id: str = field(default="")

    def stream_request(self) -> Steps[Call]:
        """Return the stream from where the last one ended; at first, from now."""
        yield Pause()
        headers = (("Last-Event-ID", self.last_event_id),) if self.last_event_id else ()
        params = (*to_params(self.selection), *self.params)
        return Call("GET", api_path("events"), params, accept=EVENT_STREAM_TYPE, headers=headers)

    def read_event(self, event: JsonObject) -> JobSummary | None:
        """Return the job that has changed."""
        self.last_event_id = text(event, "id") or self.last_event_id
        if text(event, "event") != "job":
            return None
        return read_model(JobSummary, child(event, "data"))
