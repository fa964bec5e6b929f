"""One round of admission, planned: which reservations to reclaim, and which jobs get a new one."""

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.admission.rate_window import Allowance, RateWindow
from asyncjob_operator.core.admission.reservations import Reservation, Reservations, StartRecord
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import MAX_RESERVATIONS, QueueLimits


class ReservationState(Enum):
    """What has become of a place."""

    WAITING = auto()
    """Its job is to be admitted yet."""

    IN_USE = auto()
    """Its job has been admitted, and the limits still count it."""

    RECLAIMABLE = auto()
    """It can be given to another."""

    UNKNOWN = auto()
    """Its job is not known here, or perhaps as it was before: a live read has to say."""


_ADMITTED_STATES = (ReservationState.IN_USE, ReservationState.RECLAIMABLE)


@dataclass(frozen=True, slots=True)
class AdmissionSnapshot:
    """All that bears on who gets a place in one queue.

    `active` are the jobs that run or may be claimed any moment, with their keys. `slots` is how
    many jobs the queue's workers run at once, None if that is not known.
    """

    limits: QueueLimits
    paused: bool
    reservations: Reservations
    active: Mapping[str, str]
    pending: PendingQueue
    rate_window: RateWindow
    slots: int | None


@dataclass(frozen=True, slots=True)
class AdmissionPlan:
    """What to write into the book of this version, and when to plan again by time alone."""

    version: str
    reservations: tuple[Reservation, ...]
    recent_starts: tuple[StartRecord, ...]
    admitted: tuple[PendingJob, ...]
    reclaimed: int
    next_at: float | None


def plan_admission(
    snapshot: AdmissionSnapshot, state_of: Callable[[Reservation], ReservationState], now: Now
) -> AdmissionPlan:
    """Plan a round. Who is taken leaves the line: if the plan fails, they have to be put back."""
    fates = {place: state_of(place) for place in snapshot.reservations.by_uid.values()}
    kept = [place for place, its in fates.items() if its is not ReservationState.RECLAIMABLE]
    snapshot.rate_window.observe_reservations(
        [(place, its in _ADMITTED_STATES) for place, its in fates.items()], now
    )
    room = (
        snapshot.rate_window.allowance(snapshot.limits.rate_limit, now)
        if snapshot.limits.rate_limit
        else None
    )
    taken = _select(snapshot, kept, room)
    new = [Reservation(who.uid, who.name, who.queued_time, who.key, now.timestamp) for who in taken]
    freed = len(snapshot.reservations.by_uid) - len(kept)
    waits = bool(len(snapshot.pending)) and room is not None
    return AdmissionPlan(
        version=snapshot.reservations.version,
        reservations=(*kept, *new),
        recent_starts=snapshot.rate_window.recent_starts(snapshot.limits.rate_limit, len(new), now)
        if snapshot.limits.rate_limit
        else (),
        admitted=tuple(taken),
        reclaimed=freed,
        next_at=room.next_at if room and waits else None,
    )


def _select(
    snapshot: AdmissionSnapshot, kept: list[Reservation], allowance: Allowance | None
) -> list[PendingJob]:
    free = _free_capacity(snapshot, {place.uid for place in kept}, len(kept), allowance)
    if free <= 0 or not len(snapshot.pending):
        return []
    per_key = snapshot.limits.max_concurrency_per_key
    if per_key is None:
        return snapshot.pending.pop(free, lambda _: True)
    used = Counter(_active_keys(snapshot.active, kept))

    def may_have(key: str) -> bool:
        if key and used[key] >= per_key:
            return False
        used[key] += 1
        return True

    return snapshot.pending.pop(free, may_have)


def _active_keys(active: Mapping[str, str], kept: list[Reservation]) -> list[str]:
    return [*active.values(), *(place.key for place in kept if place.uid not in active)]


def _free_capacity(
    snapshot: AdmissionSnapshot,
    reserved: AbstractSet[str],
    reservations: int,
    allowance: Allowance | None,
) -> int:
    """Return how many places may be given at most, whatever the keys."""
    if snapshot.paused:
        return 0
    limits = snapshot.limits
    busy = len(reserved | snapshot.active.keys())
    bounds = [MAX_RESERVATIONS - reservations]
    if limits.max_concurrency is not None:
        bounds.append(limits.max_concurrency - busy)
    if snapshot.slots is not None:
        # Who is admitted waits among the workers' jobs, where no key has its turn any more.
        bounds.append(snapshot.slots + max(1, snapshot.slots // 2) - busy)
    if allowance is not None:
        bounds.append(allowance.count)
    return min(bounds)
