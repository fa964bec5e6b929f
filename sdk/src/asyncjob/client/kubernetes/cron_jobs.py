"""Cron jobs: read, trigger, backfill, suspend."""

from asyncjob.client import errors
from asyncjob.client.kubernetes.calls import KubernetesCalls
from asyncjob.client.kubernetes.changes import (
    ControlCounter,
    DecideChange,
    apply_change,
    raise_counter,
    set_field,
)
from asyncjob.client.options import check_name
from asyncjob.json_types import JsonObject, child, flag, text
from asyncjob.lifecycle.derived_jobs import trigger_name
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, collection_path, cron_job_path
from asyncjob.rest.resources import BackfillAsk, CronJobInfo, cron_job_of
from asyncjob.rest.submission import Submitted


async def list_cron_jobs(api: KubernetesCalls, namespace: str | None) -> list[CronJobInfo]:
    """Return all cron jobs by name; namespace None: of all, one after the other."""
    found = await api.list_all(collection_path(namespace, CRON_JOBS), (), cron_job_of)
    return sorted(found, key=lambda one: (one.namespace, one.name))


async def get_cron_job(api: KubernetesCalls, namespace: str, name: str) -> CronJobInfo:
    """Return one cron job with spec and status."""
    return cron_job_of(await api.get(_path(namespace, name)), detailed=True)


async def trigger(api: KubernetesCalls, namespace: str, name: str) -> Submitted:
    """Ask for one run now; returns the job that it will be."""
    counter = ControlCounter("trigger", "triggers")
    await raise_counter(api, _path(namespace, name), counter)
    return Submitted(id=trigger_name(name, counter.number), created=True, phase=Phase.QUEUED)


async def backfill(
    api: KubernetesCalls, namespace: str, name: str, request: BackfillAsk
) -> CronJobInfo:
    """Ask for the runs of times gone by."""
    found = await apply_change(api, _path(namespace, name), _set_backfill(request))
    return cron_job_of(found, detailed=True)


def _set_backfill(request: BackfillAsk) -> DecideChange:
    wanted = request.spec_value.model_dump(mode="json", by_alias=True)

    def decide(cron_job: JsonObject) -> JsonObject | None:
        requested = child(child(cron_job, "spec"), "backfill")
        if requested == wanted:
            return None
        done = child(child(cron_job, "status"), "backfill")
        same = all(requested.get(key) == done.get(key) for key in ("from", "to"))
        if requested and not (same and flag(done, "completed")) and not request.replace:
            span = f"{text(requested, 'from')} to {text(requested, 'to')}"
            raise errors.JobStateError(
                f"an earlier backfill ({span}) is under way; wait for it, or have it replaced"
            )
        return {"backfill": wanted}

    return decide


async def set_suspended(
    api: KubernetesCalls, namespace: str, name: str, *, suspended: bool
) -> CronJobInfo:
    """Suspend a cron job or let it go on."""
    decide = set_field("suspend", suspended, default=False)
    return cron_job_of(await apply_change(api, _path(namespace, name), decide), detailed=True)


def _path(namespace: str, name: str) -> str:
    return cron_job_path(namespace, check_name(name, errors.CronJobNotFoundError))
