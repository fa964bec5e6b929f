"""The heartbeat thread: when it renews, when it gives a lease up, and that it survives."""

import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app.context import Stop
from asyncjob_worker.clock import boottime
from asyncjob_worker.leases import heartbeat as heartbeat_module
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.held_job import FENCED_SECONDS, HeldJob
from asyncjob_worker.leases.stall_detector import (
    EventLoopStallDetector,
    LivenessCounter,
    Watchdog,
    current_line,
)
from asyncjob_worker.metrics import Metrics
from support.parts.callbacks import ignore
from support.parts.worker_parts import held

LEASE = 60.0


def heartbeat(report_interval: float = 1.0) -> HeartbeatThread:
    return HeartbeatThread(
        None, "ns", report_interval, LivenessCounter(), metrics=Metrics(), blocking_job=ignore
    )


def due(kept: HeldJob) -> bool:
    """Return whether a tick right now renews the job."""
    thread, renewed = heartbeat(), list[HeldJob]()
    thread.add(kept)
    thread._tick(renewed.append)
    return bool(renewed)


def ago(seconds: float, **changes: Any) -> HeldJob:
    return held(sent_at=boottime() - seconds, **changes)


def test_a_lease_is_renewed_after_a_third() -> None:
    assert not due(ago(LEASE / 3 - 1))
    assert due(ago(LEASE / 3))


def test_a_report_is_stored_within_about_a_second() -> None:
    early, late = ago(0.5), ago(1.5)
    for job in (early, late):
        job.progress(1, None)
    assert not due(early)
    assert due(late)


def test_a_report_waits_for_the_outcome_that_carries_it() -> None:
    job = ago(1.5)
    job.progress(1, None)
    job.writing_outcome = True
    assert not due(job)
    job.sent_at -= LEASE / 3
    assert due(job)


def test_a_handler_is_stopped_before_its_lease_can_have_ended() -> None:
    job = ago(LEASE - 0.9)
    with capture_logs() as logs:
        assert not due(job)
    assert job.stopped is Stop.FENCED
    assert "lease lost" in logs[0]["event"]


def test_a_job_whose_outcome_is_being_written_is_not_given_up() -> None:
    job = ago(LEASE + 5)
    job.writing_outcome = True
    assert due(job)
    assert job.stopped is None


def test_a_fenced_job_is_renewed_no_more() -> None:
    job = ago(LEASE / 2)
    job.stop(Stop.FENCED)
    assert not due(job)


def test_a_job_that_is_told_to_stop_keeps_its_lease_meanwhile() -> None:
    job = ago(LEASE / 2)
    job.stop(Stop.CANCELLED)
    assert due(job)


def test_a_job_is_kept_until_it_is_let_go() -> None:
    thread, job, renewed = heartbeat(), ago(LEASE / 3), list[HeldJob]()
    thread.add(job)
    thread._tick(renewed.append)
    assert renewed == [job]
    thread.remove(job)
    thread.remove(job)
    thread._tick(renewed.append)
    assert renewed == [job]


def test_of_two_claims_of_one_job_each_is_kept_for_itself() -> None:
    thread, old, new = heartbeat(), ago(LEASE / 3), ago(LEASE / 3)
    assert old.job.uid == new.job.uid
    thread.add(old)
    thread.add(new)
    thread.remove(old)
    renewed = list[HeldJob]()
    thread._tick(renewed.append)
    assert renewed == [new]
    new.sent_at -= LEASE
    with capture_logs():
        thread._tick(renewed.append)
    assert new.stopped is Stop.FENCED


def test_a_fenced_handler_that_can_be_killed_is_killed_without_the_event_loop() -> None:
    thread, of, killed = heartbeat(), held(), list[int]()
    thread.add(of)
    with of.killable(lambda: killed.append(1)), capture_logs() as logs:
        of.stop(Stop.FENCED)
        assert of.fenced_at is not None
        thread._tick(lambda _: None)
        assert not killed
        of.fenced_at -= FENCED_SECONDS + 0.01
        thread._tick(lambda _: None)
        thread._tick(lambda _: None)
    assert (killed, len(logs)) == ([1], 1)


def test_the_thread_survives_whatever_happens_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, again = list[int](), threading.Event()

    async def broken(*_: Any) -> None:
        tries.append(1)
        if len(tries) > 1:
            again.set()
        raise RuntimeError("no kubeconfig today")

    class NoPause:
        def __init__(self, **_: float) -> None: ...

        def next_delay(self) -> float:
            return 0.0

    monkeypatch.setattr(heartbeat_module, "load_access", broken)
    monkeypatch.setattr(heartbeat_module, "ExponentialBackoff", NoPause)
    thread = heartbeat()
    with capture_logs() as logs:
        thread.start()
        assert again.wait(10)
        alive = thread.alive
        thread.stop()
    assert (alive, thread.alive) == (True, False)
    assert "starts again" in logs[0]["event"]


def test_a_watchdog_counts_its_checks_without_a_heartbeat() -> None:
    liveness = LivenessCounter()
    watchdog = Watchdog(liveness)
    assert [watchdog.check() for _ in range(3)] == [0, 1, 2]
    liveness.tick()
    assert watchdog.check() == 0


def test_a_stall_is_logged_once_with_the_jobs_and_the_line_and_again_when_it_ends() -> None:
    liveness = LivenessCounter()
    stalls = EventLoopStallDetector(
        liveness,
        Metrics(),
        allowed_misses=2,
        tick=0.5,
        loop_thread=threading.get_ident,
        blocking_job=ignore,
    )
    with capture_logs() as logs:
        for _ in range(6):
            stalls.check(lambda: ["j1", "j2"])
        liveness.tick()
        stalls.check(list)
    assert [entry["event"].split(":")[0] for entry in logs] == [
        "event loop blocked",
        "event loop runs again",
    ]
    assert logs[0]["jobs"] == ["j1", "j2"]
    assert "stall_detector.py" in logs[0]["at"]


class StallDetectorHarness:
    """A stall detector that is told by the test which job blocks."""

    def __init__(self) -> None:
        self.liveness = LivenessCounter()
        self.metrics = Metrics()
        self.culprit: HeldJob | None = None
        self.stalls = EventLoopStallDetector(
            self.liveness,
            self.metrics,
            allowed_misses=2,
            tick=0.5,
            loop_thread=threading.get_ident,
            blocking_job=lambda: self.culprit,
        )

    def look(self, times: int) -> None:
        for _ in range(times):
            self.stalls.check(list)

    def count(self, name: str, type_: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"asyncjob_worker_{name}", {"type": type_})


def test_the_handler_that_blocks_is_named_in_log_and_metrics() -> None:
    harness = StallDetectorHarness()
    harness.culprit = held(name="j7")
    with capture_logs() as logs:
        harness.look(6)
    assert (logs[0]["job"], logs[0]["type"]) == ("j7", "echo")
    assert harness.count("event_loop_stalls_total", "echo") == 1
    assert harness.count("event_loop_stalled_seconds_total", "echo") == 2.5


def test_a_stall_that_passes_on_to_another_handler_names_both() -> None:
    harness = StallDetectorHarness()
    with capture_logs() as logs:
        for name in ("a", "b"):
            harness.culprit = held(name=name)
            harness.look(4)
    assert [entry["job"] for entry in logs] == ["a", "b"]
    assert harness.count("event_loop_stalls_total", "echo") == 2


def test_a_stall_that_is_nobodys_is_counted_all_the_same() -> None:
    harness = StallDetectorHarness()
    with capture_logs() as logs:
        harness.look(4)
    assert [(entry["job"], entry["type"]) for entry in logs] == [("unknown", "unknown")]
    assert harness.count("event_loop_stalls_total", "") == 1


def test_a_loop_that_was_busy_for_a_moment_is_not_counted() -> None:
    harness = StallDetectorHarness()
    harness.culprit = held()
    for _ in range(5):
        harness.look(3)
        harness.liveness.tick()
    assert harness.count("event_loop_stalls_total", "echo") is None


def handler_at_work(inside: threading.Event, leave: threading.Event) -> None:
    inside.set()
    leave.wait(30)


@pytest.mark.parametrize(
    "called_by", ["asyncjob_worker.isolation.executor", "asyncio.events", "uvloop"]
)
def test_the_handlers_own_line_is_named_though_it_has_called_something(called_by: str) -> None:
    """Between the runtime's frame and the innermost one, in threading.py, lies the handler's."""
    inside, leave = threading.Event(), threading.Event()
    runtime: dict[str, Any] = {"__name__": called_by, "handler": handler_at_work}
    call = compile("handler(inside, leave)", "runtime.py", "exec")
    thread = threading.Thread(
        target=exec, args=(call, {**runtime, "inside": inside, "leave": leave})
    )
    thread.start()
    inside.wait(30)
    while "by now" not in (at := current_line(thread.ident)):
        assert thread.is_alive()
    leave.set()
    thread.join()
    own, innermost = at.split(", by now ")
    assert own.startswith(f"{__file__}:")
    assert own.endswith(" in handler_at_work")
    assert "threading.py" in innermost


def test_a_thread_that_is_gone_is_nowhere() -> None:
    assert current_line(None) == "unknown"
