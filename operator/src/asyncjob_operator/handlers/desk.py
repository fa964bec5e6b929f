"""Passes on what the observer finds to those who act on it."""

from collections.abc import Callable

from asyncjob.lifecycle.view import JobView
from asyncjob_operator.apply.notices import Notices
from asyncjob_operator.apply.todo import Todo
from asyncjob_operator.core.job_event import notice


class Desk:
    """The observer's listener."""

    def __init__(
        self, todo: Todo, rounds: Todo, notices: Notices, leads: Callable[[], bool]
    ) -> None:
        self._todo = todo
        self._rounds = rounds
        self._notices = notices
        self._leads = leads

    def want(self, uid: str, lane: str) -> None:
        """Put the job on the list, behind those of its lane."""
        self._todo.add(uid, lane)

    def unwant(self, uid: str) -> None:
        """Take the job off the list."""
        self._todo.discard(uid)

    def make_room(self, queue: tuple[str, str]) -> None:
        """Put the queue on the list of those that need a round of admission."""
        self._rounds.add("/".join(queue))

    def died(self, job: JobView, message: str) -> None:
        """Tell people of a new dead letter, if it is this replica's turn to."""
        if self._leads():
            self._notices.tell(notice(job, job.reason or "DeadLetter", message))
