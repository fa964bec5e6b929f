"""What a handler knows of its job and can tell about it."""

import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from asyncjob.free_json import MAX_BYTES, clean, normalize
from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.timestamps import from_text


@dataclass(frozen=True, slots=True)
class JobInfo:
    """The facts of one attempt; they do not change while it runs."""

    namespace: str
    name: str
    uid: str
    type: str
    queue: str
    attempt: int
    retries: int = 0
    max_retries: int = 0
    last_checkpoint: Json = None
    request: JsonObject = field(default_factory=dict)
    traceparent: str | None = None
    scheduled_time: str | None = None


class ReportSink(Protocol):
    """Takes what a handler reports; called from the handler's thread."""

    def progress(self, percent: int, message: str | None) -> None:
        """Note how far the handler is; stored soon, the newest wins."""

    def checkpoint(self, value: Json) -> None:
        """Note where to resume; stored soon, the newest wins."""


class Noted:
    """What reporting returns: nothing to wait for, but `await` is allowed."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        """Return at once."""
        yield from ()


_NOTED = Noted()


class JobContext:
    """The job, as its handler sees it. In a sync handler the calls are plain, without `await`."""

    def __init__(
        self,
        info: JobInfo,
        sink: ReportSink,
        *,
        remaining: Callable[[], float],
        stopping: threading.Event | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.info = info
        self._sink = sink
        self._remaining = remaining
        self._stopping = stopping or threading.Event()
        self._max_bytes = max_bytes

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.info.name

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1; it never shrinks."""
        return self.info.attempt

    @property
    def fencing_token(self) -> str:
        """`uid/attempt`: whatever accepts it only ascending is safe from late writers."""
        return f"{self.info.uid}/{self.info.attempt}"

    @property
    def last_checkpoint(self) -> Json:
        """What an earlier attempt saved last; None at first."""
        return self.info.last_checkpoint

    @property
    def request(self) -> Mapping[str, Json]:
        """Headers, route and query parameters of the request that submitted the job."""
        return self.info.request

    @property
    def scheduled_time(self) -> datetime | None:
        """The time that a job of a schedule is for, in UTC; None for any other job.

        A late or backfilled run has its own time here, not that of its start.
        """
        said = self.info.scheduled_time
        return from_text(said) if said else None

    @property
    def cancelled(self) -> bool:
        """Whether the attempt is to stop: cancelled, timed out, or its worker is shutting down.

        An async handler is also interrupted by CancelledError; a sync one has to look.
        """
        return self._stopping.is_set()

    @property
    def seconds_left(self) -> float:
        """Seconds until the attempt's time limit."""
        return self._remaining()

    def progress(self, percent: float, message: str | None = None) -> Noted:
        """Report how far the work is, 0 to 100, and what it is doing."""
        text = clean(message) if message else None
        self._sink.progress(min(100, max(0, int(percent))), text)
        return _NOTED

    def checkpoint(self, value: object) -> Noted:
        """Save where to resume: any JSON, replaced whole; stored within about a second.

        Raises FreeJsonError if the value is not JSON or too large; a handler that lets it through
        ends as a dead letter, because no retry would help.
        """
        checked = normalize(value, what="the checkpoint", max_bytes=self._max_bytes)
        self._sink.checkpoint(checked)
        return _NOTED

    def stop(self) -> None:
        """Tell the handler to stop; called by whoever runs it."""
        self._stopping.set()
