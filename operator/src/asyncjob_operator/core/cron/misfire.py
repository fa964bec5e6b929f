"""Which of the times that have come are run: those on time, and of the others what the policy says.

A time is missed if its run could not start within the deadline. However many were missed, the
schedule goes on; only the newest `MAX_TIMES_CONSIDERED` are looked at and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from asyncjob.lifecycle.schedules import MisfirePolicy
from asyncjob_operator.core.cron.hashing import stable_hash
from asyncjob_operator.core.cron.schedule import Schedule
from asyncjob_operator.core.cron.view import CronJobView

ON_TIME_SECONDS: Final = 60
"""A run that starts so late is on time where startingDeadlineSeconds says nothing."""

MIN_DEADLINE_SECONDS: Final = 5
"""No deadline is shorter: so long may the operator itself take, from a time to its run. With 0
and Skip a schedule would never run."""

MAX_TIMES_CONSIDERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class DueTimes:
    """Times to run, and how many have come in all; both in order."""

    times: tuple[int, ...]
    to_run: tuple[int, ...]
    late: int

    @property
    def left_out(self) -> int:
        """Return how many times get no run."""
        return len(self.times) - len(self.to_run)


def fires_at(cron: CronJobView, time: int) -> int:
    """Return when the run of a scheduled time is to be created, jitter included."""
    return time + (
        stable_hash(f"{cron.key} {time}", cron.jitter_seconds + 1) if cron.jitter_seconds else 0
    )


def due_times(cron: CronJobView, schedule: Schedule, wall: float) -> DueTimes:
    """Return what has come since the schedule was last settled, and what of it to run."""
    listed = schedule.newest_times(cron.settled_time, wall, MAX_TIMES_CONSIDERED)
    times = tuple(takewhile(lambda time: fires_at(cron, time) <= wall, listed))
    return _select_due(cron, times, wall)


def still_due(cron: CronJobView, times: Sequence[int], wall: float) -> Sequence[int]:
    """Return which times, reserved earlier, would be run if they were chosen now."""
    return _select_due(cron, tuple(times), wall).to_run


def _select_due(cron: CronJobView, times: tuple[int, ...], wall: float) -> DueTimes:
    said = (
        ON_TIME_SECONDS
        if cron.starting_deadline_seconds is None
        else cron.starting_deadline_seconds
    )
    deadline = max(said, MIN_DEADLINE_SECONDS)
    on_time = [time for time in times if wall - fires_at(cron, time) <= deadline]
    chosen = _apply_misfire_policy(cron.misfire_policy, times, on_time)[-cron.misfire_limit :]
    return DueTimes(times, tuple(chosen), len(times) - len(on_time))


def _apply_misfire_policy(
    policy: MisfirePolicy, times: Sequence[int], on_time: list[int]
) -> Sequence[int]:
    match policy:
        case MisfirePolicy.SKIP:
            return on_time
        case MisfirePolicy.FIRE_ONCE:
            return on_time or times[-1:]
        case MisfirePolicy.FIRE_ALL:
            return times
