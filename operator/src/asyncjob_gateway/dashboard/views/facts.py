"""The facts of a job, name by name; those that it has."""

from dataclasses import dataclass
from datetime import datetime

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Job
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.words import DisplayTime, display_time, format_duration


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and a value; `url` where the value leads somewhere, `time` where it is one."""

    name: str
    value: str = ""
    url: str = ""
    time: DisplayTime | None = None


def job_facts(job: Job, links: Links, now: datetime) -> list[Fact]:
    """Return what there is to be known of it."""
    cron = job.cron_job
    parent, origin = job.parent, job.rerun_of
    found = [
        Fact("Type", job.type, links.jobs(type=job.type)),
        Fact("Queue", job.queue, links.jobs(queue=job.queue)),
        Fact("Priority", str(job.priority)),
        Fact("Created", time=display_time(job.created_at, now)),
        Fact("First started", time=display_time(job.first_started_at, now)),
        Fact("Finished", time=display_time(job.completed_at, now)),
        Fact("Took", "" if job.duration_seconds is None else format_duration(job.duration_seconds)),
        Fact("Last report", time=display_time(job.updated_at, now)),
        Fact("Progress", _progress_text(job)),
        Fact("Worker", job.worker or ""),
        Fact("Attempts", str(job.attempt)),
        Fact("Retries", _count_of(job.retries, job.max_retries)),
        Fact("Crashes", str(job.crashes or "")),
        Fact("Given back", str(job.releases or "")),
        Fact("Redrives", str(job.redrives or "")),
        Fact("Reruns", str(job.reruns or "")),
        Fact("Not before", time=display_time(job.not_before, now)),
        Fact("Not after", time=display_time(job.not_after, now)),
        Fact(
            "Submitted by", parent.name if parent else "", links.job(parent.name) if parent else ""
        ),
        Fact("Runs again", origin.name if origin else "", links.job(origin.name) if origin else ""),
        Fact("Cron job", cron.name if cron else "", links.jobs(cronJob=cron.name) if cron else ""),
        *(Fact("Depends on", one.name, links.job(one.name)) for one in job.depends_on),
        Fact("Idempotency key", job.idempotency_key or ""),
        Fact("Deduplication id", job.deduplication_id or ""),
        Fact("Concurrency key", job.concurrency_key or ""),
        Fact("Trace", job.traceparent or ""),
        Fact("UID", job.uid),
    ]
    return [fact for fact in found if fact.value or fact.time]


def policy_facts(job: Job) -> list[Fact]:
    """Return the rules in force for its current or last attempt."""
    rules = job.effective
    if rules is None:
        return []
    delays = f"{rules.initial_delay_seconds:g} s to {rules.max_delay_seconds:g} s"
    return [
        Fact("Retries at most", str(rules.max_retries)),
        Fact("Backoff", f"{rules.backoff}, {delays}, jitter {rules.jitter:g}"),
        Fact("Retried", ", ".join(rules.retry_on) or "all categories"),
        Fact("Never retried", ", ".join(rules.no_retry_on) or "none"),
        Fact("Crashes survived", str(rules.max_crashes)),
        Fact("Time limit", format_duration(rules.execution_timeout_seconds)),
        Fact("Lease", format_duration(rules.lease_duration_seconds)),
    ]


def _progress_text(job: Job) -> str:
    """Return how far it came; of one that runs, the top of the page says it."""
    if job.progress is None or job.phase is Phase.RUNNING:
        return ""
    said = f", {job.progress.message}" if job.progress.message else ""
    return f"{job.progress.percent} %{said}"


def _count_of(count: int, most: int | None) -> str:
    return str(count) if most is None else f"{count} of {most}"
