"""Which of the times that have come are run: those on time, and of the others what the policy says.

A time is missed if its run could not start within the deadline. However many were missed, the
schedule goes on; only the newest `CONSIDERED` are looked at and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from asyncjob.lifecycle.schedules import MisfirePolicy
from asyncjob_operator.core.cron.hashing import draw
from asyncjob_operator.core.cron.schedule import Schedule
from asyncjob_operator.core.cron.view import CronView

ON_TIME_SECONDS: Final = 60
"""A run that starts so late is on time where startingDeadlineSeconds says nothing."""

SHORTEST_DEADLINE: Final = 5
"""No deadline is shorter: so long may the operator itself take, from a time to its run. With 0
and Skip a schedule would never run."""

CONSIDERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Choice:
    """Times to run, and how many have come in all; both in order."""

    times: tuple[int, ...]
    chosen: tuple[int, ...]
    late: int

    @property
    def left_out(self) -> int:
        """Return how many times get no run."""
        return len(self.times) - len(self.chosen)


def fires_at(cron: CronView, time: int) -> int:
    """Return when the run of a scheduled time is to be created, jitter included."""
    return time + (draw(f"{cron.key} {time}", cron.jitter + 1) if cron.jitter else 0)


def choose(cron: CronView, schedule: Schedule, wall: float) -> Choice:
    """Return what has come since the schedule was last settled, and what of it to run."""
    listed = schedule.newest(cron.settled, wall, CONSIDERED)
    times = tuple(takewhile(lambda time: fires_at(cron, time) <= wall, listed))
    return _choice(cron, times, wall)


def chosen_still(cron: CronView, times: Sequence[int], wall: float) -> Sequence[int]:
    """Return which times, reserved earlier, would be run if they were chosen now."""
    return _choice(cron, tuple(times), wall).chosen


def _choice(cron: CronView, times: tuple[int, ...], wall: float) -> Choice:
    said = ON_TIME_SECONDS if cron.starting_deadline is None else cron.starting_deadline
    deadline = max(said, SHORTEST_DEADLINE)
    on_time = [time for time in times if wall - fires_at(cron, time) <= deadline]
    chosen = _chosen(cron.misfire, times, on_time)[-cron.misfire_limit :]
    return Choice(times, tuple(chosen), len(times) - len(on_time))


def _chosen(policy: MisfirePolicy, times: Sequence[int], on_time: list[int]) -> Sequence[int]:
    match policy:
        case MisfirePolicy.SKIP:
            return on_time
        case MisfirePolicy.FIRE_ONCE:
            return on_time or times[-1:]
        case MisfirePolicy.FIRE_ALL:
            return times
