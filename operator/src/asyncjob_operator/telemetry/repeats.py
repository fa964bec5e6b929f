"""Keeps a message that comes again and again from filling the log."""

from collections.abc import Callable
from typing import Final

THROTTLE_SECONDS: Final = 60.0


class LogThrottle:
    """Lets each message through once a minute at most."""

    def __init__(self, clock: Callable[[], float], min_interval: float = THROTTLE_SECONDS) -> None:
        self._clock = clock
        self._min_interval = min_interval
        self._logged_at: dict[str, float] = {}

    def allow(self, message: str) -> bool:
        """Return whether the message may be said now; whoever asks says it."""
        now = self._clock()
        self._logged_at = {
            text: at for text, at in self._logged_at.items() if now < at + self._min_interval
        }
        if message in self._logged_at:
            return False
        self._logged_at[message] = now
        return True
