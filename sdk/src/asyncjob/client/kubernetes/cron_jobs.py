"""Cron jobs: read, trigger, backfill, suspend."""

from asyncjob.client import errors
from asyncjob.client.kubernetes.calls import list_all
from asyncjob.client.kubernetes.changes import (
    ControlCounter,
    DecideChange,
    apply_change,
    raise_counter,
    set_field,
)
from asyncjob.client.options import check_name
from asyncjob.client.steps import Call, Steps, call_with_retries
from asyncjob.json_types import JsonObject, child, flag, text
from asyncjob.lifecycle.derived_jobs import trigger_name
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, collection_path, cron_job_path
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, cron_job_of
from asyncjob.rest.submission import Submitted


def list_cron_jobs(namespace: str | None, patience: float) -> Steps[list[CronJobInfo]]:
    """Return all schedules by name; namespace None: of all, one after the other."""
    found = yield from list_all(collection_path(namespace, CRON_JOBS), (), patience, cron_job_of)
    return sorted(found, key=lambda one: (one.namespace, one.name))


def get_cron_job(namespace: str, name: str, patience: float) -> Steps[CronJobInfo]:
    """Return one schedule with spec and status."""
    found = (yield from call_with_retries(Call("GET", _path(namespace, name)), patience)).object
    return cron_job_of(found, detailed=True)


def trigger(namespace: str, name: str, patience: float) -> Steps[Submitted]:
    """Ask for one run now; returns the job that it will be."""
    wish = ControlCounter("trigger", "triggers")
    yield from raise_counter(_path(namespace, name), wish, patience)
    return Submitted(id=trigger_name(name, wish.number), created=True, phase=Phase.QUEUED)


def backfill(
    namespace: str, name: str, request: BackfillAsk, patience: float
) -> Steps[CronJobInfo]:
    """Ask for the runs of times gone by."""
    found = yield from apply_change(_path(namespace, name), _set_backfill(request), patience)
    return cron_job_of(found, detailed=True)


def _set_backfill(request: BackfillAsk) -> DecideChange:
    wanted = request.spec_value.model_dump(mode="json", by_alias=True)

    def decide(cron_job: JsonObject) -> JsonObject | None:
        asked = child(child(cron_job, "spec"), "backfill")
        if asked == wanted:
            return None
        done = child(child(cron_job, "status"), "backfill")
        same = all(asked.get(key) == done.get(key) for key in ("from", "to"))
        if asked and not (same and flag(done, "completed")) and not request.replace:
            span = f"{text(asked, 'from')} to {text(asked, 'to')}"
            raise errors.JobStateError(
                f"an earlier backfill ({span}) is under way; wait for it, or have it replaced"
            )
        return {"backfill": wanted}

    return decide


def set_suspended(
    namespace: str, name: str, patience: float, *, suspended: bool
) -> Steps[CronJobInfo]:
    """Suspend a schedule or let it go on."""
    decide = set_field("suspend", suspended, default=False)
    found = yield from apply_change(_path(namespace, name), decide, patience)
    return cron_job_of(found, detailed=True)


def _path(namespace: str, name: str) -> str:
    return cron_job_path(namespace, check_name(name, errors.CronJobNotFoundError))
