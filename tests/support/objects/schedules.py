"""Builders of cron jobs, their jobs and snapshots for tests of what cron jobs decide."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.derived_jobs import run_name
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.decide import decide_cron_job
from asyncjob_operator.core.schedules.jobs import ScheduledJob
from asyncjob_operator.core.schedules.snapshot import (
    CronJobDecision,
    CronJobSnapshot,
    WriteStatus,
    schedule_or_problem,
)
from asyncjob_operator.core.schedules.view import format_epoch, read_cron_job

ME, OTHER = "operator-a", "operator-b"
CREATED = "2026-11-01T00:00:00Z"


def seconds(text: str) -> float:
    """Return the epoch seconds of `2026-11-21T03:00`, meant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def moment(text: str, monotonic: float = 1000.0) -> Now:
    """Return the moment at which the wall clock shows this, in UTC."""
    return Now(monotonic, seconds(text))


def raw_cron(
    name: str = "nightly", *, status: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """Return an AsyncCronJob as the API server would; known as it is unless a status says so."""
    whole = {
        "schedule": "0 * * * *",
        "timeZone": "UTC",
        "jobTemplate": {"spec": {"type": "test", "queue": "default", "priority": 0}},
        **spec,
    }
    observed = {
        "schedule": whole["schedule"],
        "timeZone": whole["timeZone"],
        "suspend": whole.get("suspend", False),
    }
    return {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncCronJob",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "10",
            "creationTimestamp": CREATED,
        },
        "spec": whole,
        "status": {"observed": observed, "reason": "Scheduled"} if status is None else status,
    }


def child(
    name: str, phase: Phase = Phase.RUNNING, *, age: float = 0.0, **changes: Any
) -> ScheduledJob:
    """Return a run of a cron job; a finished one has ended so many seconds ago."""
    finished = phase in FINISHED_PHASES
    one = ScheduledJob(
        namespace="ns",
        name=name,
        uid=f"uid-{name}",
        version="1",
        phase=phase,
        created=CREATED,
        finished=finished,
        completed_at=seconds("2026-11-20T00:00") - age if finished else 0.0,
        cancel_requested=False,
        has_open_request=False,
        backfill=False,
        deleting=False,
    )
    return replace(one, **changes)


def snapshot(obj: JsonObject, *children: ScheduledJob, **changes: Any) -> CronJobSnapshot:
    """Return what a decision looks at; a reservation of `ME` was sent just now."""
    cron = read_cron_job(obj)
    whole = CronJobSnapshot(
        cron=cron,
        schedule=schedule_or_problem(cron),
        jobs=children,
        identity=ME,
        reserved_at=1000.0 if cron.reserved and cron.reserved.by == ME else None,
        reservation_observed_at=1000.0,
        created=frozenset(),
    )
    return replace(whole, **changes)


def decided(obj: JsonObject, now: str, *children: ScheduledJob, **changes: Any) -> CronJobDecision:
    """Return the decision at a time of the wall clock."""
    return decide_cron_job(snapshot(obj, *children, **changes), moment(now))


def written(obj: JsonObject, now: str, *children: ScheduledJob, **changes: Any) -> dict[str, Any]:
    """Return the fields that the decision writes."""
    effect = decided(obj, now, *children, **changes).effect
    assert isinstance(effect, WriteStatus), effect
    return dict(effect.fields)


def reserved_names(fields: dict[str, Any]) -> list[str]:
    """Return the names of the runs that a write reserves."""
    return [run["name"] for run in (fields.get("reserved") or {}).get("runs", [])]


def settled(time: str, **status: Any) -> dict[str, Any]:
    """Return a status in which all is settled up to a time, under the builder's cron job."""
    observed = {"schedule": "0 * * * *", "timeZone": "UTC", "suspend": False}
    return {
        "settledTime": format_epoch(seconds(time)),
        "observed": observed,
        "reason": "Scheduled",
        **status,
    }


def utc(text: str) -> int:
    """Return the epoch seconds of a time with an offset."""
    return int(parse_timestamp(text).timestamp())


def name_at(time: str) -> str:
    """Return the name of the run of that time."""
    return run_name("nightly", int(seconds(time)))


def reservation(*names: str, by: str = ME, **run: Any) -> dict[str, Any]:
    """Return the status with these runs reserved."""
    runs = [{"name": name, "time": "2026-11-20T03:00:00.000Z", **run} for name in names]
    return {"claims": 1, "reserved": {"by": by, "runs": runs}}


def shown(following: str) -> dict[str, Any]:
    """Return the status fields of a cron job whose next time is shown already."""
    return {"activeCount": 0, "nextScheduleTime": format_epoch(seconds(following))}
