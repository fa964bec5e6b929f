"""What the operator executes and keeps for one plain job: three events, no decision to act."""

from typing import Final

from asyncjob.lifecycle.view import JobView
from asyncjob_bench.counting import lives
from asyncjob_bench.counting.instructions import count_instructions
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.observe.observer import JobController

OPERATOR_JOBS: Final = 20
OPERATOR_WARM_UP: Final = 5
FIRST: Final = 1_000_000
"""Number of the first counted job; those that are there already have smaller ones."""

WALL: Final = 1_767_225_600.0


class _NoActions:
    """Whom a plain job gives nothing to do."""

    def enqueue(self, uid: str, lane: str) -> None:
        raise AssertionError(f"a plain job needs nothing done: {uid} ({lane})")

    def dequeue(self, uid: str) -> None:
        """Take that there is nothing to do."""

    def enqueue_admission(self, queue: tuple[str, str]) -> None:
        raise AssertionError(f"the queue has no limit: {queue}")

    def on_dead_letter(self, job: JobView, message: str) -> None:
        raise AssertionError(f"a plain job does not die: {job.name}: {message}")


def new_observer() -> JobController:
    """Return the part of an operator that takes in jobs."""
    return JobController(DecisionOptions(), lambda: Now(0.0, WALL), _NoActions())


def operator_instructions_per_job(known: int) -> float:
    """Return our own instructions for the three events of a job, beside so many that wait."""
    watching = new_observer()
    for number in range(known):
        watching.on_update(lives.queued(number), live=True)
    for number in range(FIRST - OPERATOR_WARM_UP, FIRST):
        for state in _job_events(number):
            watching.on_update(state, live=True)
    seen = [
        state for number in range(FIRST, FIRST + OPERATOR_JOBS) for state in _job_events(number)
    ]
    with count_instructions() as count:
        for state in seen:
            watching.on_update(state, live=True)
    return count.instructions / OPERATOR_JOBS


def _job_events(number: int) -> list[lives.Object]:
    return [lives.queued(number), lives.claimed(number), lives.completed(number)]
