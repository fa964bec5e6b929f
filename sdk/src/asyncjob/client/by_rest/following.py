"""Streams of the gateway: of one job, and of many."""

from dataclasses import dataclass, field

from asyncjob.client.by_rest.calls import as_params, ask_for, at_job, path, read
from asyncjob.client.steps import Call, Pause, Steps
from asyncjob.json_types import JsonObject, child, text
from asyncjob.rest.job import Job, JobSummary
from asyncjob.rest.selection import Selection

EVENT_STREAM = "text/event-stream"
Params = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class OneJob:
    """A job behind a gateway, whose stream tells summaries of it."""

    job_id: str
    where: Params

    def look(self) -> Steps[Job]:
        """Return the job as it is."""
        return ask_for(Job, Call("GET", at_job(self.job_id), self.where), 0.0)

    def listen(self, seen: Job) -> Call:  # noqa: ARG002  # it begins with the job as it is
        """Return its stream."""
        return Call("GET", at_job(self.job_id, "events"), self.where, accept=EVENT_STREAM)

    def read(self, event: JsonObject, seen: Job) -> Job | None:
        """Return the job with what is new; how it ended takes another look."""
        if text(event, "event") != "job":
            return None
        summary = read(JobSummary, child(event, "data"))
        if summary.finished or summary.uid != seen.uid:
            return None
        return seen.model_copy(update={name: getattr(summary, name) for name in _SHARED})

    def is_idle(self, event: JsonObject) -> bool:
        """Return whether the event tells nothing of the job."""
        return text(event, "event") not in {"job", "deleted"}


_SHARED = frozenset(JobSummary.model_fields)


@dataclass(slots=True)
class ManyJobs:
    """Jobs behind a gateway that match."""

    selection: Selection
    where: Params
    last: str = field(default="")

    def ask(self) -> Steps[Call]:
        """Return the stream from where the last one ended; at first, from now."""
        yield Pause()
        headers = (("Last-Event-ID", self.last),) if self.last else ()
        params = (*as_params(self.selection), *self.where)
        return Call("GET", path("events"), params, accept=EVENT_STREAM, headers=headers)

    def read(self, event: JsonObject) -> JobSummary | None:
        """Return the job that has changed."""
        self.last = text(event, "id") or self.last
        if text(event, "event") != "job":
            return None
        return read(JobSummary, child(event, "data"))
