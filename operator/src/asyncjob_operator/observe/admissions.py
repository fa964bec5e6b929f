"""What a round of admission needs to know, and what it learns: the observer's side of it."""

from collections.abc import Sequence

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.core.admission.book import Place, is_over, occupies
from asyncjob_operator.core.admission.plan import Fate, Plan, Table, make_plan
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.observe.halls import Hall, Queue
from asyncjob_operator.observe.observer import Observer


class Admissions:
    """Rounds of admission as far as they wait for nothing and write nothing."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def doubts(self, queue: Queue) -> Sequence[Place]:
        """Return the places whose jobs may be known here as they were before, or not at all."""
        hall = self._observer.halls.get(queue)
        if hall is None:
            return ()
        places = hall.book.places.values()
        return [place for place in places if self._fate(hall, place) is Fate.UNKNOWN]

    def settle(self, queue: Queue, place: Place, obj: JsonObject | None) -> None:
        """Take what a live read of a doubtful place's job has shown; None: there is none."""
        hall = self._observer.halls.get(queue)
        if hall and (obj is None or text(child(obj, "metadata"), "uid") != place.uid):
            hall.gone.add(place.uid)
        elif hall:
            hall.reached.add(place)
        if obj is not None:
            self._observer.saw(obj, live=False)

    def plan(self, queue: Queue, now: Moment) -> Plan | None:
        """Plan a round; None for a queue that has no limits. Who is taken has left the line."""
        hall = self._observer.halls.get(queue)
        if hall is None:
            return None
        table = Table(
            limits=hall.limits,
            paused=self._observer.queues.view(*queue).paused,
            book=hall.book,
            occupants=hall.occupants,
            line=hall.line,
            pace=hall.pace,
            slots=self._observer.roll_calls.slots(*queue),
        )
        return make_plan(table, lambda place: self._fate(hall, place), now)

    def saw(self, obj: JsonObject) -> None:
        """Take a queue as a write or a live read has answered it."""
        self._observer.queues.saw(obj)

    def lost(self, queue: Queue) -> None:
        """Take that there is no such AsyncQueue any more."""
        self._observer.queues.lost(*queue)

    def put_back(self, plan: Plan) -> None:
        """Line those up again who were taken for a plan that came to nothing."""
        for who in plan.taken:
            self._observer.look(who.uid)

    def _fate(self, hall: Hall, place: Place) -> Fate:
        if place.uid in hall.gone:
            return Fate.OVER
        job = self._observer.store.get(place.uid)
        if job and not is_over(place, job, counts_running=hall.limits.counts_running):
            return Fate.KEPT if occupies(job) else Fate.WAITING
        known = place.uid in self._observer.store and place in hall.reached
        return Fate.OVER if known else Fate.UNKNOWN
