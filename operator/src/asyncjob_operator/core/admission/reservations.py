"""Reservations and recent starts of a queue with limits, as the AsyncQueue's status has them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from asyncjob.json_types import Json, JsonObject, as_object, child, integer, items, text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase


@dataclass(frozen=True, slots=True)
class Reservation:
    """Taken for one start of a job, at `time`.

    `queued_time` tells its stay in Queued from any other: when it began, empty for the one since
    creation. `key` is the job's concurrencyKey.
    """

    uid: str
    name: str
    queued_time: str
    key: str
    time: str

    def to_json(self) -> JsonObject:
        """Return the form in the status."""
        entry: dict[str, Json] = {"uid": self.uid, "name": self.name, "time": self.time}
        if self.queued_time:
            entry["queuedTime"] = self.queued_time
        if self.key:
            entry["key"] = self.key
        return entry


@dataclass(frozen=True, slots=True)
class StartRecord:
    """So many places were given at this time, or a little before."""

    time: str
    count: int

    def to_json(self) -> JsonObject:
        """Return the form in the status."""
        return {"time": self.time, "count": self.count}


@dataclass(frozen=True, slots=True)
class Reservations:
    """One version of the book; `version` is the resourceVersion of the AsyncQueue."""

    version: str = ""
    by_uid: Mapping[str, Reservation] = field(default_factory=dict)
    recent_starts: tuple[StartRecord, ...] = ()

    def is_reserved(self, job: JobView) -> bool:
        """Return whether the job has a place for its next start."""
        place = self.by_uid.get(job.uid)
        return place is not None and place.queued_time == queued_time_of(job)


NO_RESERVATIONS = Reservations()


def read_reservations(obj: JsonObject) -> Reservations:
    """Read the book of an AsyncQueue."""
    status = child(obj, "status")
    places = map(_read_reservation, map(as_object, items(status, "reservations")))
    starts = (
        StartRecord(text(entry, "time"), integer(entry, "count"))
        for entry in map(as_object, items(status, "recentStarts"))
    )
    version = text(child(obj, "metadata"), "resourceVersion")
    return Reservations(version, {place.uid: place for place in places}, tuple(starts))


def _read_reservation(entry: JsonObject) -> Reservation:
    return Reservation(
        uid=text(entry, "uid"),
        name=text(entry, "name"),
        queued_time=text(entry, "queuedTime"),
        key=text(entry, "key"),
        time=text(entry, "time"),
    )


def reservations_body(
    version: str, reservations: Iterable[Reservation], recent_starts: Iterable[StartRecord]
) -> JsonObject:
    """Return the merge-patch for the queue's status: exact on the version, 409 for all but one."""
    return {
        "metadata": {"resourceVersion": version},
        "status": {
            "reservations": [place.to_json() for place in reservations],
            "recentStarts": [entry.to_json() for entry in recent_starts],
        },
    }


def queued_time_of(job: JobView) -> str:
    """Return what tells this stay of a job in its phase from all others."""
    return job.last_transition_time or ""


def is_reclaimable(reservation: Reservation, job: JobView, *, counts_running: bool) -> bool:
    """Return whether a place can be taken back, by any version of its job since the place's stay.

    Once the job has left its stay in Queued it never returns to it, so that nobody can admit it for
    this place any more. Where running jobs do not count, an admitted one is over too. A version
    from before the stay looks the same: whoever asks has to know that it is none.
    """
    if job.phase is Phase.RUNNING:
        return not counts_running
    if job.phase is not Phase.QUEUED or queued_time_of(job) != reservation.queued_time:
        return True
    return job.admitted and not counts_running


def is_active(job: JobView) -> bool:
    """Return whether the job runs, or may be claimed any moment."""
    return job.phase is Phase.RUNNING or (job.phase is Phase.QUEUED and job.admitted)
