"""The demo's scenarios, and the checks of their jobs.

Jobs are checked by their status, by the work itself done again, and the one whose worker is killed
by what each worker has logged. The scenarios stand at the end, in the order of their letters.
"""

import csv
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from asyncjob import AsyncJob
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_dev.supervisor import DevWorker


@dataclass(frozen=True)
class CheckResult:
    """What happened, in words, and what of it should not have."""

    happened: str
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all went as it should."""
        return not self.problems


Check = Callable[[AsyncJob, Path], CheckResult]
"""Looks at a job as the API server has it after the demo, and at the folder its worker ran in."""


@dataclass(frozen=True)
class Scenario:
    """One manifest, and what should become of it; `job` is the name of manifest and object."""

    key: str
    job: str
    what: str
    expected: str
    kind: str = "asyncjob"


@dataclass(frozen=True)
class ScenarioResult:
    """One line of the summary."""

    scenario: Scenario
    result: CheckResult


def compare(**facts: tuple[object, object]) -> tuple[str, ...]:
    """Return a sentence for each fact (found, wanted) that differs."""
    return tuple(
        f"{name.replace('_', ' ')} is {_text(found)}, not {_text(wanted)}"
        for name, (found, wanted) in facts.items()
        if found != wanted
    )


def _text(value: object) -> str:
    return "absent" if value is None else str(value)


FAILURES = 2
"""So often `flaky-call` fails; `always-fails` has as many retries."""


def check_files_digested(job: AsyncJob, project: Path) -> CheckResult:
    """Digest the folder again, in another way, and compare."""
    rows: list[dict[str, Any]] = _result(job).get("files", [])
    folder = project / str(_payload(job)["folder"])
    contents = {
        path.relative_to(project).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    digests = {file: hashlib.sha256(data).hexdigest() for file, data in contents.items()}
    lines = {file: _count_lines(data) for file, data in contents.items()}
    total = _result(job).get("lines")
    return CheckResult(
        f"{_phase(job)}: {len(rows)} files, {total or 0} lines",
        compare(
            phase=(job.status.phase, Phase.SUCCEEDED),
            attempt=(job.status.attempt, 1),
            digests=({row["file"]: row["sha256"] for row in rows}, digests),
            lines=({row["file"]: row["lines"] for row in rows}, lines),
            sum_of_the_lines=(total, sum(lines.values())),
        ),
    )


def _count_lines(data: bytes) -> int:
    unfinished = bool(data) and not data.endswith(b"\n")
    return data.count(b"\n") + unfinished


def check_report_written(job: AsyncJob, project: Path) -> CheckResult:
    """Look at the file that the result names."""
    result = _result(job)
    report = report_file(job, project)
    checksum = hashlib.sha256(report.read_bytes()).hexdigest() if report else None
    source_file = project / str(_payload(job)["source"])
    with source_file.open(encoding="utf-8", newline="") as source:
        rows = sum(1 for _ in csv.DictReader(source))
    return CheckResult(
        f"{_phase(job)}: {result.get('rows', 0)} rows in {result.get('file', 'no file')}",
        compare(
            phase=(job.status.phase, Phase.SUCCEEDED),
            checksum_of_the_file=(checksum, result.get("sha256", "")),
            rows=(result.get("rows"), rows),
            written_by_this_job=(report is not None and _is_younger(report, job), True),
        ),
    )


def _is_younger(file: Path, job: AsyncJob) -> bool:
    created = datetime.fromisoformat(job.metadata.creation_timestamp or "")
    return file.stat().st_mtime >= created.timestamp()


def report_file(job: AsyncJob, project: Path) -> Path | None:
    """Return the file that the job has written, if it is there."""
    name = _result(job).get("file")
    path = project / str(name)
    return path if name and path.is_file() else None


def check_succeeded_after_failures(job: AsyncJob, _project: Path) -> CheckResult:
    """Expect both failures in the history, and then success."""
    status = job.status
    failed = [entry for entry in status.history or [] if entry.reason is Reason.HANDLER_FAILED]
    return CheckResult(
        f"{_phase(job)} in attempt {status.attempt}, after {status.retries} retries",
        compare(
            phase=(status.phase, Phase.SUCCEEDED),
            attempt=(status.attempt, FAILURES + 1),
            retries=(status.retries, FAILURES),
            failures_in_the_history=(len(failed), FAILURES),
        ),
    )


def check_dead_letter(job: AsyncJob, _project: Path) -> CheckResult:
    """Expect a dead letter that says why."""
    status = job.status
    return CheckResult(
        f"{_phase(job)} after {status.attempt} attempts: {status.message or 'no message'}",
        compare(
            phase=(status.phase, Phase.DEAD_LETTER),
            reason=(status.reason, Reason.RETRIES_EXHAUSTED),
            attempt=(status.attempt, FAILURES + 1),
            error=(status.error.type if status.error else None, "RuntimeError"),
        ),
    )


def check_order_shipped(job: AsyncJob, _project: Path) -> CheckResult:
    """Expect a step for the charge and one for the parcel, and no refund."""
    steps = job.status.steps or {}
    number = _payload(job)["number"]
    return CheckResult(
        f"{_phase(job)}: {', '.join(sorted(steps)) or 'no step'}; {job.status.result}",
        compare(
            phase=(job.status.phase, Phase.SUCCEEDED),
            steps=(sorted(steps), ["charge", "ship"]),
            parcel=(job.status.result, f"parcel-{number}"),
        ),
    )


def is_waiting_for_approval(job: AsyncJob) -> bool:
    """Whether the job is parked for the signal, with no worker and no lease."""
    return job.status.reason is Reason.WAITING_FOR_SIGNAL and job.status.lease is None


def check_approved(job: AsyncJob, approver: str) -> CheckResult:
    """Expect a park that cost no retry, and the name of who has approved in the result."""
    status, signal = job.status, (job.spec.signals or {}).get(APPROVAL)
    return CheckResult(
        f"{_phase(job)} in attempt {status.attempt}, after {status.parks} park: {status.result}",
        compare(
            phase=(status.phase, Phase.SUCCEEDED),
            parks=(status.parks, 1),
            retries=(status.retries, 0),
            sender_of_the_signal=(signal.sent_by if signal else None, approver),
            approver_in_the_result=(str(status.result).endswith(f"by {approver}"), True),
        ),
    )


def _phase(job: AsyncJob) -> str:
    reason = job.status.reason
    return f"{job.status.phase} ({reason})" if reason else str(job.status.phase)


def _result(job: AsyncJob) -> dict[str, Any]:
    return job.status.result if isinstance(job.status.result, dict) else {}


def _payload(job: AsyncJob) -> dict[str, Any]:
    return job.spec.payload if isinstance(job.spec.payload, dict) else {}


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


QUEUE = "queue"

UNDISTURBED: tuple[tuple[Scenario, Check], ...] = (
    (
        Scenario(
            "a",
            "digest-files",
            "every file of a folder: SHA-256 and lines",
            "Succeeded, with the digests that the files have",
        ),
        check_files_digested,
    ),
    (
        Scenario(
            "a",
            "report-orders",
            "a CSV file turned into an HTML report",
            "Succeeded, and the report lies where its result says",
        ),
        check_report_written,
    ),
    (
        Scenario(
            "b",
            "flaky-call",
            "a call that fails twice",
            "Succeeded in attempt 3, after 2 retries",
        ),
        check_succeeded_after_failures,
    ),
    (
        Scenario(
            "c",
            "always-fails",
            "work that never succeeds",
            "DeadLetter after 3 attempts, with the error kept",
        ),
        check_dead_letter,
    ),
    (
        Scenario(
            "f",
            "fulfil-order",
            "an order in steps, whose results are kept",
            "Succeeded, charged and shipped, and nothing refunded",
        ),
        check_order_shipped,
    ),
)

CRASHED = Scenario(
    "d",
    "slow-count",
    "half done when its worker is killed (SIGKILL)",
    "recovered; the other worker goes on from the last checkpoint, in attempt 2",
)

REFUSED = Scenario(
    "e",
    "mistake",
    "a manifest with a mistake",
    "refused by the API server, which names the field",
)
FIELD = "spec.retryPolicy.maxRetries"

APPROVED = Scenario(
    "g",
    "release-shop",
    "a deployment that waits for an approval, without a slot",
    "parked until kubectl says yes; Succeeded, and the result says who has approved",
)
APPROVAL = "approval"
"""Name of the signal."""
