"""What the operator executes and keeps for one plain job: three events, no decision to act."""

from typing import Final

from asyncjob.lifecycle.view import JobView
from asyncjob_bench.counting import lives
from asyncjob_bench.counting.instructions import counted
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.options import Options
from asyncjob_operator.observe.observer import Observer

JOBS: Final = 20
WARM_UP: Final = 5
FIRST: Final = 1_000_000
"""Number of the first counted job; those that are there already have smaller ones."""

WALL: Final = 1_767_225_600.0


class _Nobody:
    """Whom a plain job gives nothing to do."""

    def want(self, uid: str, lane: str) -> None:
        raise AssertionError(f"a plain job needs nothing done: {uid} ({lane})")

    def unwant(self, uid: str) -> None:
        """Take that there is nothing to do."""

    def make_room(self, queue: tuple[str, str]) -> None:
        raise AssertionError(f"the queue has no limit: {queue}")

    def died(self, job: JobView, message: str) -> None:
        raise AssertionError(f"a plain job does not die: {job.name}: {message}")


def observer() -> Observer:
    """Return the part of an operator that takes in jobs."""
    return Observer(Options(), lambda: Moment(0.0, WALL), _Nobody())


def instructions_per_job(known: int) -> float:
    """Return our own instructions for the three events of a job, beside so many that wait."""
    watching = observer()
    for number in range(known):
        watching.saw(lives.queued(number), live=True)
    for number in range(FIRST - WARM_UP, FIRST):
        for state in _life(number):
            watching.saw(state, live=True)
    seen = [state for number in range(FIRST, FIRST + JOBS) for state in _life(number)]
    with counted() as count:
        for state in seen:
            watching.saw(state, live=True)
    return count.instructions / JOBS


def _life(number: int) -> list[lives.Object]:
    return [lives.queued(number), lives.claimed(number), lives.completed(number)]
