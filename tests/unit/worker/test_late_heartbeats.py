"""A heartbeat thread that gets to run too late: what it notices, claims and gives up."""

from typing import Any

import pytest

from asyncjob.app.context import Stop
from asyncjob.lifecycle.policy import PolicyLayer
from asyncjob_worker.claiming.claimer import Claimer
from asyncjob_worker.claiming.queue_state import QueueState
from asyncjob_worker.clock import boottime
from asyncjob_worker.errors import HeartbeatLagError
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.heartbeat_lag import WINDOW_SECONDS, HeartbeatLag
from asyncjob_worker.leases.ownership import EnforcementCheck
from asyncjob_worker.leases.stall_detector import LivenessCounter
from asyncjob_worker.metrics import Metrics
from support.parts.callbacks import ignore
from support.parts.worker_parts import ME, ScriptedSession, an_app, candidate, held, job

TICK = 0.25


class Thread:
    """A thread whose clock the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lag = HeartbeatLag(TICK, lambda: self.now)
        self.lag.tick()

    def run(self, *gaps: float) -> None:
        for gap in gaps:
            self.now += gap
            self.lag.tick()


@pytest.fixture
def thread() -> Thread:
    return Thread()


def test_one_that_runs_in_time_keeps_the_shortest_lease_there_is(thread: Thread) -> None:
    thread.run(*[TICK] * 100)
    assert thread.lag.seconds == 0.0
    assert thread.lag.shortest_lease < 5


@pytest.mark.parametrize(
    ("late", "keeps", "gives_up"), [(0.5, 5, 1), (1.1, 5, 1), (1.3, 10, 5), (10.0, 60, 30)]
)
def test_the_later_it_is_the_longer_a_lease_has_to_be(
    thread: Thread, late: float, keeps: int, gives_up: int
) -> None:
    thread.run(TICK + late)
    assert thread.lag.seconds == pytest.approx(late)
    assert gives_up < thread.lag.shortest_lease <= keeps


def test_one_that_does_not_run_at_all_is_late_already(thread: Thread) -> None:
    thread.now += 8.0
    assert thread.lag.seconds == pytest.approx(8.0 - TICK)


def test_what_was_late_is_forgotten_after_a_while(thread: Thread) -> None:
    thread.run(5.0)
    thread.run(*[TICK] * round(WINDOW_SECONDS / TICK / 2))
    assert thread.lag.seconds == pytest.approx(5.0 - TICK)
    thread.run(*[TICK] * round(2 * WINDOW_SECONDS / TICK))
    assert thread.lag.seconds == 0.0


def lease_of(seconds: int, **changes: Any) -> Any:
    effective = {**job()["status"]["effective"], "leaseDurationSeconds": seconds}
    return held(effective=effective, **changes)


@pytest.fixture
def heartbeat(thread: Thread) -> HeartbeatThread:
    made = HeartbeatThread(
        None, "ns", 1.0, LivenessCounter(), metrics=Metrics(), blocking_job=ignore
    )
    made.lag = thread.lag
    return made


@pytest.mark.parametrize(("late", "after"), [(0.0, 4.0), (1.0, 3.0), (100.0, 2.75)])
def test_a_held_lease_is_given_up_the_earlier_the_later_the_thread_has_been(
    thread: Thread, heartbeat: HeartbeatThread, late: float, after: float
) -> None:
    thread.run(TICK + late)
    early = lease_of(5, sent_at=boottime() - after + 0.2)
    due = lease_of(5, sent_at=boottime() - after - 0.2)
    for of in (early, due):
        heartbeat.add(of)
    heartbeat._tick(lambda _: None)
    assert (early.stopped, due.stopped) == (None, Stop.FENCED)


async def test_a_lease_that_cannot_be_kept_is_not_claimed_and_longer_ones_are(
    thread: Thread,
) -> None:
    session = ScriptedSession(merge_patch=[lambda call: job(**call.body["status"])])
    enforcement = EnforcementCheck(session.session, required=False)
    queue = QueueState(lambda: None, on_unlimited=ignore)
    claimer = Claimer(session.session, an_app(), queue, ME, enforcement, lag=thread.lag)
    thread.run(TICK + 2.0)
    with pytest.raises(HeartbeatLagError, match=r"2\.0 s late: no lease below 7 s can be kept"):
        await claimer.claim(candidate(policy=PolicyLayer(lease_duration_seconds=5)))
    assert (session.calls, claimer.counts.postponed) == ([], 1)
    assert await claimer.claim(candidate(policy=PolicyLayer(lease_duration_seconds=60)))
