"""What keeps the operator's logs readable.

Lines about a job name it, libraries are kept quiet, repeated messages are throttled, and recovered
jobs are summed up in one line.
"""

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

import structlog

from asyncjob.json_types import JsonObject, child, opt_text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.logs import LogFormat, configure_logging
from asyncjob.tracing.context import trace_id_of

log = structlog.get_logger()


_LIBRARY_LEVELS = {
    "kopf.objects": logging.WARNING,
    "kopf": logging.INFO,
    "aiohttp.access": logging.WARNING,
}
"""Lowest level of each library: kopf logs a line per event, aiohttp one per request."""

THROTTLE_SECONDS: Final = 60.0
"""A minute, as between two reports of what the operator waits for (`RECHECK_SECONDS`): what goes on
stays in sight, and a thousand jobs with one fault do not fill the log."""


def configure_operator_logs(log_format: LogFormat, level: str) -> None:
    """Set up logging of the whole process, libraries included; `level` is a level's name."""
    lowest = logging.getLevelNamesMapping()[level.upper()]
    configure_logging(log_format, lowest, library_levels=_LIBRARY_LEVELS)


def job_log_context(job: JobView, obj: JsonObject) -> AbstractContextManager[None]:
    """Bind job, attempt and trace to log lines inside; views do not keep the trace, `obj` does."""
    trace_id = trace_id_of(opt_text(child(obj, "spec"), "traceparent"))
    more = {"trace_id": trace_id} if trace_id else {}
    return structlog.contextvars.bound_contextvars(job=job.key, attempt=job.attempt, **more)


def job_name_log_context(namespace: str, name: str) -> AbstractContextManager[None]:
    """Bind the name of a job that could not be read to log lines inside."""
    return structlog.contextvars.bound_contextvars(job=f"{namespace}/{name}")


class LogThrottle:
    """Allows each message once per `min_interval` seconds."""

    def __init__(self, clock: Callable[[], float], min_interval: float = THROTTLE_SECONDS) -> None:
        self._clock = clock
        self._min_interval = min_interval
        self._logged_at: dict[str, float] = {}

    def allow(self, message: str) -> bool:
        """Return whether to log the message now; if so, it counts as logged."""
        now = self._clock()
        self._logged_at = {
            logged: at for logged, at in self._logged_at.items() if now < at + self._min_interval
        }
        if message in self._logged_at:
            return False
        self._logged_at[message] = now
        return True


class RecoverySummary:
    """Counts recovered jobs since the last report, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        """Count a recovered job."""
        self._counts[reason] += 1

    def report(self) -> None:
        """Log the counts, if there are any, and reset them."""
        if self._counts:
            log.info("jobs recovered", count=self._counts.total(), reasons=dict(self._counts))
            self._counts.clear()
