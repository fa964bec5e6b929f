"""Liveness and readiness: what counts, when, and what is said."""

import socket
import threading
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from asyncjob.errors import ConfigError
from asyncjob_dev.ports import free_port
from asyncjob_worker.health import (
    MAX_MISSED_HEARTBEATS,
    Health,
    HealthServer,
    ReadinessState,
    listen,
    serve_health,
    unready_reasons,
)
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.stall_detector import LivenessCounter
from asyncjob_worker.settings import Settings
from support.processes.probes import Probes

LIMIT = 5.0


class WorkerHealthHarness:
    """A health with counters that the test ticks."""

    def __init__(self, *, limit: float = LIMIT) -> None:
        self.loop = LivenessCounter()
        self.heartbeat = SimpleNamespace(liveness=LivenessCounter(), alive=True)
        self.signs = ReadinessState()
        self.health = Health(
            self.loop,
            cast("HeartbeatThread", self.heartbeat),
            lambda: self.signs,
            stall_limit=limit,
        )

    def pass_time(self, looks: int, *, loop: bool = True, heartbeat: bool = True) -> str:
        """Look so often, with these beats in between; return what is wrong then."""
        for _ in range(looks):
            if loop:
                self.loop.tick()
            if heartbeat:
                self.heartbeat.liveness.tick()
            self.health.check()
        return self.health.not_alive()


def test_a_process_whose_threads_tick_is_alive() -> None:
    assert WorkerHealthHarness().pass_time(100) == ""


def test_an_event_loop_that_stands_still_is_fatal_only_beyond_the_limit() -> None:
    harness = WorkerHealthHarness()
    harness.pass_time(1)
    assert harness.pass_time(5, loop=False) == ""
    assert harness.pass_time(1, loop=False) == "event loop: blocked for 6 s, the limit is 5 s"
    assert harness.pass_time(1) == ""


def test_without_a_limit_a_stall_is_never_fatal() -> None:
    harness = WorkerHealthHarness(limit=0.0)
    harness.pass_time(1)
    assert harness.pass_time(10_000, loop=False) == ""


def test_a_loop_that_waits_for_the_api_server_at_the_start_is_alive() -> None:
    harness = WorkerHealthHarness()
    harness.heartbeat.alive = False
    assert harness.pass_time(1000, loop=False, heartbeat=False) == ""


def test_a_silent_heartbeat_thread_is_fatal() -> None:
    harness = WorkerHealthHarness()
    harness.pass_time(1)
    assert harness.pass_time(MAX_MISSED_HEARTBEATS, heartbeat=False) == ""
    assert harness.pass_time(1, heartbeat=False) == "heartbeat thread: silent for 31 s"
    harness.heartbeat.alive = False
    assert harness.pass_time(1, heartbeat=False) == ""


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        (ReadinessState(registered=False), "not registered"),
        (ReadinessState(queue_known=False), "queue not known"),
        (ReadinessState(workers_known=False), "workers not known"),
        (ReadinessState(watching_jobs=False), "jobs not watched"),
        (ReadinessState(enforcement_unproven=True), "ownership is not enforced"),
        (ReadinessState(draining=True), "draining"),
    ],
)
def test_each_reason_for_not_being_ready_is_named(signs: ReadinessState, words: str) -> None:
    assert unready_reasons(signs).startswith(words)
    assert "\n" not in unready_reasons(signs)


def test_a_worker_without_such_a_reason_is_ready() -> None:
    assert unready_reasons(ReadinessState()) == ""


def test_all_reasons_are_named_at_once() -> None:
    assert (
        len(unready_reasons(ReadinessState(registered=False, queue_known=False)).splitlines()) == 2
    )


def test_the_probes_answer_from_a_thread_of_their_own() -> None:
    harness = WorkerHealthHarness()
    port = free_port()
    server = HealthServer(listen("127.0.0.1", port), harness.health, CollectorRegistry())
    probes = Probes(port)
    server.start()
    try:
        assert probes.ask("/livez") == (200, "ok\n")
        assert probes.ask("/readyz") == (200, "ok\n")
        assert probes.ask("/metrics") == (200, "")
        assert probes.ask("/")[0] == 404
        harness.signs = ReadinessState(draining=True)
        code, body = probes.ask("/readyz")
        assert (code, body.split(":")[0]) == (503, "draining")
    finally:
        server.stop()
    assert probes.ask("/livez")[0] == 0
    assert "health" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_that_is_taken_is_one_clear_line(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}: .*in use.*--health-port") as error:
            listen(host, port)
    assert "\n" not in str(error.value)


def test_a_host_that_is_nowhere_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match=r"cannot serve .* 192\.0\.2\.1 port 1025.*--health-host"):
        listen("192.0.2.1", 1025)


def test_port_0_serves_nothing() -> None:
    with serve_health(Settings(health_port=0), WorkerHealthHarness().health, CollectorRegistry()):
        assert "health" not in {thread.name for thread in threading.enumerate()}
