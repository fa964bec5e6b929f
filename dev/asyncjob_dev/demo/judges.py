"""Judges of the jobs that nobody disturbs: by their status, and by the work itself done again."""

import csv
import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

from asyncjob import AsyncJob
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_dev.demo.verdict import CheckResult, compare
from asyncjob_dev.environment import ROOT

FAILURES = 2
"""So often `flaky-call` fails; `always-fails` has as many retries."""


def check_files_digested(job: AsyncJob) -> CheckResult:
    """Digest the folder again, in another way, and compare."""
    rows: list[dict[str, Any]] = _result(job).get("files", [])
    folder = ROOT / str(_payload(job)["folder"])
    contents = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
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


def check_report_written(job: AsyncJob) -> CheckResult:
    """Look at the file that the result names."""
    result = _result(job)
    report = report_file(job)
    checksum = hashlib.sha256(report.read_bytes()).hexdigest() if report else None
    with (ROOT / str(_payload(job)["source"])).open(encoding="utf-8", newline="") as source:
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


def report_file(job: AsyncJob) -> Path | None:
    """Return the file that the job has written, if it is there."""
    name = _result(job).get("file")
    path = ROOT / str(name)
    return path if name and path.is_file() else None


def check_succeeded_after_failures(job: AsyncJob) -> CheckResult:
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


def check_dead_letter(job: AsyncJob) -> CheckResult:
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


def _phase(job: AsyncJob) -> str:
    reason = job.status.reason
    return f"{job.status.phase} ({reason})" if reason else str(job.status.phase)


def _result(job: AsyncJob) -> dict[str, Any]:
    return job.status.result if isinstance(job.status.result, dict) else {}


def _payload(job: AsyncJob) -> dict[str, Any]:
    return job.spec.payload if isinstance(job.spec.payload, dict) else {}
