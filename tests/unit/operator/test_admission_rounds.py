"""Rounds of admission: what is written, and when a queue is looked at again by time alone."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from asyncjob.errors import ConflictError
from asyncjob.kube import KubeSession
from asyncjob.names import queue_path
from asyncjob_operator.controllers.admission import (
    STALE_RESERVATION_SECONDS,
    AdmissionRounds,
    ReservationController,
)
from asyncjob_operator.controllers.workqueue import DelayingQueue, ItemBackoff
from asyncjob_operator.core.admission.plan import AdmissionPlan
from asyncjob_operator.core.admission.reservations import Reservation
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession
from support.objects.snapshots import at

PATH = queue_path("ns", "q")


class AdmissionHarness:
    """One queue whose plans the test makes, on a clock in its hands."""

    def __init__(self) -> None:
        self.time = 0.0
        self.delaying_queue = DelayingQueue()
        self.again: list[str] = []
        self.plans: list[AdmissionPlan] = []
        self.put_backs = 0
        self.session = FakeSession()
        self.session.put(PATH, {"metadata": {"name": "q"}})
        self.controller = ReservationController(
            cast("KubeSession", self.session),
            cast("AdmissionRounds", self),
            now=lambda: at(self.time),
            leads=lambda: True,
            enqueue=self.again.append,
            delaying_queue=self.delaying_queue,
            backoff=ItemBackoff(1.0, 60.0),
            metrics=OperatorMetrics(),
        )

    def due_at(self, time: float) -> list[str]:
        """Move the clock, and take the queues that are due by then."""
        self.time = time
        return self.delaying_queue.pop_due(time, 10)

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
def harness() -> AdmissionHarness:
    return AdmissionHarness()


async def test_places_that_are_over_are_struck_off_after_a_while_and_not_before(
    harness: AdmissionHarness,
) -> None:
    await harness.round(reclaimed=1)
    assert harness.due_at(STALE_RESERVATION_SECONDS - 0.0004) == []
    await harness.round(reclaimed=1)
    assert not harness.session.writes
    assert harness.due_at(STALE_RESERVATION_SECONDS) == ["ns/q"]
    await harness.round(reclaimed=1)
    assert len(harness.session.writes) == 1
    assert harness.due_at(1e9) == []


async def test_of_several_times_to_look_again_the_first_counts(harness: AdmissionHarness) -> None:
    await harness.round(next_at=30.0)
    await harness.round(next_at=5.0)
    await harness.round(next_at=10.0)
    assert harness.due_at(4.9) == []
    assert harness.due_at(5.0) == ["ns/q"]
    assert harness.due_at(1e9) == []


async def test_a_conflict_is_looked_at_again_at_once_and_nobody_is_lost(
    harness: AdmissionHarness,
) -> None:
    harness.session.fail("PATCH", f"{PATH}/status", ConflictError("changed"))
    await harness.round(reclaimed=1)
    harness.time = 2 * STALE_RESERVATION_SECONDS
    await harness.round(reclaimed=1)
    assert harness.again == ["ns/q"]
    assert harness.put_backs == 1
