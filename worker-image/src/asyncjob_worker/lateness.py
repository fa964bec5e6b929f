"""How late the heartbeat thread gets to run, and which leases can still be kept then.

Nothing in an overloaded process is sure to run in time, heartbeats included. What can be done is to
notice, to claim no leases that are too short for it, and to give up the held ones earlier.
"""

from collections.abc import Callable
from typing import Final

from asyncjob_worker.held import SAFETY_SECONDS, HeldJob

WINDOW_SECONDS: Final = 30.0
"""What was late is remembered for so long, and for twice as long at most."""

_RENEWAL_POINT: Final = 1 / 3
"""Of a lease, when its heartbeat is due."""

_MAX_LEASE_SHARE: Final = 1 / 4
"""A held lease is given up no earlier than by this part of it, however late the thread has been."""


class Lateness:
    """By how much a thread that wants to run every `interval` seconds misses that.

    `clock` stands still while the machine sleeps. Written by that thread, read by any.
    """

    def __init__(self, interval: float, clock: Callable[[], float]) -> None:
        self._interval = interval
        self._clock = clock
        self._last_tick_at: float | None = None
        self._window_start = 0.0
        self._worst = 0.0
        self._worst_before = 0.0

    def tick(self) -> None:
        """Note that the thread runs."""
        now = self._clock()
        late = self._late_by(now)
        if now - self._window_start > WINDOW_SECONDS:
            self._worst_before, self._worst, self._window_start = self._worst, 0.0, now
        self._worst, self._last_tick_at = max(self._worst, late), now

    @property
    def seconds(self) -> float:
        """By how much it was late at worst of late, or is right now."""
        return max(self._worst_before, self._worst, self._late_by(self._clock()))

    @property
    def shortest_lease(self) -> float:
        """The shortest lease that can be kept: renewed late, and given up late if that fails."""
        return (2 * self.seconds + SAFETY_SECONDS) / (1 - _RENEWAL_POINT)

    def safe_until(self, held: HeldJob) -> float:
        """Return until when a handler may run for sure, if this thread is to stop it then."""
        longest = held.policy.lease_duration_seconds * _MAX_LEASE_SHARE
        return held.safe_until - min(self.seconds, longest)

    def _late_by(self, now: float) -> float:
        return (
            0.0
            if self._last_tick_at is None
            else max(0.0, now - self._last_tick_at - self._interval)
        )
