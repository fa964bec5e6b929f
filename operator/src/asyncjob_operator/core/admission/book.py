"""The book of a limited queue, kept in its status: who has a place, and when places were given."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from asyncjob.json_types import Json, JsonObject, as_object, child, integer, items, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView


@dataclass(frozen=True, slots=True)
class Place:
    """Taken for one start of a job, at `time`.

    `stay` tells its stay in Queued from any other: when it began, empty for the one since creation.
    `key` is the job's concurrencyKey.
    """

    uid: str
    name: str
    stay: str
    key: str
    time: str

    def to_json(self) -> JsonObject:
        """Return the form in the status."""
        entry: dict[str, Json] = {"uid": self.uid, "name": self.name, "time": self.time}
        if self.stay:
            entry["queuedTime"] = self.stay
        if self.key:
            entry["key"] = self.key
        return entry


@dataclass(frozen=True, slots=True)
class Starts:
    """So many places were given at this time, or a little before."""

    time: str
    count: int

    def to_json(self) -> JsonObject:
        """Return the form in the status."""
        return {"time": self.time, "count": self.count}


@dataclass(frozen=True, slots=True)
class Book:
    """One version of the book; `version` is the resourceVersion of the AsyncQueue."""

    version: str = ""
    places: Mapping[str, Place] = field(default_factory=dict)
    starts: tuple[Starts, ...] = ()

    def is_for(self, job: JobView) -> bool:
        """Return whether the job has a place for its next start."""
        place = self.places.get(job.uid)
        return place is not None and place.stay == stay_of(job)


EMPTY_BOOK = Book()


def read_book(obj: JsonObject) -> Book:
    """Read the book of an AsyncQueue."""
    status = child(obj, "status")
    places = map(_read_place, map(as_object, items(status, "reservations")))
    starts = (
        Starts(text(entry, "time"), integer(entry, "count"))
        for entry in map(as_object, items(status, "recentStarts"))
    )
    version = text(child(obj, "metadata"), "resourceVersion")
    return Book(version, {place.uid: place for place in places}, tuple(starts))


def _read_place(entry: JsonObject) -> Place:
    return Place(
        uid=text(entry, "uid"),
        name=text(entry, "name"),
        stay=text(entry, "queuedTime"),
        key=text(entry, "key"),
        time=text(entry, "time"),
    )


def book_body(version: str, places: Iterable[Place], starts: Iterable[Starts]) -> JsonObject:
    """Return the merge-patch for the queue's status: exact on the version, 409 for all but one."""
    return {
        "metadata": {"resourceVersion": version},
        "status": {
            "reservations": [place.to_json() for place in places],
            "recentStarts": [entry.to_json() for entry in starts],
        },
    }


def stay_of(job: JobView) -> str:
    """Return what tells this stay of a job in its phase from all others."""
    return job.last_transition_time or ""


def is_over(place: Place, job: JobView, *, counts_running: bool) -> bool:
    """Return whether a place can be taken back, by any version of its job since the place's stay.

    Once the job has left its stay in Queued it never returns to it, so that nobody can admit it for
    this place any more. Where running jobs do not count, an admitted one is over too. A version
    from before the stay looks the same: whoever asks has to know that it is none.
    """
    if job.phase is Phase.RUNNING:
        return not counts_running
    if job.phase is not Phase.QUEUED or stay_of(job) != place.stay:
        return True
    return job.admitted and not counts_running


def occupies(job: JobView) -> bool:
    """Return whether the job runs, or may be claimed any moment."""
    return job.phase is Phase.RUNNING or (job.phase is Phase.QUEUED and job.admitted)
