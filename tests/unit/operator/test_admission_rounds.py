"""Rounds of admission: what is written, and when a queue is looked at again by time alone."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.errors import ConflictError
from asyncjob.kube import KubeSession
from asyncjob.names import queue_path
from asyncjob_operator.controllers import admission
from asyncjob_operator.controllers.admission import (
    STALE_RESERVATION_SECONDS,
    AdmissionRounds,
    ReservationController,
)
from asyncjob_operator.controllers.workqueue import ItemBackoff
from asyncjob_operator.core.admission.plan import AdmissionPlan
from asyncjob_operator.core.admission.reservations import Reservation
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.fake_session import FakeSession
from support.snapshots import at

PATH = queue_path("ns", "q")


class Timer:
    """Goes off when the test says so."""

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when, self.call, self.cancelled = when, call, False

    def cancel(self) -> None:
        self.cancelled = True


class AdmissionHarness:
    """One queue whose plans the test makes, on a clock in its hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 0.0
        self.timers: list[Timer] = []
        self.again: list[str] = []
        self.plans: list[AdmissionPlan] = []
        self.put_backs = 0
        self.session = FakeSession()
        self.session.put(PATH, {"metadata": {"name": "q"}})
        loop = SimpleNamespace(time=lambda: self.time, call_at=self.call_at)
        monkeypatch.setattr(admission, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
        self.controller = ReservationController(
            cast("KubeSession", self.session),
            cast("AdmissionRounds", self),
            now=lambda: at(self.time),
            leads=lambda: True,
            enqueue=self.again.append,
            backoff=ItemBackoff(1.0, 60.0),
            metrics=OperatorMetrics(),
        )

    def call_at(self, when: float, call: Callable[[str], None], key: str) -> Timer:
        self.timers.append(Timer(when, lambda: call(key)))
        return self.timers[-1]

    def go_off(self) -> None:
        """Let the one timer that is set go off."""
        [timer] = [timer for timer in self.timers if not timer.cancelled]
        self.timers.clear()
        timer.call()

    async def round(self, **changes: Any) -> None:
        fields = {
            "version": "1",
            "reservations": (),
            "recent_starts": (),
            "admitted": (),
            "reclaimed": 0,
        }
        self.plans.append(AdmissionPlan(**{**fields, "next_at": None, **changes}))
        await self.controller.reconcile("ns/q")

    def unverified(self, _queue: tuple[str, str]) -> Sequence[Reservation]:
        return ()

    def record(self, *_: object) -> None: ...

    def plan(self, *_: object) -> AdmissionPlan:
        return self.plans.pop()

    def requeue(self, _plan: AdmissionPlan) -> None:
        self.put_backs += 1

    def on_queue_update(self, _obj: object) -> None: ...

    def on_queue_delete(self, _queue: tuple[str, str]) -> None: ...


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> AdmissionHarness:
    return AdmissionHarness(monkeypatch)


async def test_places_that_are_over_are_struck_off_after_a_while_though_a_timer_is_early(
    harness: AdmissionHarness,
) -> None:
    await harness.round(reclaimed=1)
    harness.time = STALE_RESERVATION_SECONDS - 0.0004
    harness.go_off()
    assert harness.again == ["ns/q"]
    await harness.round(reclaimed=1)
    assert not harness.session.writes
    harness.time = STALE_RESERVATION_SECONDS + 0.001
    harness.go_off()
    assert harness.again == ["ns/q", "ns/q"]
    await harness.round(reclaimed=1)
    assert len(harness.session.writes) == 1


async def test_of_several_times_to_look_again_the_first_counts(harness: AdmissionHarness) -> None:
    await harness.round(next_at=30.0)
    await harness.round(next_at=5.0)
    await harness.round(next_at=10.0)
    assert [timer.when for timer in harness.timers if not timer.cancelled] == [5.0]


async def test_a_conflict_is_looked_at_again_at_once_and_nobody_is_lost(
    harness: AdmissionHarness,
) -> None:
    harness.session.fail("PATCH", f"{PATH}/status", ConflictError("changed"))
    await harness.round(reclaimed=1)
    harness.time = 2 * STALE_RESERVATION_SECONDS
    await harness.round(reclaimed=1)
    assert harness.again == ["ns/q"]
    assert harness.put_backs == 1
