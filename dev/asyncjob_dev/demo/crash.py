"""Kills the worker of a half done job, and proves that the other one went on where it was."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncjob import AsyncJob
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_dev.demo.verdict import CheckResult, compare
from asyncjob_dev.supervisor import DevWorker

STEP = re.compile(r"counted (\d+) of \d+ in attempt (\d+)")

Steps = list[tuple[int, int]]
"""Step and attempt, in the order in which a worker has logged them."""

RECOVERIES = {Reason.WORKER_CRASHED, Reason.LEASE_EXPIRED}


@dataclass(frozen=True)
class WorkerKill:
    """Which worker was killed, and the last step the API server knew then."""

    worker: str
    saved: int


def saved_step(job: AsyncJob) -> int:
    """Return the step in the checkpoint, 0 without one."""
    checkpoint = job.status.checkpoint
    return int(str(checkpoint["step"])) if isinstance(checkpoint, dict) else 0


def steps_of(job: AsyncJob) -> int:
    """Return how many steps the job has in all."""
    payload = job.spec.payload
    assert isinstance(payload, dict)
    return int(str(payload["to"]))


def is_half_done(job: AsyncJob) -> bool:
    """Whether the saved part is half of the work, and the rest still runs."""
    return job.status.phase is Phase.RUNNING and 2 * saved_step(job) >= steps_of(job)


def worker_holding(job: AsyncJob, workers: list[DevWorker]) -> DevWorker:
    """Return the worker that holds the job."""
    assert job.status.lease is not None
    return next(worker for worker in workers if worker.name == job.status.lease.holder)


def read_steps(log: Path) -> Steps:
    """Return what a worker has counted."""
    found = STEP.findall(log.read_text(encoding="utf-8", errors="replace"))
    return [(int(step), int(attempt)) for step, attempt in found]


def check_resumed(
    job: AsyncJob, crash: WorkerKill | None, counted: Mapping[str, Steps]
) -> CheckResult:
    """Judge by status, by history, and by what each worker itself has logged."""
    if crash is None:
        return CheckResult(f"{job.status.phase}, no worker killed", ("it was never half done",))
    finisher = _last_worker(job)
    before, after = counted.get(crash.worker, []), counted.get(finisher, [])
    reasons = [entry.reason for entry in job.status.history or [] if entry.reason in RECOVERIES]
    start = _resumed_from(job)
    return CheckResult(
        f"{crash.worker} killed at step {len(before)}, {crash.saved} saved; "
        f"{', '.join(filter(None, reasons)) or 'not recovered'}; {finisher or 'nobody'} counted "
        f"{_span(after)} in attempt {job.status.attempt}: {job.status.phase}",
        compare(
            phase=(job.status.phase, Phase.SUCCEEDED),
            attempt=(job.status.attempt, 2),
            crashes=(job.status.crashes, 1),
            recoveries_in_the_history=(len(reasons), 1),
            finished_by_another_worker=(finisher not in {"", crash.worker}, True),
            # A write may have been under way at the time of the kill, so more may be saved.
            resumed_at_the_checkpoint=(0 < crash.saved <= start <= len(before), True),
            steps_of_the_first_worker=(before, _expected_steps(0, len(before), 1)),
            steps_of_the_second_worker=(after, _expected_steps(start, steps_of(job), 2)),
        ),
    )


def _last_worker(job: AsyncJob) -> str:
    last = (job.status.history or [])[-1:]
    return (last[0].worker or "").partition("/")[0] if last else ""


def _expected_steps(after: int, to: int, attempt: int) -> Steps:
    return [(step, attempt) for step in range(after + 1, to + 1)]


def _span(steps: Steps) -> str:
    return f"{steps[0][0]} to {steps[-1][0]}" if steps else "nothing"


def _resumed_from(job: AsyncJob) -> int:
    result = job.status.result
    return int(str(result["resumed_from"])) if isinstance(result, dict) else 0
