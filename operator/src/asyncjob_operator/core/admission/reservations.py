"""Reservations and recent starts of a queue with limits, as the AsyncQueue's status has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from asyncjob.json_types import Json, JsonObject, as_object, child, flag, integer, items, text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation for one start of a job."""

    uid: str
    name: str
    queued_time: str
    """Identifies the job's stay in Queued: when it began, empty for the one since creation."""

    key: str
    """The job's concurrencyKey, empty if it has none."""

    time: str
    """When the reservation was granted."""

    resumes: bool = False
    """Whether its job goes on after a wait, which is no start that a rate limit counts."""

    def to_json(self) -> JsonObject:
        """Return the form in the status."""
        entry: dict[str, Json] = {"uid": self.uid, "name": self.name, "time": self.time}
        if self.queued_time:
            entry["queuedTime"] = self.queued_time
        if self.key:
            entry["key"] = self.key
        if self.resumes:
            entry["resumes"] = True
        return entry


@dataclass(frozen=True, slots=True)
class StartRecord:
    """How many reservations were granted at this time, or shortly before."""

    time: str
    count: int

    def to_json(self) -> JsonObject:
        """Return the form in the status."""
        return {"time": self.time, "count": self.count}


@dataclass(frozen=True, slots=True)
class Reservations:
    """Reservations and recent starts in one version of an AsyncQueue."""

    version: str = ""
    by_uid: Mapping[str, Reservation] = field(default_factory=dict)
    recent_starts: tuple[StartRecord, ...] = ()

    def is_reserved(self, job: JobView) -> bool:
        """Return whether the job has a reservation for its next start."""
        reservation = self.by_uid.get(job.uid)
        return reservation is not None and reservation.queued_time == queued_time_of(job)


NO_RESERVATIONS = Reservations()


def read_reservations(obj: JsonObject) -> Reservations:
    """Read reservations and recent starts from an AsyncQueue."""
    status = child(obj, "status")
    reservations = map(_read_reservation, map(as_object, items(status, "reservations")))
    starts = (
        StartRecord(text(start, "time"), integer(start, "count"))
        for start in map(as_object, items(status, "recentStarts"))
    )
    version = text(child(obj, "metadata"), "resourceVersion")
    return Reservations(
        version, {reservation.uid: reservation for reservation in reservations}, tuple(starts)
    )


def _read_reservation(entry: JsonObject) -> Reservation:
    return Reservation(
        uid=text(entry, "uid"),
        name=text(entry, "name"),
        queued_time=text(entry, "queuedTime"),
        key=text(entry, "key"),
        time=text(entry, "time"),
        resumes=flag(entry, "resumes"),
    )


def reservations_body(
    version: str, reservations: Iterable[Reservation], recent_starts: Iterable[StartRecord]
) -> JsonObject:
    """Return the merge-patch for the queue's status; of several on one version one succeeds."""
    return {
        "metadata": {"resourceVersion": version},
        "status": {
            "reservations": [reservation.to_json() for reservation in reservations],
            "recentStarts": [start.to_json() for start in recent_starts],
        },
    }


def queued_time_of(job: JobView) -> str:
    """Return what identifies this stay of a job in its phase."""
    return job.last_transition_time or ""


def is_reclaimable(reservation: Reservation, job: JobView, *, counts_running: bool) -> bool:
    """Return whether a reservation can be reclaimed, by a view of its job.

    Once the job has left its stay in Queued it never returns to it, so that nobody can admit it
    with this reservation any more. Where running jobs do not count, that of an admitted job can be
    reclaimed too. The view must not be older than the stay: from such a view the stay looks over.
    """
    if job.phase is Phase.RUNNING:
        return not counts_running
    if job.phase is not Phase.QUEUED or queued_time_of(job) != reservation.queued_time:
        return True
    return job.admitted and not counts_running


def is_active(job: JobView) -> bool:
    """Return whether the job runs, or may be claimed at any moment."""
    return job.phase is Phase.RUNNING or (job.phase is Phase.QUEUED and job.admitted)
