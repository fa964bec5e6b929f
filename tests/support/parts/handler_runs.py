"""Handlers run without a worker: their payload read as a worker reads it, their reports noted."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from asyncjob import JobContext, WorkerApp
from asyncjob.app import JobInfo
from asyncjob.json_types import Json


class Reports:
    """What a handler has reported, in order."""

    def __init__(self) -> None:
        self.percents: list[int] = []
        self.checkpoints: list[Json] = []
        self.after_progress: Callable[[int], None] = lambda _percent: None

    def progress(self, percent: int, _message: str | None) -> None:
        self.percents.append(percent)
        self.after_progress(percent)

    def checkpoint(self, value: Json) -> None:
        self.checkpoints.append(value)


def context(reports: Reports | None = None, **facts: Any) -> JobContext:
    """Return the context of a job in its first attempt."""
    known: dict[str, Any] = {
        "namespace": "default",
        "name": "job",
        "uid": "0a1b-uid",
        "type": "type",
        "queue": "default",
        "attempt": 1,
        **facts,
    }
    return JobContext(JobInfo(**known), reports or Reports(), remaining=lambda: 60.0)


async def run_handler(
    app: WorkerApp, type_: str, payload: Mapping[str, Any], job: JobContext | None = None
) -> Any:
    """Return what the handler returns, or raise what it raises; a sync one blocks."""
    handler = app.handlers[type_]
    result = handler.function(job or context(), handler.read_payload(dict(payload)))
    return await result if inspect.isawaitable(result) else result
