"""How many jobs one round of admission takes, whatever their keys."""

import pytest

from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.admission.plan import (
    AdmissionSnapshot,
    ReservationState,
    plan_admission,
)
from asyncjob_operator.core.admission.rate_window import RateWindow
from asyncjob_operator.core.admission.reservations import NO_RESERVATIONS
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import QueueLimits

NOW = Now(monotonic=100.0, wall=1_800_000_000.0)


def admitted(
    *, slots: int | None, active: int = 0, limit: int | None = None, paused: bool = False
) -> int:
    """Return how many of 2,000 pending jobs a round admits."""
    pending = PendingQueue(None)
    for number in range(2000):
        pending.add(PendingJob(f"u{number}", f"j{number}", "t", "", 0, float(number)))
    snapshot = AdmissionSnapshot(
        limits=QueueLimits(max_concurrency=limit, max_concurrency_per_key=None),
        paused=paused,
        reservations=NO_RESERVATIONS,
        active={f"a{number}": "" for number in range(active)},
        pending=pending,
        rate_window=RateWindow(),
        slots=slots,
    )
    return len(plan_admission(snapshot, lambda _: ReservationState.WAITING, NOW).admitted)


@pytest.mark.parametrize(
    ("slots", "active", "jobs"),
    [
        (1, 0, 2),  # one beside the slot, however few there are
        (3, 0, 4),
        (10, 0, 15),
        (10, 6, 9),
        (10, 15, 0),
        (10, 16, 0),
        (0, 0, 1),
    ],
)
def test_half_as_many_as_there_are_slots_are_admitted_in_advance(
    slots: int, active: int, jobs: int
) -> None:
    assert admitted(slots=slots, active=active) == jobs


def test_where_the_slots_are_not_known_the_limit_counts_or_what_the_status_can_hold() -> None:
    assert admitted(slots=None, active=2, limit=5) == 3
    assert admitted(slots=None) == 1000


def test_a_limit_below_the_slots_counts_and_a_paused_queue_takes_none() -> None:
    assert admitted(slots=10, limit=4) == 4
    assert admitted(slots=10, paused=True) == 0
