"""The worker's own record of its handlers, written only with `--handler-record`.

When each handler began and ended, for which claim, and which checkpoints it gave, one JSON line
each: `asyncjob audit check` compares it with what the API server has. A checkpoint is recorded
before the job has it, so that a worker that is killed has left the line.
"""

import os
from collections.abc import Callable

import orjson
import structlog

from asyncjob.app.context import ReportSink
from asyncjob.audit.recorded_object import value_digest
from asyncjob.errors import ConfigError
from asyncjob.json_types import Json
from asyncjob_worker.clock import now_text
from asyncjob_worker.isolation.executor import HandlerFuture
from asyncjob_worker.leases.held_job import HeldJob

log = structlog.get_logger()


class HandlerRecorder:
    """Appends lines to a file, from any thread. A disk that is full ends the record, not jobs."""

    def __init__(self, path: str) -> None:
        """Open the file; raises ConfigError."""
        try:
            self._file: int | None = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(f"--handler-record {path}: {error.strerror or error}") from error

    def started(self, held: HeldJob, future: HandlerFuture) -> None:
        """Record that a handler begins, and its end once it has come."""
        self._write("started", held)
        future.add_done_callback(lambda _: self._write("ended", held))

    def abandoned(self, held: HeldJob) -> None:
        """Record that a handler has ignored its stop, and may go on beside the next."""
        self._write("abandoned", held)

    def report_sink(self, held: HeldJob) -> ReportSink:
        """Return what takes the handler's reports for the job, and records the checkpoints."""
        return _RecordedReports(held, lambda value: self._write("checkpoint", held, value))

    def _write(self, event: str, held: HeldJob, checkpoint: Json = None) -> None:
        job, lease = held.job, held.job.lease
        line: dict[str, Json] = {
            "event": event,
            "time": now_text(),
            "namespace": job.namespace,
            "name": job.name,
            "uid": job.uid,
            "attempt": job.attempt,
            "claim": held.claim,
            "worker": lease.worker if lease else "",
        }
        if event == "checkpoint":
            line["digest"] = value_digest(checkpoint)
        file = self._file
        if file is None:
            return
        try:
            os.write(file, orjson.dumps(line) + b"\n")
        except OSError as error:
            self._file = None
            log.warning("handler record ended", error=str(error))


class _RecordedReports:
    """Records each checkpoint before the job has it."""

    def __init__(self, held: HeldJob, on_checkpoint: Callable[[Json], None]) -> None:
        self._held = held
        self._on_checkpoint = on_checkpoint

    def progress(self, percent: int, message: str | None) -> None:
        self._held.progress(percent, message)

    def checkpoint(self, value: Json) -> None:
        self._on_checkpoint(value)
        self._held.checkpoint(value)
