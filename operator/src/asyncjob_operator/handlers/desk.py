"""Passes on what the observer finds to those who act on it."""

from collections.abc import Callable

from asyncjob.lifecycle.view import JobView
from asyncjob_operator.apply.notices import EventRecorder
from asyncjob_operator.apply.todo import WorkQueue
from asyncjob_operator.core.job_event import job_event


class ReconcileEnqueuer:
    """The observer's listener."""

    def __init__(
        self,
        job_queue: WorkQueue,
        admission_queue: WorkQueue,
        events: EventRecorder,
        leads: Callable[[], bool],
    ) -> None:
        self._job_queue = job_queue
        self._admission_queue = admission_queue
        self._events = events
        self._leads = leads

    def enqueue(self, uid: str, lane: str) -> None:
        """Put the job on the list, behind those of its lane."""
        self._job_queue.add(uid, lane)

    def dequeue(self, uid: str) -> None:
        """Take the job off the list."""
        self._job_queue.discard(uid)

    def enqueue_admission(self, queue: tuple[str, str]) -> None:
        """Put the queue on the list of those that need a round of admission."""
        self._admission_queue.add("/".join(queue))

    def on_dead_letter(self, job: JobView, message: str) -> None:
        """Tell people of a new dead letter, if it is this replica's turn to."""
        if self._leads():
            self._events.record(job_event(job, job.reason or "DeadLetter", message))
