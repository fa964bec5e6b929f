"""Server-sent events of the gateway: decoded from bytes, and read as changes of one job or many."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from asyncjob.client.connection import Call
from asyncjob.client.rest.calls import GatewayCalls, api_path, job_path, read_model, to_params
from asyncjob.json_text import loads
from asyncjob.json_types import JsonObject, child, text
from asyncjob.line_splitter import LineSplitter
from asyncjob.rest.jobs import Job, JobSummary
from asyncjob.rest.listing import Selection

_TEXT_FIELDS: Final = frozenset({"event", "id"})


@dataclass(slots=True)
class EventStream:
    """Puts bytes together to events: `event`, `id` and `data`, which is JSON.

    Only line feeds and carriage returns end a line, whatever else Unicode holds for one. A field
    that nobody knows and data that is no JSON are left out; a comment is an event without a name.
    """

    ready: deque[JsonObject] = field(default_factory=deque)
    _lines: LineSplitter = field(default_factory=LineSplitter)
    _fields: dict[str, str] = field(default_factory=dict)
    _data: list[str] = field(default_factory=list)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; what they complete is `ready`."""
        for line in self._lines.feed(chunk):
            self._take(line.removesuffix(b"\r").decode(errors="replace"))

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            self._complete()
        elif not name:
            self.ready.append({"event": "", "data": None})
        elif name == "data":
            self._data.append(value)
        elif name in _TEXT_FIELDS:
            self._fields[name] = value

    def _complete(self) -> None:
        fields, data = self._fields, "\n".join(self._data)
        self._fields, self._data = {}, []
        if not data:
            return
        try:
            value = loads(data)
        except ValueError:
            return
        self.ready.append({"event": "message", **fields, "data": value})


EVENT_STREAM_TYPE = "text/event-stream"
ParamPairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RestJobSource:
    """A job behind a gateway, whose stream tells summaries of it."""

    gateway: GatewayCalls
    job_id: str
    params: ParamPairs

    async def get_job(self, timeout_seconds: float | None) -> Job:
        """Return the job as it is, asking once."""
        call = Call("GET", job_path(self.job_id), self.params, timeout_seconds=timeout_seconds)
        return await self.gateway.request_model(Job, call, patience=0.0)

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
    params: ParamPairs
    last_event_id: str = field(default="")

    async def stream_request(self) -> Call:
        """Return the stream from where the last one ended; at first, from now."""
        headers = (("Last-Event-ID", self.last_event_id),) if self.last_event_id else ()
        params = (*to_params(self.selection), *self.params)
        return Call("GET", api_path("events"), params, accept=EVENT_STREAM_TYPE, headers=headers)

    def read_event(self, event: JsonObject) -> JobSummary | None:
        """Return the job that has changed."""
        self.last_event_id = text(event, "id") or self.last_event_id
        if text(event, "event") != "job":
            return None
        return read_model(JobSummary, child(event, "data"))
