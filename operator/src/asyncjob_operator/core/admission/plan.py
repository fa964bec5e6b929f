"""One round of admission, planned: which reservations to reclaim, and which jobs get a new one."""

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto

from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.admission.rate_window import Allowance, RateWindow
from asyncjob_operator.core.admission.reservations import Reservation, Reservations, StartRecord
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import MAX_RESERVATIONS, QueueLimits


class ReservationState(Enum):
    """The state of a reservation, by its job."""

    WAITING = auto()
    """Its job has yet to be admitted."""

    IN_USE = auto()
    """Its job has been admitted, and the limits still count it."""

    RECLAIMABLE = auto()
    """It can be reclaimed."""

    UNKNOWN = auto()
    """Its job is unknown, or known in too old a version: a live read has to tell."""


_ADMITTED_STATES = (ReservationState.IN_USE, ReservationState.RECLAIMABLE)


@dataclass(frozen=True, slots=True)
class AdmissionSnapshot:
    """What a round of admission to one queue is decided from."""

    limits: QueueLimits
    paused: bool
    reservations: Reservations
    active: Mapping[str, str]
    """Concurrency keys, by UID, of the jobs that run or may be claimed at any moment."""

    pending: PendingQueue
    rate_window: RateWindow
    slots: int | None
    """How many jobs the queue's workers run at the same time, None if unknown."""

    resumed: PendingQueue = field(default_factory=PendingQueue)
    """Pending jobs that go on after a wait: they come first, and no rate limit counts them."""


@dataclass(frozen=True, slots=True)
class AdmissionPlan:
    """What to write into the AsyncQueue's status."""

    version: str
    """The resourceVersion of the AsyncQueue that the plan is based on."""

    reservations: tuple[Reservation, ...]
    recent_starts: tuple[StartRecord, ...]
    admitted: tuple[PendingJob, ...]
    """The jobs that get a new reservation."""

    reclaimed: int
    """Number of reservations that are removed."""

    next_at: float | None
    """When to plan again if nothing changes, in monotonic seconds; None: never."""


def plan_admission(
    snapshot: AdmissionSnapshot, state_of: Callable[[Reservation], ReservationState], now: Now
) -> AdmissionPlan:
    """Plan a round. Admitted jobs leave `pending`: put them back if the plan is not written."""
    states = {
        reservation: state_of(reservation) for reservation in snapshot.reservations.by_uid.values()
    }
    kept = [
        reservation
        for reservation, state in states.items()
        if state is not ReservationState.RECLAIMABLE
    ]
    snapshot.rate_window.observe_reservations(
        [
            (reservation, state in _ADMITTED_STATES)
            for reservation, state in states.items()
            if not reservation.resumes
        ],
        now,
    )
    rate = snapshot.limits.rate_limit
    allowance = snapshot.rate_window.allowance(rate, now) if rate else None
    resumed, started = _select(snapshot, kept, allowance)
    new = [
        Reservation(job.uid, job.name, job.queued_time, job.key, now.timestamp, resumes=resumes)
        for jobs, resumes in ((resumed, True), (started, False))
        for job in jobs
    ]
    return AdmissionPlan(
        version=snapshot.reservations.version,
        reservations=(*kept, *new),
        recent_starts=snapshot.rate_window.recent_starts(rate, len(started), now) if rate else (),
        admitted=(*resumed, *started),
        reclaimed=len(states) - len(kept),
        next_at=allowance.next_at if allowance and len(snapshot.pending) else None,
    )


def _select(
    snapshot: AdmissionSnapshot, kept: list[Reservation], allowance: Allowance | None
) -> tuple[list[PendingJob], list[PendingJob]]:
    """Return the jobs that go on, and those that start, which the rate limit counts."""
    reserved = {reservation.uid for reservation in kept}
    free = _free_capacity(snapshot, reserved, len(kept))
    if free <= 0 or not (len(snapshot.pending) or len(snapshot.resumed)):
        return [], []
    may_admit = _key_limit(snapshot, kept)
    resumed = snapshot.resumed.pop(free, may_admit)
    places = free - len(resumed)
    starts = places if allowance is None else min(places, allowance.count)
    return resumed, snapshot.pending.pop(starts, may_admit)


def _key_limit(snapshot: AdmissionSnapshot, kept: list[Reservation]) -> Callable[[str], bool]:
    """Return what says, before each reservation, whether a concurrency key may get one more."""
    per_key = snapshot.limits.max_concurrency_per_key
    if per_key is None:
        return lambda _: True
    used = Counter(_active_keys(snapshot.active, kept))

    def may_admit(key: str) -> bool:
        if key and used[key] >= per_key:
            return False
        used[key] += 1
        return True

    return may_admit


def _active_keys(active: Mapping[str, str], kept: list[Reservation]) -> list[str]:
    """Return the key of each job that is active or has a reservation."""
    waiting = (reservation.key for reservation in kept if reservation.uid not in active)
    return [*active.values(), *waiting]


def _free_capacity(
    snapshot: AdmissionSnapshot, reserved: AbstractSet[str], reservations: int
) -> int:
    """Return how many reservations may be granted at most, whatever the keys and the rate."""
    if snapshot.paused:
        return 0
    limits = snapshot.limits
    busy = len(reserved | snapshot.active.keys())
    bounds = [MAX_RESERVATIONS - reservations]
    if limits.max_concurrency is not None:
        bounds.append(limits.max_concurrency - busy)
    if snapshot.slots is not None:
        # Admitted jobs wait among those that workers may claim, where keys do not take turns. So
        # only half as many as there are slots are admitted in advance.
        bounds.append(snapshot.slots + max(1, snapshot.slots // 2) - busy)
    return min(bounds)
