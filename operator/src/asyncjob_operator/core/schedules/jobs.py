"""The job that a cron job creates for a run, and what is kept of the jobs it has created."""

from dataclasses import dataclass

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.derived_jobs import cron_label_value, is_run_name
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    API_VERSION,
    ARRAY_LABEL,
    BACKFILL_LABEL,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    JOB_KIND,
    SCHEDULED_TIME_ANNOTATION,
    TRIGGER_ANNOTATION,
)
from asyncjob.shards import shard_label
from asyncjob_operator.core.now import to_epoch
from asyncjob_operator.core.policies.finished import is_redrive_requested
from asyncjob_operator.core.retention import verified_completion
from asyncjob_operator.core.schedules.view import CronJobView, Run, format_epoch


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """What is kept of a job that a cron job has created."""

    namespace: str
    name: str
    uid: str
    version: str
    phase: Phase
    created: str
    finished: bool
    completed_at: float
    """Epoch seconds, verified by the API server's times; 0 while it is unfinished."""

    cancel_requested: bool
    has_open_request: bool
    """Whether a redrive or rerun is requested, so that the job must be kept."""

    backfill: bool
    deleting: bool
    attempt: int = 0
    has_dedup_key: bool = False
    """Whether it has an idempotency key or a deduplication id, which others may still rely on."""

    def is_run_of(self, cron: CronJobView) -> bool:
        """Return whether it has the name that the cron job gives one of its runs.

        Someone who may not delete jobs may still be able to patch labels; a name never changes.
        """
        return self.namespace == cron.namespace and is_run_name(self.name, cron.name)


def cron_job_uid_of(obj: JsonObject) -> str:
    """Return the UID of the cron job that has created a job, empty for any other job."""
    return text(child(child(obj, "metadata"), "labels"), CRON_JOB_UID_LABEL)


def scheduled_job(
    job: JobView, obj: JsonObject, observed_at: float = 0.0, previous: ScheduledJob | None = None
) -> ScheduledJob:
    """Return what is kept of a cron job's job, written by `observed_at`, in epoch seconds.

    `previous` is what was kept of it so far: a finished job keeps its completion time.
    """
    labels = child(child(obj, "metadata"), "labels")
    return ScheduledJob(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        version=job.resource_version,
        phase=job.phase,
        created=job.creation_timestamp,
        finished=job.finished,
        completed_at=_completion_time(job, observed_at, previous),
        cancel_requested=job.control.cancel,
        has_open_request=is_redrive_requested(job) or job.control.rerun > job.reruns,
        backfill=BACKFILL_LABEL in labels,
        deleting=job.deleting,
        attempt=job.attempt,
        has_dedup_key=job.has_dedup_key,
    )


def _completion_time(job: JobView, observed_at: float, previous: ScheduledJob | None) -> float:
    if not job.finished:
        return 0.0
    if previous and (previous.phase, previous.attempt) == (job.phase, job.attempt):
        return previous.completed_at
    reported = to_epoch(job.completion_time, default=observed_at)
    return verified_completion(job, reported, observed_at)


def run_body(cron: CronJobView, obj: JsonObject, run: Run) -> JsonObject:
    """Return the job to create: the template's spec unchanged, and labels that name the run.

    The label of an array's chunks is left out: who may create jobs by a cron job alone could
    otherwise create one that the operator takes for a chunk.
    """
    template = child(child(obj, "spec"), "jobTemplate")
    metadata = child(template, "metadata")
    labels: dict[str, Json] = {
        **{name: value for name, value in child(metadata, "labels").items() if name != ARRAY_LABEL},
        CRON_JOB_LABEL: cron_label_value(cron.name),
        CRON_JOB_UID_LABEL: cron.uid,
        **shard_label(run.name),
        **({BACKFILL_LABEL: "true"} if run.backfill else {}),
    }
    annotations: dict[str, Json] = {
        **child(metadata, "annotations"),
        SCHEDULED_TIME_ANNOTATION: format_epoch(run.time),
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


def is_job_of_run(existing: JsonObject, cron: CronJobView, run: Run) -> bool:
    """Return whether the existing job is the run that was to be created.

    A cron job that was deleted and created again under the same name takes its predecessor's run of
    the same time for its own: there is one run per name and time. Triggers are numbered per
    cron job.
    """
    if run.trigger is not None:
        return cron_job_uid_of(existing) == cron.uid
    meta = child(existing, "metadata")
    return text(child(meta, "labels"), CRON_JOB_LABEL) == cron_label_value(cron.name) and text(
        child(meta, "annotations"), SCHEDULED_TIME_ANNOTATION
    ) == format_epoch(run.time)
