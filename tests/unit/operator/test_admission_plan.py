"""How many jobs one round of admission takes, whatever their keys."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from asyncjob.json_types import child, items
from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.admission.plan import (
    AdmissionPlan,
    AdmissionSnapshot,
    ReservationState,
    plan_admission,
)
from asyncjob_operator.core.admission.rate_window import RateWindow
from asyncjob_operator.core.admission.reservations import (
    NO_RESERVATIONS,
    Reservation,
    Reservations,
    StartRecord,
    read_reservations,
    reservations_body,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import QueueLimits, StartRateLimit
from support.objects.snapshots import at, stamp

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


KEYED = QueueLimits(max_concurrency_per_key=2)


def reserved(name: str, key: str = "", seconds: float = 0.0) -> Reservation:
    return Reservation(f"uid-{name}", name, "t", key, stamp(seconds))


def plan(
    *pending: PendingJob,
    reservations: Mapping[Reservation, ReservationState] = MappingProxyType({}),
    now: Now = NOW,
    **changes: Any,
) -> AdmissionPlan:
    queue = PendingQueue(None)
    for one in pending:
        queue.add(one)
    known = {
        "limits": QueueLimits(max_concurrency=100),
        "active": {},
        "rate_window": RateWindow(),
        **changes,
    }
    by_uid = {reservation.uid: reservation for reservation in reservations}
    snapshot = AdmissionSnapshot(
        paused=False,
        reservations=Reservations("7", by_uid),
        pending=queue,
        slots=None,
        **known,
    )
    return plan_admission(snapshot, lambda one: reservations[one], now)


def waiting(name: str, key: str = "") -> PendingJob:
    return PendingJob(f"uid-{name}", name, "t", key, 0, float(ord(name[-1])))


def test_a_key_gets_as_many_places_as_its_limit_whatever_holds_the_others() -> None:
    made = plan(
        *(waiting(f"{key}{number}", key) for key in ("a", "b", "c", "") for number in range(3)),
        limits=KEYED,
        active={"uid-runs": "a"},
        reservations={
            reserved("runs", "a"): ReservationState.IN_USE,
            reserved("waits", "b"): ReservationState.WAITING,
        },
    )
    assert [job.name for job in made.admitted if job.key == "a"] == ["a0"]
    assert [job.name for job in made.admitted if job.key == "b"] == ["b0"]
    assert [job.name for job in made.admitted if job.key == "c"] == ["c0", "c1"]
    assert [job.name for job in made.admitted if not job.key] == ["0", "1", "2"]


def test_a_status_never_holds_more_reservations_than_its_schema_allows() -> None:
    jobs = [waiting(f"j{number}") for number in range(3)]
    held = {reserved(str(number)): ReservationState.IN_USE for number in range(998)}
    limits = QueueLimits(rate_limit=StartRateLimit(100, 1))
    assert len(plan(*jobs, reservations=held, limits=limits).admitted) == 2


def test_a_plan_keeps_every_reservation_but_those_to_be_reclaimed() -> None:
    reservations = {reserved(state.name): state for state in ReservationState}
    made = plan(waiting("new", "k"), reservations=reservations)
    new = Reservation("uid-new", "new", "t", "k", NOW.timestamp)
    kept = [reserved(name) for name in ("WAITING", "IN_USE", "UNKNOWN")]
    assert made.reservations == (*kept, new)
    assert (made.version, made.reclaimed, made.next_at) == ("7", 1, None)
    assert made.recent_starts == ()


def test_a_start_ages_from_when_its_job_is_seen_admitted() -> None:
    window, one = RateWindow(), reserved("one")
    window.observe_starts([StartRecord(stamp(0), 1)], at(0.0), just_changed=True)
    limits = QueueLimits(rate_limit=StartRateLimit(1, 10))

    def next_at(seconds: float, state: ReservationState) -> float | None:
        made = plan(
            waiting("x"),
            reservations={one: state},
            limits=limits,
            rate_window=window,
            now=at(seconds),
        )
        return made.next_at if not made.admitted else None

    assert next_at(5.0, ReservationState.WAITING) == 15.0
    assert next_at(7.0, ReservationState.IN_USE) == 17.0
    assert next_at(9.0, ReservationState.RECLAIMABLE) == 17.0


def test_a_rate_bounds_what_a_round_takes_and_says_when_there_is_more() -> None:
    window = RateWindow()
    limits = QueueLimits(rate_limit=StartRateLimit(3, 10))
    window.observe_starts([StartRecord(stamp(0), 1)], at(0.0), just_changed=True)
    jobs = [waiting(f"j{number}") for number in range(5)]
    made = plan(*jobs, limits=limits, rate_window=window, now=at(4.0))
    assert [job.name for job in made.admitted] == ["j0", "j1"]
    assert made.recent_starts == (StartRecord(stamp(0), 1), StartRecord(stamp(4), 2))
    assert made.next_at == 10.0


def test_without_a_job_that_waits_nobody_looks_again_at_the_rate() -> None:
    window = RateWindow()
    window.observe_starts([StartRecord(stamp(0), 1)], at(0.0), just_changed=True)
    limits = QueueLimits(rate_limit=StartRateLimit(1, 10))
    made = plan(limits=limits, rate_window=window, now=at(1.0))
    assert (made.next_at, made.recent_starts) == (None, (StartRecord(stamp(0), 1),))


def test_what_a_plan_writes_is_read_back_as_it_was() -> None:
    reservations = [reserved("a", "key"), Reservation("uid-b", "b", "", "", stamp(1))]
    starts = (StartRecord(stamp(0), 3), StartRecord(stamp(2), 1))
    body = reservations_body("7", reservations, starts)
    assert read_reservations(body) == Reservations(
        "7", {one.uid: one for one in reservations}, starts
    )
    bare = items(child(body, "status"), "reservations")[1]
    assert bare == {"uid": "uid-b", "name": "b", "time": stamp(1)}


RATED = QueueLimits(max_concurrency=4, rate_limit=StartRateLimit(1, 60))


def resuming(
    resumed: int, starting: int, *, limits: QueueLimits = RATED, active: int = 0
) -> AdmissionPlan:
    """Plan a round for jobs that go on and jobs that start."""
    queues = PendingQueue(None), PendingQueue(None)
    for queue, count, name in ((queues[0], resumed, "r"), (queues[1], starting, "s")):
        for number in range(count):
            queue.add(PendingJob(f"{name}{number}", f"{name}{number}", "t", "k", 0, float(number)))
    snapshot = AdmissionSnapshot(
        limits=limits,
        paused=False,
        reservations=NO_RESERVATIONS,
        active={f"a{number}": "" for number in range(active)},
        pending=queues[1],
        rate_window=RateWindow(),
        slots=None,
        resumed=queues[0],
    )
    return plan_admission(snapshot, lambda _: ReservationState.WAITING, NOW)


def names(plan: AdmissionPlan) -> list[str]:
    return [job.name for job in plan.admitted]


def test_who_goes_on_after_a_wait_takes_a_place_and_nothing_of_the_rate() -> None:
    plan = resuming(2, 5)
    assert names(plan) == ["r0", "r1", "s0"]
    assert [one.resumes for one in plan.reservations] == [True, True, False]
    assert [start.count for start in plan.recent_starts] == [1]
    assert names(resuming(9, 5)) == ["r0", "r1", "r2", "r3"]
    assert names(resuming(9, 5, active=3)) == ["r0"]
    alone = resuming(3, 0)
    assert (names(alone), alone.recent_starts) == (["r0", "r1", "r2"], ())


def test_who_goes_on_after_a_wait_takes_a_place_of_its_key() -> None:
    limits = QueueLimits(max_concurrency_per_key=2, rate_limit=StartRateLimit(1, 60))
    assert names(resuming(3, 1, limits=limits)) == ["r0", "r1"]


def test_a_reservation_of_who_goes_on_does_not_prolong_a_start() -> None:
    window = RateWindow()
    window.observe_starts([StartRecord(stamp(0), 1)], NOW, just_changed=True)
    later = replace(NOW, monotonic=NOW.monotonic + 61)
    for resumes, allowed in ((False, 0), (True, 1)):
        mine = Reservation("uid-r", "r", "t", "", stamp(50), resumes=resumes)
        snapshot = AdmissionSnapshot(
            limits=RATED,
            paused=False,
            reservations=Reservations("1", {"uid-r": mine}),
            active={},
            pending=PendingQueue(None),
            rate_window=window,
            slots=None,
        )
        plan_admission(snapshot, lambda _: ReservationState.IN_USE, later)
        assert window.allowance(StartRateLimit(1, 60), later).count == allowed
        window = RateWindow()
        window.observe_starts([StartRecord(stamp(0), 1)], NOW, just_changed=True)


def test_a_reservation_says_whether_its_job_goes_on() -> None:
    for resumes in (True, False):
        mine = Reservation("uid-r", "r", "t", "", stamp(50), resumes=resumes)
        body = reservations_body("1", [mine], [])
        assert read_reservations({"metadata": {}, **body}).by_uid == {"uid-r": mine}
