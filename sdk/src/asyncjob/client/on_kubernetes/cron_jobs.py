"""Schedules: reading, triggering, backfilling, suspending."""

from asyncjob.client import errors
from asyncjob.client.ids import checked
from asyncjob.client.on_kubernetes.calls import read_all
from asyncjob.client.on_kubernetes.wishes import Decide, Numbered, one_more, setting, wished
from asyncjob.client.steps import Call, Steps, patiently
from asyncjob.json_types import JsonObject, child, flag, text
from asyncjob.lifecycle.derived_names import trigger_name
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, collection, cron_job_path
from asyncjob.rest.submission import Submitted
from asyncjob.rest.surroundings import BackfillAsk, CronJobInfo
from asyncjob.rest.surroundings_reading import cron_job_of


def cron_jobs(namespace: str | None, patience: float) -> Steps[list[CronJobInfo]]:
    """Return all schedules by name; namespace None: of all, one after the other."""
    found = yield from read_all(collection(namespace, CRON_JOBS), (), patience, cron_job_of)
    return sorted(found, key=lambda one: (one.namespace, one.name))


def cron_job(namespace: str, name: str, patience: float) -> Steps[CronJobInfo]:
    """Return one schedule with spec and status."""
    found = (yield from patiently(Call("GET", _path(namespace, name)), patience)).object
    return cron_job_of(found, whole=True)


def trigger(namespace: str, name: str, patience: float) -> Steps[Submitted]:
    """Ask for one run now; returns the job that it will be."""
    wish = Numbered("trigger", "triggers")
    yield from one_more(_path(namespace, name), wish, patience)
    return Submitted(id=trigger_name(name, wish.number), created=True, phase=Phase.QUEUED)


def backfill(namespace: str, name: str, ask: BackfillAsk, patience: float) -> Steps[CronJobInfo]:
    """Ask for the runs of times gone by."""
    found = yield from wished(_path(namespace, name), _backfilling(ask), patience)
    return cron_job_of(found, whole=True)


def _backfilling(ask: BackfillAsk) -> Decide:
    wanted = ask.wish.model_dump(mode="json", by_alias=True)

    def decide(cron_job: JsonObject) -> JsonObject | None:
        asked = child(child(cron_job, "spec"), "backfill")
        if asked == wanted:
            return None
        done = child(child(cron_job, "status"), "backfill")
        same = all(asked.get(key) == done.get(key) for key in ("from", "to"))
        if asked and not (same and flag(done, "completed")) and not ask.replace:
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
    decide = setting("suspend", suspended, otherwise=False)
    found = yield from wished(_path(namespace, name), decide, patience)
    return cron_job_of(found, whole=True)


def _path(namespace: str, name: str) -> str:
    return cron_job_path(namespace, checked(name, errors.CronJobNotFoundError))
