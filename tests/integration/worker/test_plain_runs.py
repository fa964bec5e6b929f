"""A worker process on a real API server: what becomes of jobs in the ordinary course."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob_dev.errors import ApiStatusError
from support.processes.probes import Probes
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

MANY = 20
LEASE = 5
QUIET_SECONDS = 2.0
"""An operator that had something to write would have done so by then."""

AT_ONCE = {"retryPolicy": {"initialDelaySeconds": 0, "jitter": 0}}
NO_RETRY = {"retryPolicy": {"maxRetries": 0}}


def test_a_plain_job_costs_three_writes_and_none_by_the_operator(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", "--concurrency=4")
    ns.create("warm-up", "echo", 1)
    ns.until_phase("warm-up", "Succeeded")
    before = ns.writes()
    for number in range(MANY):
        ns.create(f"j{number}", "echo", {"n": number})
    for number in range(MANY):
        ns.until_phase(f"j{number}", "Succeeded")
    time.sleep(QUIET_SECONDS)
    made = ns.writes() - before
    assert made == Counter({"POST  201": MANY, "PATCH status 200": 2 * MANY})


def in_seconds(seconds: float) -> str:
    return format_timestamp(datetime.now(UTC) + timedelta(seconds=seconds))


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


def test_a_deadline_behind_it_cancels_a_job_though_a_worker_is_idle(ns: WorkerNamespace) -> None:
    ns.worker("worker-0")
    for number in range(MANY):
        ns.create(f"late-{number}", "echo", 1, notAfter=in_seconds(-5))
    ns.create("early", "echo", 1, notAfter=in_seconds(60))
    for number in range(MANY):
        status = ns.until_phase(f"late-{number}", "Cancelled")
        assert (status["reason"], status["attempt"]) == ("DeadlineExceeded", 0)
    assert ns.until_phase("early", "Succeeded")["attempt"] == 1


def test_results_and_checkpoints_come_back_exactly(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", "--concurrency=8")
    for number, value in enumerate(ROUND_TRIPS):
        ns.create(f"r{number}", "echo", value)
    ns.create("c", "checkpoints", {"values": CHECKPOINTS, "gate": "go"})
    for number, value in enumerate(ROUND_TRIPS):
        assert ns.until_phase(f"r{number}", "Succeeded")["result"] == value
    for number, value in enumerate(CHECKPOINTS):
        is_stored = lambda status, wanted=value: status.get("checkpoint") == wanted  # noqa: E731
        ns.until_status("c", is_stored)
        ns.open(f"go-{number}")
    status = ns.until_phase("c", "Succeeded")
    assert status["checkpoint"] == CHECKPOINTS[-1]
    assert status["result"] == {"seen": CHECKPOINTS[-1]}


def test_integers_beyond_64_bits_are_refused_by_name(ns: WorkerNamespace) -> None:
    ns.worker()
    with pytest.raises(ApiStatusError):
        ns.create("payload", "echo", {"n": 2**70}, leaseDurationSeconds=4)
    ns.create("result", "power", 63)
    status = ns.until_phase("result", "DeadLetter")
    assert status["reason"] == "ResultRefused"
    assert "integer beyond 64 bits" in status["message"]


def test_what_is_too_large_ends_as_refused_with_size_and_limit(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", "--concurrency=4", "--max-free-json=1400000")
    ns.create("over-limit", "big", 1_500_000)
    ns.create("over-store", "big", 1_300_000, idempotencyKey="k")
    ns.create("checkpoint", "big-checkpoint", {"size": 1_500_000})
    ns.create("stored", "big-checkpoint", {"size": 1_200_000, "ballast": "y" * 700_000})
    wanted = {
        "over-limit": ("1500002 bytes", "the limit is 1400000", "--offload-url"),
        "checkpoint": ("1500002 bytes", "the limit is 1400000"),
        "stored": ("1200002 bytes", "1572864"),
    }
    for name, words in wanted.items():
        status = ns.until_phase(name, "DeadLetter")
        assert status["reason"] == "ResultRefused"
        assert all(word in status["message"] for word in words)
    assert len(ns.until_phase("over-store", "Succeeded")["result"]) == 1_300_000


def test_a_result_beyond_the_store_ends_as_refused_with_size_and_limit(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", "--max-free-json=4000000")
    for size in (1_600_000, 3_500_000):
        ns.create(f"big-{size}", "big", size)
        status = ns.until_phase(f"big-{size}", "DeadLetter")
        assert status["reason"] == "ResultRefused"
        assert f"{size + 2} bytes" in status["message"]
        assert "1572864" in status["message"]


def test_headers_and_parameters_of_the_submitters_request_reach_the_handler(
    ns: WorkerNamespace,
) -> None:
    request = {
        "headers": {"Accept-Language": ["de", "en"]},
        "routeParams": {"customer": ["42"]},
        "queryParams": {"tag": ["a", "b"]},
    }
    ns.worker()
    ns.create("j", "request", request=request)
    assert ns.until_phase("j", "Succeeded")["result"] == request


def test_a_payload_against_the_schema_is_a_dead_letter_at_once(ns: WorkerNamespace) -> None:
    ns.worker()
    ns.create("j", "order", {"number": "x"})
    status = ns.until_phase("j", "DeadLetter")
    assert (status["reason"], status.get("retries", 0), status["attempt"]) == (
        "InvalidPayload",
        0,
        1,
    )
    assert "number" in status["message"]


def test_a_handler_that_calls_sys_exit_fails_and_its_worker_goes_on(ns: WorkerNamespace) -> None:
    ns.worker()
    ns.create("leaves", "exit", **NO_RETRY)
    assert "sys.exit(7)" in ns.until_phase("leaves", "DeadLetter")["error"]["message"]
    ns.create("next", "echo", 1)
    ns.until_phase("next", "Succeeded")


def test_labels_and_annotations_of_users_never_fence_or_delay(ns: WorkerNamespace) -> None:
    worker = ns.worker()
    ns.create("j", "steps", {"rows": 40, "hold": 39, "gate": "go"}, leaseDurationSeconds=5)
    ns.until_phase("j", "Running")
    for number in range(60):
        patch = {"labels": {"n": str(number)}, "annotations": {"a": str(number)}}
        ns.patch("j", {"metadata": patch})
    ns.until_status("j", lambda status: status["lease"]["renewals"] >= 2)
    ns.open("go")
    for number in range(20):
        ns.patch("j", {"metadata": {"labels": {"n": f"late-{number}"}}})
    status = ns.until_phase("j", "Succeeded")
    assert (status["attempt"], len(status["result"])) == (1, 40)
    assert "fenced" not in ns.log(worker)
    assert "not stored yet" not in ns.log(worker)


@pytest.mark.parametrize("type_", ["wait", "wait-sync"])
def test_a_cancel_reaches_a_running_handler(ns: WorkerNamespace, type_: str) -> None:
    worker = ns.worker()
    ns.create("j", type_, "never")
    ns.until_trace("begin j 1")
    ns.cancel("j")
    status = ns.until_phase("j", "Cancelled")
    assert status["reason"] == "CancelRequested"
    assert "fenced" not in ns.log(worker)


def test_handlers_that_never_return_time_out_and_the_worker_restarts_without_slots(
    ns: WorkerNamespace,
) -> None:
    worker = ns.worker("worker-0", "--concurrency=2", "--stop-wait=0.5")
    limits: dict[str, Any] = {"executionTimeoutSeconds": 1, **NO_RETRY}
    ns.create("async", "stubborn", "never", **limits)
    ns.create("sync", "stubborn-sync", "never", **limits)
    for name in ("async", "sync"):
        status = ns.until_phase(name, "DeadLetter")
        assert status["error"]["type"] == "ExecutionTimeout"
        assert status["error"]["category"] == "Timeout"
    worker.wait_ended(20)
    assert worker.process.returncode == 3
    assert "every slot is held by an abandoned handler" in ns.log(worker)


def test_a_timeout_goes_through_the_retry_flow(ns: WorkerNamespace) -> None:
    ns.worker()
    ns.create("j", "wait", "never", executionTimeoutSeconds=1, **AT_ONCE)
    status = ns.until_status("j", lambda status: status["attempt"] == 2)
    assert [entry["reason"] for entry in status["history"]] == [
        "ExecutionTimeout",
        "BackoffElapsed",
    ]
    assert status.get("retries", 0) == 1


def test_a_handler_that_blocks_the_event_loop_costs_its_neighbours_nothing(
    ns: WorkerNamespace,
) -> None:
    probes = Probes.on_free_port()
    worker = ns.worker("worker-0", "--concurrency=3", "--stall-limit=4", probes.option)
    for name, type_ in (("in-loop", "wait"), ("in-thread", "wait-sync")):
        ns.create(name, type_, "go", leaseDurationSeconds=LEASE)
        ns.until_trace(f"begin {name} 1")
    limits: dict[str, Any] = {"executionTimeoutSeconds": 1, "leaseDurationSeconds": LEASE}
    ns.create("blocker", "block", "unblock", **limits, **NO_RETRY)
    ns.until_trace("begin blocker 1")
    assert probes.ask("/livez") == (200, "ok\n")

    # The worker cannot end the attempt, so the operator does; neighbours live longer than a lease.
    before = ns.until_phase("blocker", "DeadLetter", within=20)
    for name in ("in-loop", "in-thread"):
        ns.until_status(name, lambda status: status["lease"]["renewals"] >= 5)
    ns.until_log(worker, "fenced")
    code, body = probes.ask("/livez")
    assert (code, body.startswith("event loop: blocked for")) == (503, True)
    assert probes.ask("/readyz") == (200, "ok\n")
    blocked = probes.metrics()

    ns.open("go")
    ns.open("unblock")
    ns.until_log(worker, "attempt ended without an outcome")
    for name in ("in-loop", "in-thread"):
        status = ns.until_phase(name, "Succeeded")
        assert (status["attempt"], len(status["history"])) == (1, 1)
    ns.until_log(worker, "event loop runs again")
    until(lambda: probes.ask("/livez")[0] == 200, 5, lambda: str(probes.ask("/livez")))
    assert ns.status("blocker") == before
    assert len(before["history"]) == 1

    log = ns.log(worker)
    stalls = [line for line in log.splitlines() if "event loop blocked" in line]
    assert len(stalls) == 1
    assert all(word in stalls[0] for word in ("job=blocker", "type=block", "worker.py"))
    assert blocked.total("asyncjob_worker_event_loop_stalls_total", type="block") == 1
    assert blocked.total("asyncjob_worker_event_loop_stalls_total") == 1
    assert blocked.total("asyncjob_worker_event_loop_stalled_seconds_total") > LEASE
    after = probes.metrics()
    assert after.total("asyncjob_worker_fenced_total") == 1
    assert after.total("asyncjob_worker_fenced_total", type="block") == 1
    assert after.total("asyncjob_worker_jobs_finished_total") == 2
    assert after.total("asyncjob_worker_lease_renewals_total", outcome="stored") >= 10


def test_a_worker_leaves_types_that_it_does_not_know_to_those_that_do(ns: WorkerNamespace) -> None:
    both = {"worker-0": "support.apps.worker:app", "worker-1": "support.apps.worker:specialist"}
    probes = {name: Probes.on_free_port() for name in both}
    for name, app in both.items():
        ns.start_worker(name, "--concurrency=2", probes[name].option, app=app)
    types = {"tiny": "worker-0", "special": "worker-1"}
    for number in range(MANY):
        ns.create(f"nobodys-{number}", "unheard-of")
        for type_ in types:
            ns.create(f"{type_}-{number}", type_)
    for type_, holder in types.items():
        for number in range(MANY):
            status = ns.until_phase(f"{type_}-{number}", "Succeeded")
            assert status["history"][0]["worker"].startswith(f"{holder}/")
    for number in range(MANY):
        status = ns.status(f"nobodys-{number}")
        assert (status["phase"], status["attempt"]) == ("Queued", 0)
    for name in both:
        seen = probes[name].metrics()
        assert seen.total("asyncjob_worker_claims_total", outcome="won") == MANY
        assert seen.total("asyncjob_worker_claims_total") == MANY
        assert seen.total("asyncjob_worker_backlog") == 0
