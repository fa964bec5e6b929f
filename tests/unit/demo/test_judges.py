"""Judges let nothing pass that is not as it should be."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from asyncjob import AsyncJob
from asyncjob_dev.demo import checks
from asyncjob_dev.demo.checks import Steps, WorkerKill, check_resumed, is_half_done, read_steps
from asyncjob_dev.environment import ROOT

NOW = "2025-01-01T00:00:00.000Z"


def job(type_: str, payload: dict[str, Any], **status: Any) -> AsyncJob:
    return AsyncJob.model_validate(
        {
            "metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"},
            "spec": {"type": type_, "payload": payload},
            "status": status,
        }
    )


def entry(phase: str, reason: str | None = None, worker: str | None = None) -> dict[str, Any]:
    return {"time": NOW, "phase": phase, "reason": reason, "worker": worker}


FILES: list[dict[str, Any]] = [
    {
        "file": path.relative_to(ROOT).as_posix(),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "lines": len(path.read_bytes().splitlines()),
    }
    for path in (ROOT / "examples/data/texts").rglob("*")
    if path.is_file()
]


LINES = sum(row["lines"] for row in FILES)


def digested(
    *, files: list[dict[str, Any]] = FILES, lines: int = LINES, **changed: Any
) -> AsyncJob:
    result = {"files": files, "lines": lines}
    status = {"phase": "Succeeded", "attempt": 1, "result": result, **changed}
    return job("files.digest", {"folder": "examples/data/texts"}, **status)


def test_digests_that_the_files_have_are_right() -> None:
    assert checks.check_files_digested(digested(), ROOT).ok


def test_a_wrong_digest_a_missing_file_or_a_failure_is_not() -> None:
    assert not checks.check_files_digested(digested(files=FILES[1:]), ROOT).ok
    wrong = [{**FILES[0], "sha256": "0"}, *FILES[1:]]
    assert not checks.check_files_digested(digested(files=wrong), ROOT).ok
    assert not checks.check_files_digested(digested(phase="DeadLetter"), ROOT).ok
    assert not checks.check_files_digested(digested(result=None), ROOT).ok


def test_lines_are_counted_again_file_by_file_and_all_together() -> None:
    lines = FILES[0]["lines"]
    wrong = [{**FILES[0], "lines": lines + 1}, *FILES[1:]]
    assert not checks.check_files_digested(digested(files=wrong), ROOT).ok
    assert not checks.check_files_digested(digested(files=wrong, lines=LINES + 1), ROOT).ok
    assert checks.check_files_digested(digested(lines=LINES + 1), ROOT).problems == (
        f"sum of the lines is {LINES + 1}, not {LINES}",
    )


@pytest.mark.parametrize(
    ("data", "lines"),
    [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"a\rb\n", 1)],
)
def test_a_last_line_counts_with_and_without_its_end(data: bytes, lines: int) -> None:
    assert checks._count_lines(data) == lines


def reported(sha256: str, rows: int, file: str) -> AsyncJob:
    result = {"sha256": sha256, "rows": rows, "file": file}
    payload = {"source": "orders.csv"}
    return job("report.csv", payload, phase="Succeeded", attempt=1, result=result)


def test_a_report_is_right_if_the_file_is_the_one_its_result_describes(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "r.html").write_text("<p>")
    checksum = hashlib.sha256(b"<p>").hexdigest()
    assert checks.check_report_written(reported(checksum, 2, "r.html"), tmp_path).ok
    assert not checks.check_report_written(reported("0", 2, "r.html"), tmp_path).ok
    assert not checks.check_report_written(reported(checksum, 3, "r.html"), tmp_path).ok
    assert not checks.check_report_written(reported(checksum, 2, "missing.html"), tmp_path).ok
    os.utime(tmp_path / "r.html", (0, 0))
    assert not checks.check_report_written(reported(checksum, 2, "r.html"), tmp_path).ok


def flaky(attempt: int = 3, retries: int = 2, phase: str = "Succeeded") -> AsyncJob:
    history = [entry("Retrying", "HandlerFailed")] * retries
    return job("flaky.call", {}, phase=phase, attempt=attempt, retries=retries, history=history)


def test_two_failures_and_a_success_are_two_failures_and_a_success() -> None:
    assert checks.check_succeeded_after_failures(flaky(), ROOT).ok
    assert not checks.check_succeeded_after_failures(flaky(attempt=1, retries=0), ROOT).ok
    assert not checks.check_succeeded_after_failures(flaky(phase="Retrying"), ROOT).ok


def test_a_dead_letter_keeps_its_error() -> None:
    error = {"type": "RuntimeError", "category": "Internal", "message": "never works"}
    status = {"phase": "DeadLetter", "reason": "RetriesExhausted", "attempt": 3}
    assert checks.check_dead_letter(job("always.fails", {}, **status, error=error), ROOT).ok
    assert not checks.check_dead_letter(job("always.fails", {}, **status), ROOT).ok
    wrong = {**status, "reason": "NotRetryable"}
    assert not checks.check_dead_letter(job("always.fails", {}, **wrong, error=error), ROOT).ok


def counting(**changed: Any) -> AsyncJob:
    status: dict[str, Any] = {
        "phase": "Succeeded",
        "attempt": 2,
        "crashes": 1,
        "result": {"counted": 4, "resumed_from": 2},
        "history": [
            entry("Queued", "WorkerCrashed", "w-1/a"),
            entry("Succeeded", None, "w-2/b"),
        ],
    }
    return job("slow.count", {"to": 4}, **{**status, **changed})


CRASH = WorkerKill("w-1", saved=2)
FIRST: Steps = [(1, 1), (2, 1), (3, 1)]
SECOND: Steps = [(3, 2), (4, 2)]


def test_a_job_that_another_worker_went_on_with_is_as_it_should_be() -> None:
    assert check_resumed(counting(), CRASH, {"w-1": FIRST, "w-2": SECOND}).ok


def test_more_may_have_been_saved_than_was_seen() -> None:
    job_ = counting(result={"counted": 4, "resumed_from": 3})
    assert check_resumed(job_, CRASH, {"w-1": FIRST, "w-2": SECOND[1:]}).ok


@pytest.mark.parametrize(
    ("changed", "second"),
    [
        ({"attempt": 1}, SECOND),
        ({"phase": "DeadLetter"}, SECOND),
        ({"crashes": 0}, SECOND),
        ({"result": {"counted": 4, "resumed_from": 0}}, [(1, 2), (2, 2), *SECOND]),
        ({}, [(2, 2), *SECOND]),
        ({}, SECOND[1:]),
        ({"history": [entry("Succeeded", None, "w-2/b")]}, SECOND),
        ({"history": [entry("Queued", "WorkerCrashed"), entry("Succeeded", None, "w-1/c")]}, []),
    ],
)
def test_work_done_twice_left_out_or_by_the_dead_is_noticed(
    changed: dict[str, Any], second: Steps
) -> None:
    assert not check_resumed(counting(**changed), CRASH, {"w-1": FIRST, "w-2": second}).ok


def test_without_a_killed_worker_nothing_is_proven() -> None:
    assert not check_resumed(counting(), None, {"w-1": FIRST, "w-2": SECOND}).ok


def test_half_done_means_saved_and_running() -> None:
    assert is_half_done(counting(phase="Running", checkpoint={"step": 2}))
    assert not is_half_done(counting(phase="Running", checkpoint={"step": 1}))
    assert not is_half_done(counting(phase="Running"))
    assert not is_half_done(counting(phase="Succeeded", checkpoint={"step": 4}))


def test_steps_are_read_from_a_workers_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "[info] counted 1 of 4 in attempt 1\nother\n[info] counted 2 of 4 in attempt 1\n"
    )
    assert read_steps(log) == [(1, 1), (2, 1)]


STEP = {"attempt": 1, "startTime": NOW, "completionTime": NOW, "sizeBytes": 4}


def ordered(*steps: str, **changed: Any) -> AsyncJob:
    done = {key: {**STEP, "result": "x"} for key in steps}
    status = {"phase": "Succeeded", "attempt": 1, "result": "parcel-7", "steps": done, **changed}
    return job("order.fulfil", {"number": "7", "total": 1}, **status)


def test_an_order_is_charged_and_shipped_and_not_refunded() -> None:
    assert checks.check_order_shipped(ordered("charge", "ship"), ROOT).ok
    assert not checks.check_order_shipped(ordered("charge"), ROOT).ok
    assert not checks.check_order_shipped(ordered("charge", "refund", "ship"), ROOT).ok
    assert not checks.check_order_shipped(ordered("charge", "ship", result="parcel-8"), ROOT).ok
    assert not checks.check_order_shipped(ordered("charge", "ship", phase="Running"), ROOT).ok


def released(sender: str | None = "ada", **changed: Any) -> AsyncJob:
    status = {"phase": "Succeeded", "parks": 1, "result": "shop has 7, approved by ada", **changed}
    made = job("release.deploy", {"service": "shop", "version": "7"}, **status)
    signals = {"approval": {"payload": {"ok": True}, "sentBy": sender}} if sender else None
    plain = made.model_dump(mode="json", by_alias=True, exclude_none=True)
    plain["spec"] |= {"signals": signals} if signals else {}
    return AsyncJob.model_validate(plain)


def test_an_approval_is_one_that_the_job_was_parked_for_and_that_says_by_whom() -> None:
    assert checks.check_approved(released(), "ada").ok
    assert not checks.check_approved(released(), "bob").ok
    assert not checks.check_approved(released(sender=None), "ada").ok
    assert not checks.check_approved(released(parks=0), "ada").ok
    assert not checks.check_approved(released(retries=1), "ada").ok
    assert not checks.check_approved(released(result="shop has 7"), "ada").ok
    assert not checks.check_approved(released(phase="DeadLetter"), "ada").ok


def test_a_job_waits_for_an_approval_once_it_is_parked() -> None:
    waiting = {"phase": "Pending", "reason": "WaitingForSignal"}
    assert checks.is_waiting_for_approval(released(**waiting))
    assert not checks.is_waiting_for_approval(released(phase="Pending", reason="Suspended"))
