"""A worker process on a real API server: what becomes of jobs in the ordinary course."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asyncjob.lifecycle.timestamps import to_text
from asyncjob_dev.errors import ApiError
from support.workers import Field

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

MANY = 20
QUIET_SECONDS = 2.0
"""An operator that had something to write would have done so by then."""

AT_ONCE = {"retryPolicy": {"initialDelaySeconds": 0, "jitter": 0}}
NO_RETRY = {"retryPolicy": {"maxRetries": 0}}


def test_a_plain_job_costs_three_writes_and_none_by_the_operator(field: Field) -> None:
    field.worker("worker-0", "--concurrency=4")
    field.create("warm-up", "echo", 1)
    field.until_phase("warm-up", "Succeeded")
    before = field.writes()
    for number in range(MANY):
        field.create(f"j{number}", "echo", {"n": number})
    for number in range(MANY):
        field.until_phase(f"j{number}", "Succeeded")
    time.sleep(QUIET_SECONDS)
    made = field.writes() - before
    assert made == Counter({"POST  201": MANY, "PATCH status 200": 2 * MANY})


def in_seconds(seconds: float) -> str:
    return to_text(datetime.now(UTC) + timedelta(seconds=seconds))


ROUND_TRIPS: list[Any] = [
    {"row": 10, "tmp": {"a": 1, "b": 2}},
    {"row": None, "tmp": {"b": 3}, "new": 1},
    {"empty": {}, "list": [], "nulls": [None, {"x": None}]},
    {"deep": {"a": {"b": {"c": {"d": {"e": {"f": [[[[[1]]]]]}}}}}}},
    {"most": 2**63 - 1, "least": -(2**63), "float": 1.5, "whole": 1.0},
    "just text ü€😀",
    [1, 2, 3],
    {},
]

CHECKPOINTS = ROUND_TRIPS[:4]


def test_a_deadline_behind_it_cancels_a_job_though_a_worker_is_idle(field: Field) -> None:
    field.worker("worker-0")
    for number in range(MANY):
        field.create(f"late-{number}", "echo", 1, notAfter=in_seconds(-5))
    field.create("early", "echo", 1, notAfter=in_seconds(60))
    for number in range(MANY):
        status = field.until_phase(f"late-{number}", "Cancelled")
        assert (status["reason"], status["attempt"]) == ("DeadlineExceeded", 0)
    assert field.until_phase("early", "Succeeded")["attempt"] == 1


def test_results_and_checkpoints_come_back_exactly(field: Field) -> None:
    field.worker("worker-0", "--concurrency=8")
    for number, value in enumerate(ROUND_TRIPS):
        field.create(f"r{number}", "echo", value)
    field.create("c", "checkpoints", {"values": CHECKPOINTS, "gate": "go"})
    for number, value in enumerate(ROUND_TRIPS):
        assert field.until_phase(f"r{number}", "Succeeded")["result"] == value
    for number, value in enumerate(CHECKPOINTS):
        is_stored = lambda status, wanted=value: status.get("checkpoint") == wanted  # noqa: E731
        field.until_status("c", is_stored)
        field.open(f"go-{number}")
    status = field.until_phase("c", "Succeeded")
    assert status["checkpoint"] == CHECKPOINTS[-1]
    assert status["result"] == {"seen": CHECKPOINTS[-1]}


def test_integers_beyond_64_bits_are_refused_by_name(field: Field) -> None:
    field.worker()
    with pytest.raises(ApiError):
        field.create("payload", "echo", {"n": 2**70}, leaseDurationSeconds=4)
    field.create("result", "power", 63)
    status = field.until_phase("result", "DeadLetter")
    assert status["reason"] == "ResultRefused"
    assert "integer beyond 64 bits" in status["message"]


def test_what_is_too_large_ends_as_refused_with_size_and_limit(field: Field) -> None:
    field.worker("worker-0", "--concurrency=4", "--max-free-json=1400000")
    field.create("over-limit", "big", 1_500_000)
    field.create("over-store", "big", 1_300_000, idempotencyKey="k")
    field.create("checkpoint", "big-checkpoint", {"size": 1_500_000})
    field.create("stored", "big-checkpoint", {"size": 1_200_000, "ballast": "y" * 700_000})
    wanted = {
        "over-limit": ("1500002 bytes", "the limit is 1400000", "--offload-url"),
        "checkpoint": ("1500002 bytes", "the limit is 1400000"),
        "stored": ("1200002 bytes", "1572864"),
    }
    for name, words in wanted.items():
        status = field.until_phase(name, "DeadLetter")
        assert status["reason"] == "ResultRefused"
        assert all(word in status["message"] for word in words)
    assert len(field.until_phase("over-store", "Succeeded")["result"]) == 1_300_000


def test_a_result_beyond_the_store_ends_as_refused_with_size_and_limit(field: Field) -> None:
    field.worker("worker-0", "--max-free-json=4000000")
    for size in (1_600_000, 3_500_000):
        field.create(f"big-{size}", "big", size)
        status = field.until_phase(f"big-{size}", "DeadLetter")
        assert status["reason"] == "ResultRefused"
        assert f"{size + 2} bytes" in status["message"]
        assert "1572864" in status["message"]


def test_headers_and_parameters_of_the_submitters_request_reach_the_handler(field: Field) -> None:
    request = {
        "headers": {"Accept-Language": ["de", "en"]},
        "routeParams": {"customer": ["42"]},
        "queryParams": {"tag": ["a", "b"]},
    }
    field.worker()
    field.create("j", "request", request=request)
    assert field.until_phase("j", "Succeeded")["result"] == request


def test_a_payload_against_the_schema_is_a_dead_letter_at_once(field: Field) -> None:
    field.worker()
    field.create("j", "order", {"number": "x"})
    status = field.until_phase("j", "DeadLetter")
    assert (status["reason"], status["retries"], status["attempt"]) == ("InvalidPayload", 0, 1)
    assert "number" in status["message"]


def test_a_handler_that_calls_sys_exit_fails_and_its_worker_goes_on(field: Field) -> None:
    field.worker()
    field.create("leaves", "exit", **NO_RETRY)
    assert "sys.exit(7)" in field.until_phase("leaves", "DeadLetter")["error"]["message"]
    field.create("next", "echo", 1)
    field.until_phase("next", "Succeeded")


def test_labels_and_annotations_of_users_never_fence_or_delay(field: Field) -> None:
    worker = field.worker()
    field.create("j", "steps", {"rows": 40, "hold": 39, "gate": "go"}, leaseDurationSeconds=5)
    field.until_phase("j", "Running")
    for number in range(60):
        patch = {"labels": {"n": str(number)}, "annotations": {"a": str(number)}}
        field.patch("j", {"metadata": patch})
    field.until_status("j", lambda status: status["lease"]["renewals"] >= 2)
    field.open("go")
    for number in range(20):
        field.patch("j", {"metadata": {"labels": {"n": f"late-{number}"}}})
    status = field.until_phase("j", "Succeeded")
    assert (status["attempt"], len(status["result"])) == (1, 40)
    assert "fenced" not in field.log(worker)
    assert "not stored yet" not in field.log(worker)


@pytest.mark.parametrize("type_", ["wait", "wait-sync"])
def test_a_cancel_reaches_a_running_handler(field: Field, type_: str) -> None:
    worker = field.worker()
    field.create("j", type_, "never")
    field.until_trace("begin j 1")
    field.cancel("j")
    status = field.until_phase("j", "Cancelled")
    assert status["reason"] == "CancelRequested"
    assert "fenced" not in field.log(worker)


def test_handlers_that_never_return_time_out_and_the_worker_restarts_without_slots(
    field: Field,
) -> None:
    worker = field.worker("worker-0", "--concurrency=2", "--stop-wait=0.5")
    limits: dict[str, Any] = {"executionTimeoutSeconds": 1, **NO_RETRY}
    field.create("async", "stubborn", "never", **limits)
    field.create("sync", "stubborn-sync", "never", **limits)
    for name in ("async", "sync"):
        status = field.until_phase(name, "DeadLetter")
        assert status["error"]["type"] == "ExecutionTimeout"
        assert status["error"]["category"] == "Timeout"
    worker.wait_ended(20)
    assert worker.process.returncode == 3
    assert "every slot is held by an abandoned handler" in field.log(worker)


def test_a_timeout_goes_through_the_retry_flow(field: Field) -> None:
    field.worker()
    field.create("j", "wait", "never", executionTimeoutSeconds=1, **AT_ONCE)
    status = field.until_status("j", lambda status: status["attempt"] == 2)
    assert [entry["reason"] for entry in status["history"]] == [
        "ExecutionTimeout",
        "BackoffElapsed",
    ]
    assert status["retries"] == 1


def test_a_blocked_event_loop_costs_the_neighbours_nothing(field: Field) -> None:
    worker = field.worker("worker-0", "--concurrency=2")
    field.create("neighbour", "wait", "go", leaseDurationSeconds=5)
    field.until_trace("begin neighbour 1")
    field.create("blocker", "block", "unblock", leaseDurationSeconds=5)
    field.until_trace("begin blocker 1")
    field.until_status("neighbour", lambda status: status["lease"]["renewals"] >= 4)
    field.open("go")
    field.open("unblock")
    for name in ("neighbour", "blocker"):
        assert field.until_phase(name, "Succeeded")["attempt"] == 1
    log = field.log(worker)
    assert "event loop blocked" in log
    assert "blocker" in log
    assert "worker_app.py" in log
    assert "fenced" not in log
    field.until_log(worker, "event loop runs again")


def test_the_timeout_of_a_blocking_handler_is_the_operators_and_is_reported_once(
    field: Field,
) -> None:
    worker = field.worker()
    limits: dict[str, Any] = {"executionTimeoutSeconds": 1, "leaseDurationSeconds": 5}
    field.create("j", "block", "unblock", **limits, **NO_RETRY)
    before = field.until_phase("j", "DeadLetter", within=20)
    field.until_log(worker, "fenced")
    field.open("unblock")
    field.until_log(worker, "attempt ended without an outcome")
    assert field.status("j") == before
