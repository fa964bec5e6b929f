"""Logs: structlog over the standard library, as text for people or JSON for machines.

Also what keeps logs readable: the job bound to each line, repeated messages held back, and
recovered jobs summed up in one line.
"""

import logging
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Final

import structlog

from asyncjob.json_types import JsonObject, child, opt_text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.tracing.context import trace_id_of


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


_LIBRARY_LEVELS = {
    "kopf.objects": logging.WARNING,
    "kopf": logging.INFO,
    "aiohttp.access": logging.WARNING,
}
"""kopf logs a line per event; that is its own business."""


def configure_logs(log_format: LogFormat, level: str) -> None:
    """Set up logging of the whole process, foreign libraries included."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.processors.format_exc_info],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _renderer(log_format),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, floor in _LIBRARY_LEVELS.items():
        logging.getLogger(name).setLevel(max(floor, root.level))


def _renderer(log_format: LogFormat) -> structlog.typing.Processor:
    if log_format is LogFormat.JSON:
        return structlog.processors.JSONRenderer()
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())


def job_log_context(job: JobView, obj: JsonObject) -> AbstractContextManager[None]:
    """Bind them while inside; the trace is read off the object, views do not keep it."""
    trace_id = trace_id_of(opt_text(child(obj, "spec"), "traceparent"))
    more = {"trace_id": trace_id} if trace_id else {}
    return structlog.contextvars.bound_contextvars(job=job.key, attempt=job.attempt, **more)


def job_name_log_context(namespace: str, name: str) -> AbstractContextManager[None]:
    """Bind the name alone while inside, of a job that could not be read."""
    return structlog.contextvars.bound_contextvars(job=f"{namespace}/{name}")


THROTTLE_SECONDS: Final = 60.0


class LogThrottle:
    """Lets each message through once a minute at most."""

    def __init__(self, clock: Callable[[], float], min_interval: float = THROTTLE_SECONDS) -> None:
        self._clock = clock
        self._min_interval = min_interval
        self._logged_at: dict[str, float] = {}

    def allow(self, message: str) -> bool:
        """Return whether the message may be said now; whoever asks says it."""
        now = self._clock()
        self._logged_at = {
            text: at for text, at in self._logged_at.items() if now < at + self._min_interval
        }
        if message in self._logged_at:
            return False
        self._logged_at[message] = now
        return True


log = structlog.get_logger()


class RecoverySummary:
    """Jobs recovered since the last report, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        """Count one."""
        self._counts[reason] += 1

    def report(self) -> None:
        """Log what was counted, if anything."""
        if self._counts:
            log.info("jobs recovered", count=self._counts.total(), reasons=dict(self._counts))
            self._counts.clear()
