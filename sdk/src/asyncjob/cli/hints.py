"""What one might do next about a job, as commands to copy. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from asyncjob.cli.timeline import pod_name
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.rest.job import Job


@dataclass(frozen=True, slots=True)
class Hint:
    """A command, and what it is good for."""

    command: str
    purpose: str


def job_hints(job: Job, program: str) -> list[Hint]:
    """Return the next steps that make sense for the job as it is."""
    return [*_phase_hints(job, program), *_log_hint(job)]


def _phase_hints(job: Job, program: str) -> Iterator[Hint]:
    match job.phase:
        case Phase.DEAD_LETTER:
            yield Hint(f"{program} redrive {job.id}", "run it again with fresh budgets")
            yield Hint(f"{program} dismiss {job.id}", "give it up for good")
        case Phase.SUCCEEDED if job.has_result:
            yield Hint(f"{program} result {job.id}", "print what its handler returned")
        case Phase.SUCCEEDED | Phase.CANCELLED:
            yield Hint(f"{program} rerun {job.id}", "do the same again, as a new job")
        case Phase.RUNNING if not job.cancelling:
            yield Hint(f"{program} wait {job.id}", "wait for its end")
        case _:
            yield from _waiting_hints(job, program)


def _waiting_hints(job: Job, program: str) -> Iterator[Hint]:
    if job.cancelling:
        return
    if job.suspended:
        yield Hint(f"{program} resume {job.id}", "let it start")
    elif job.reason == Reason.QUEUE_PAUSED:
        yield Hint(f"{program} queue resume {job.queue}", "let the queue's jobs start")
    elif job.reason == Reason.WAITING_FOR_DEPENDENCY and job.depends_on:
        names = " ".join(one.name for one in job.depends_on)
        yield Hint(f"{program} get {names}", "look at the jobs it waits for")
    elif job.phase is Phase.QUEUED:
        yield Hint(f"{program} workers --queue {job.queue}", "see who could run it")
    yield Hint(f"{program} cancel {job.id}", "do not run it")


def _log_hint(job: Job) -> Iterator[Hint]:
    """Name the log of the worker that runs or ran it; workers' logs are kubectl's."""
    pod = job.worker or next((one.worker for one in reversed(job.history) if one.worker), None)
    if pod and job.phase is not Phase.SUCCEEDED:
        yield Hint(
            log_command(job.namespace, pod_name(pod), job.id), "its lines in the worker's log"
        )


def log_command(namespace: str, pod: str, job_id: str) -> str:
    """Return how kubectl shows what a job's handler has logged."""
    return f"kubectl -n {namespace} logs {pod} | grep {job_id}"
