"""What health and leadership follow from."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.errors import UnknownOutcomeError
from asyncjob.kube import KubeSession
from asyncjob.names import CRON_JOBS, JOBS, QUEUES
from asyncjob_operator.kube.kopf_session import KopfSession, WatchedCollection
from asyncjob_operator.kube.leader_election import AlwaysLeader
from asyncjob_operator.operator import Operator
from asyncjob_operator.settings import Settings
from asyncjob_operator.supervision import LoopFunction, supervise
from asyncjob_operator.telemetry.loop_health import HealthMonitor, LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics

LIMIT = 900.0


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vitals(clock: Clock) -> HealthMonitor:
    return HealthMonitor(LIMIT, clock)


def test_a_loop_that_does_not_turn_is_stuck_after_its_limit(
    vitals: HealthMonitor, clock: Clock
) -> None:
    vitals.loop("requeue timer", 60.0)
    vitals.loop("job reconcilers")
    clock.at += 60
    assert not vitals.stalled()
    clock.at += 1
    assert vitals.stalled() == "the loop 'requeue timer' has made no attempt for 61 s"
    vitals.loop("requeue timer").tick()
    assert not vitals.stalled()


def test_waiting_for_what_need_not_come_is_not_being_stuck(
    vitals: HealthMonitor, clock: Clock
) -> None:
    health = vitals.loop("job reconcilers")
    with health.idle():
        clock.at += 10 * LIMIT
        assert not vitals.stalled()
    assert not vitals.stalled()
    clock.at += LIMIT + 1
    assert vitals.stalled()


def test_a_watch_whose_requests_fail_turns_but_is_silent(
    vitals: HealthMonitor, clock: Clock
) -> None:
    health = vitals.loop("watch of jobs")
    clock.at += LIMIT + 1
    health.attempted()
    assert not vitals.stalled()
    assert vitals.without_progress(["watch of jobs"]) == "nothing of the watch of jobs for 901 s"
    health.progressed()
    assert not vitals.without_progress(["watch of jobs"])


def test_one_silent_watch_of_two_is_not_all_of_them(vitals: HealthMonitor, clock: Clock) -> None:
    one, other = vitals.loop("one"), vitals.loop("other")
    clock.at += LIMIT + 1
    other.tick()
    assert vitals.without_progress(["other", "one"])
    assert not vitals.all_without_progress(["other", "one"])
    clock.at += LIMIT + 1
    one.attempted()
    assert vitals.all_without_progress(["other", "one"])


class NoPause:
    def next_delay(self) -> float:
        return 0.0

    def reset(self) -> None: ...


@pytest.mark.parametrize(
    ("error", "is_stuck"), [(UnknownOutcomeError("no answer"), False), (KeyError("bug"), True)]
)
async def test_a_loop_that_ends_by_itself_again_and_again_is_stuck_and_an_outage_is_not(
    vitals: HealthMonitor, clock: Clock, error: Exception, is_stuck: bool
) -> None:
    long_enough = asyncio.Event()

    async def fail(_health: LoopHealth) -> None:
        clock.at += 100
        if clock.at > 1000 + 2 * LIMIT:
            long_enough.set()
        raise error

    health = vitals.loop("loop")
    supervised = asyncio.create_task(supervise(health, fail, cast("Any", NoPause())))
    await long_enough.wait()
    supervised.cancel()
    assert bool(vitals.stalled()) is is_stuck


class OperatorHealthHarness:
    """An operator of two namespaces that has not begun, and the clock of its vitals."""

    def __init__(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("asyncjob_operator.operator.monotonic", clock)
        settings = Settings(namespaces=("one", "two"), resync_interval=300.0)
        session = cast("KubeSession", SimpleNamespace(server_time=lambda: None))
        watches = KopfSession(cast("Any", None))
        self.operator = Operator(settings, session, AlwaysLeader(), OperatorMetrics(), watches)


@pytest.fixture
def harness(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> OperatorHealthHarness:
    return OperatorHealthHarness(clock, monkeypatch)


def test_who_has_not_listed_all_jobs_is_neither_ready_nor_fit_but_alive(
    harness: OperatorHealthHarness,
) -> None:
    operator = harness.operator
    assert operator.check_readiness() == operator.check_fitness() == "jobs are not listed yet"
    assert operator.check_liveness() == ""


def test_when_kopf_lists_again_that_is_counted_and_what_it_lists_is_compared(
    harness: OperatorHealthHarness,
) -> None:
    operator = harness.operator
    for resource in (QUEUES, CRON_JOBS):
        operator.on_relist(WatchedCollection(resource, "two"))
        timers = operator._components.kopf_collections[resource]._timers
        asked = {namespace: timer._triggered.is_set() for namespace, timer in timers.items()}
        assert asked == {"one": False, "two": True}
    operator.on_relist(WatchedCollection(JOBS, "one"))
    assert operator._components.job_resync_timer._triggered.is_set()
    assert operator._metrics.watch_restarts._value.get() == 3


@pytest.mark.parametrize("metric", ["watch_restarts", "recovery_errors"])
async def test_a_loop_that_fails_is_counted(
    harness: OperatorHealthHarness, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    async def fail(*_: object) -> None:
        raise UnknownOutcomeError("no answer")

    for function in ("wait_for_job_api", "run_requeue_timer"):
        monkeypatch.setattr(f"asyncjob_operator.operator.{function}", fail)
    operator = harness.operator
    loops: dict[str, LoopFunction] = {
        "watch_restarts": partial(operator._watch_jobs, None),
        "recovery_errors": operator._run_requeue_timer,
    }
    with pytest.raises(UnknownOutcomeError):
        await loops[metric](HealthMonitor(LIMIT, lambda: 0.0).loop("loop"))
    assert getattr(operator._metrics, metric)._value.get() == 1


async def test_a_queue_whose_time_has_come_is_looked_at_again(
    harness: OperatorHealthHarness,
) -> None:
    operator, started = harness.operator, dict[str, LoopFunction]()
    start = SimpleNamespace(start=lambda name, run, *_, **__: started.setdefault(name, run))
    operator._tasks = cast("Any", start)
    operator._start_loops()
    parts = operator._components
    parts.admission_delaying_queue.advance("one/batch", 0.0)
    health = HealthMonitor(LIMIT, lambda: 0.0).loop("admission requeue timer")
    timer = asyncio.ensure_future(started[health.name](health))
    assert await parts.admission_reconcilers._queue.get() == "one/batch"
    timer.cancel()


def test_one_silent_namespace_makes_unready_and_all_of_them_unfit(
    harness: OperatorHealthHarness, clock: Clock
) -> None:
    operator = harness.operator
    operator._synced = True
    operator._follow_kopf()
    for namespace in ("one", "two"):
        operator._on_job_watch_progress(namespace)
    operator._health.loop("requeue timer", 1e9)
    assert (operator.check_readiness(), operator.check_fitness()) == ("", "")
    clock.at += LIMIT + 1
    operator._on_namespace_resynced("two")
    for namespace in ("one", "two"):
        operator._health.loop(f"watch of jobs in {namespace}").attempted()
    operator._health.loop("requeue timer").tick()
    assert operator.check_readiness() == "nothing of the watch of jobs in one for 901 s"
    assert (operator.check_fitness(), operator.check_liveness()) == ("", "")
    clock.at += LIMIT + 1
    assert "watch of jobs in one" in operator.check_fitness()


def test_the_limit_follows_from_the_resync_interval_and_lets_bookmarks_and_pauses_be_late() -> None:
    assert Settings().silence_limit == LIMIT
    assert Settings(resync_interval=1).silence_limit == 180
    assert Settings(resync_interval=1, backoff_max=600).silence_limit == 1200
