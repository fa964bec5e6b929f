"""How late the heartbeat thread runs, and which leases can be kept in spite of it.

In an overloaded process nothing is sure to run in time, heartbeats included. Leases that are too
short for the measured lag are not claimed, and held ones are given up earlier.
"""

from collections.abc import Callable
from typing import Final

from asyncjob_worker.leases.held_job import SAFETY_SECONDS, HeldJob

WINDOW_SECONDS: Final = 30.0
"""How long a delay is remembered; up to twice as long, because two windows are compared."""

_RENEWAL_POINT: Final = 1 / 3
"""The part of a lease after which its heartbeat is due."""

_MAX_LEASE_SHARE: Final = 1 / 4
"""A held lease is given up early by at most this part of it, however late the thread has been."""


class HeartbeatLag:
    """How late a thread runs that should run every `interval` seconds.

    `clock` has to stop while the machine sleeps. Written by that thread, read by any.
    """

    def __init__(self, interval: float, clock: Callable[[], float]) -> None:
        self._interval = interval
        self._clock = clock
        self._last_tick_at: float | None = None
        self._window_start = 0.0
        self._worst = 0.0
        self._worst_before = 0.0

    def tick(self) -> None:
        """Record that the thread runs."""
        now = self._clock()
        late = self._late_by(now)
        if now - self._window_start > WINDOW_SECONDS:
            self._worst_before, self._worst, self._window_start = self._worst, 0.0, now
        self._worst, self._last_tick_at = max(self._worst, late), now

    @property
    def seconds(self) -> float:
        """The greatest delay in the last windows, or the present one if that is greater."""
        return max(self._worst_before, self._worst, self._late_by(self._clock()))

    @property
    def shortest_lease(self) -> float:
        """The shortest lease that can be kept if renewal and stop of the handler are both late."""
        return (2 * self.seconds + SAFETY_SECONDS) / (1 - _RENEWAL_POINT)

    def safe_until(self, held: HeldJob) -> float:
        """Return until when a handler may run if this thread, late as it is, is to stop it."""
        max_early = held.policy.lease_duration_seconds * _MAX_LEASE_SHARE
        return held.safe_until - min(self.seconds, max_early)

    def _late_by(self, now: float) -> float:
        if self._last_tick_at is None:
            return 0.0
        return max(0.0, now - self._last_tick_at - self._interval)
