"""The job that a schedule creates, and what is kept of those there are."""

from dataclasses import dataclass

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.derived_names import is_name_of_run, label_value
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob.names import (
    API_VERSION,
    BACKFILL_LABEL,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    JOB_KIND,
    SCHEDULED_TIME_ANNOTATION,
    TRIGGER_ANNOTATION,
)
from asyncjob_operator.core.cron.view import CronView, Run, stamp
from asyncjob_operator.core.moment import epoch
from asyncjob_operator.core.policies.redrive import is_redrive_wished
from asyncjob_operator.core.retention import completed_at


@dataclass(frozen=True, slots=True)
class Child:
    """A job of a schedule; `wished`: somebody wants more of it, so that it stays.

    `completed` is epoch seconds by the API server's clock, 0 for an unfinished one. `long_memory`:
    it has a key that somebody may ask for again.
    """

    namespace: str
    name: str
    uid: str
    version: str
    phase: Phase
    created: str
    finished: bool
    completed: float
    cancelling: bool
    wished: bool
    backfill: bool
    deleting: bool
    attempt: int = 0
    long_memory: bool = False

    def is_run_of(self, cron: CronView) -> bool:
        """Return whether it bears the name that the schedule gives one of its runs.

        Labels may be patched by who may not delete; a name is for ever.
        """
        return self.namespace == cron.namespace and is_name_of_run(self.name, cron.name)


def cron_uid_of(obj: JsonObject) -> str:
    """Return the UID of the schedule that a job is of; empty for most jobs."""
    return text(child(child(obj, "metadata"), "labels"), CRON_JOB_UID_LABEL)


def child_of(
    job: JobView, obj: JsonObject, seen_at: float = 0.0, before: Child | None = None
) -> Child:
    """Return what is kept of a job of a schedule, seen at this time of the wall clock.

    `before` is what was kept of it so far: one that has ended keeps the time of its end.
    """
    labels = child(child(obj, "metadata"), "labels")
    return Child(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        version=job.resource_version,
        phase=job.phase,
        created=job.created,
        finished=job.finished,
        completed=_completed(job, seen_at, before),
        cancelling=job.wishes.cancel,
        wished=is_redrive_wished(job) or job.wishes.rerun > job.reruns,
        backfill=BACKFILL_LABEL in labels,
        deleting=job.deleting,
        attempt=job.attempt,
        long_memory=job.long_memory,
    )


def _completed(job: JobView, seen_at: float, before: Child | None) -> float:
    if not job.finished:
        return 0.0
    if before and (before.phase, before.attempt) == (job.phase, job.attempt):
        return before.completed
    return completed_at(job, epoch(job.completion_time or "", otherwise=seen_at), seen_at)


def run_body(cron: CronView, obj: JsonObject, run: Run) -> JsonObject:
    """Return the job to create: the template's spec exactly, and where it comes from."""
    template = child(child(obj, "spec"), "jobTemplate")
    said = child(template, "metadata")
    labels: dict[str, Json] = {
        **child(said, "labels"),
        CRON_JOB_LABEL: label_value(cron.name),
        CRON_JOB_UID_LABEL: cron.uid,
        **({BACKFILL_LABEL: "true"} if run.backfill else {}),
    }
    annotations: dict[str, Json] = {
        **child(said, "annotations"),
        SCHEDULED_TIME_ANNOTATION: stamp(run.time),
        **({TRIGGER_ANNOTATION: str(run.trigger)} if run.trigger is not None else {}),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {
            "name": run.name,
            "namespace": cron.namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": child(template, "spec"),
    }


def is_run(there: JsonObject, cron: CronView, run: Run) -> bool:
    """Return whether the existing job is the run that was to be created.

    A schedule made anew under the same name takes its predecessor's run of the same time for its
    own: one run per name and time. Triggers are numbered per schedule.
    """
    if run.trigger is not None:
        return cron_uid_of(there) == cron.uid
    meta = child(there, "metadata")
    return text(child(meta, "labels"), CRON_JOB_LABEL) == label_value(cron.name) and text(
        child(meta, "annotations"), SCHEDULED_TIME_ANNOTATION
    ) == stamp(run.time)
