"""Jobs as REST shows them, for tests of what is made of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.rest.jobs import HistoryEvent, Job, JobSummary

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def before(seconds: float) -> str:
    """Return the time so many seconds before NOW."""
    return format_timestamp(NOW - timedelta(seconds=seconds))


def summary(name: str = "report-1", phase: Phase = Phase.QUEUED, **more: Any) -> JobSummary:
    """Return a job in a list."""
    return JobSummary(**_common(name, phase, more))


def whole(name: str = "report-1", phase: Phase = Phase.QUEUED, **more: Any) -> Job:
    """Return a job with everything."""
    created = HistoryEvent(time=before(100), phase="Created")
    return Job(**{"resource_version": "7", "history": [created], **_common(name, phase, more)})


def happened(
    seconds_ago: float, phase: Phase, ran: float | None = None, **more: Any
) -> HistoryEvent:
    """Return a change of phase; `ran` is how long the attempt that ended there had run."""
    start = None if ran is None else before(seconds_ago + ran)
    return HistoryEvent(time=before(seconds_ago), phase=phase.value, start_time=start, **more)


def _common(name: str, phase: Phase, more: dict[str, Any]) -> dict[str, Any]:
    basic = {"id": name, "uid": f"uid-{name}", "namespace": "ns", "type": "report", "queue": "mail"}
    return {**basic, "phase": phase, "created_at": before(100), "updated_at": before(10), **more}
