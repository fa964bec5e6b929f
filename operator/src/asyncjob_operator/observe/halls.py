"""Who waits and who has a place in each queue with limits, as jobs and AsyncQueues come and go.

A queue without limits costs one look into a dictionary.
"""

from collections.abc import Callable

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.admission.book import (
    EMPTY_BOOK,
    Book,
    Place,
    is_over,
    occupies,
    read_book,
    stay_of,
)
from asyncjob_operator.core.admission.limits import UNLIMITED, Limits
from asyncjob_operator.core.admission.line import Line, Waiting
from asyncjob_operator.core.admission.pace import Pace
from asyncjob_operator.core.moment import Moment, epoch
from asyncjob_operator.observe.store import is_newer

Queue = tuple[str, str]
"""Namespace and name."""


class Hall:
    """One queue with limits, or one whose limits were lifted and whose book is not empty yet.

    `gone` are the UIDs of jobs that have a place and, by a live read, are no more. `reached` are
    the places whose jobs were seen in the stay they are for, or read live since: only what is seen
    of such a job tells that its stay is over. Another view may be older than the stay.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.book: Book = EMPTY_BOOK
        self.line = Line(limits.ageing)
        self.pace = Pace()
        self.occupants: dict[str, str] = {}
        self.gone: set[str] = set()
        self.reached: set[Place] = set()

    def take(self, job: JobView, *, lines_up: bool) -> bool:
        """Take a job as it is now; returns whether somebody may get a place by that."""
        changed = self.occupy(job) | self._line_up(job, lines_up=lines_up)
        place = self.book.places.get(job.uid)
        if place is not None and job.phase is Phase.QUEUED and self.book.is_for(job):
            self.reached.add(place)
        counts = self.limits.counts_running
        return changed or (place is not None and is_over(place, job, counts_running=counts))

    def lose(self, uid: str) -> bool:
        """Take that a job is gone; returns whether somebody may get a place by that."""
        left = self.occupants.pop(uid, None) is not None
        return self.line.discard(uid) | left | (uid in self.book.places)

    def occupy(self, job: JobView) -> bool:
        """Take whether a job runs, or may any moment; returns whether that is news."""
        if occupies(job) == (job.uid in self.occupants):
            return False
        if self.occupants.pop(job.uid, None) is None:
            self.occupants[job.uid] = job.gates.concurrency_key or ""
        return True

    def _line_up(self, job: JobView, *, lines_up: bool) -> bool:
        if not lines_up:
            return self.line.discard(job.uid)
        key, since = job.gates.concurrency_key or "", epoch(job.created, otherwise=0.0)
        return self.line.put(Waiting(job.uid, job.name, stay_of(job), key, job.priority, since))


class Halls:
    """By queue. `changed` is called with a queue in which somebody may get a place.

    `placed` is called with the UID of a job that has one now.
    """

    def __init__(
        self,
        now: Callable[[], Moment],
        changed: Callable[[Queue], None],
        placed: Callable[[str], None],
    ) -> None:
        self._now = now
        self._changed = changed
        self._placed = placed
        self._halls: dict[Queue, Hall] = {}

    def get(self, queue: Queue) -> Hall | None:
        """Return the hall of a queue, if it has limits or had."""
        return self._halls.get(queue)

    def is_placed(self, job: JobView) -> bool:
        """Return whether the job has a place in its queue."""
        hall = self._halls.get((job.namespace, job.queue))
        return hall is not None and hall.book.is_for(job)

    def take(self, job: JobView, *, lines_up: bool) -> None:
        """Take a job as it is now."""
        queue = (job.namespace, job.queue)
        hall = self._halls.get(queue)
        if hall and hall.take(job, lines_up=lines_up):
            self._changed(queue)

    def count(self, job: JobView) -> None:
        """Take whether a job runs, and no more of it."""
        hall = self._halls.get((job.namespace, job.queue))
        if hall:
            hall.occupy(job)

    def lose(self, job: JobView) -> None:
        """Take that a job is gone."""
        queue = (job.namespace, job.queue)
        hall = self._halls.get(queue)
        if hall and hall.lose(job.uid):
            self._changed(queue)

    def set_limits(self, queue: Queue, limits: Limits) -> None:
        """Take the limits as they are now; who is in the queue has to be shown anew then."""
        hall = self._halls.get(queue)
        if hall is None and limits:
            self._halls[queue] = Hall(limits)
        elif hall and hall.limits != limits:
            hall.limits, hall.line = limits, Line(limits.ageing)
            hall.occupants.clear()
        self._changed(queue)

    def saw_book(self, queue: Queue, obj: JsonObject) -> None:
        """Take the book as it is now, unless a newer one is known."""
        hall, book = self._halls.get(queue), read_book(obj)
        if hall is None and book.places:
            hall = self._halls[queue] = Hall(UNLIMITED)
        if hall is None or not is_newer(book.version, hall.book.version):
            return
        before, hall.book = hall.book, book
        hall.gone &= book.places.keys()
        hall.reached.intersection_update(book.places.values())
        hall.pace.saw(book.starts, self._now(), live=bool(before.version))
        for uid, place in book.places.items():
            if before.places.get(uid) != place:
                self._placed(uid)
        if book.places != before.places:
            self._changed(queue)

    def lost_queue(self, queue: Queue) -> None:
        """Take that there is no such AsyncQueue any more."""
        self._halls.pop(queue, None)
