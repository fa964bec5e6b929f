"""Keeps a message that comes again and again from filling the log."""

from collections.abc import Callable
from typing import Final

PAUSE_SECONDS: Final = 60.0


class Repeats:
    """Lets each message through once a minute at most."""

    def __init__(self, clock: Callable[[], float], pause: float = PAUSE_SECONDS) -> None:
        self._clock = clock
        self._pause = pause
        self._said: dict[str, float] = {}

    def allow(self, message: str) -> bool:
        """Return whether the message may be said now; whoever asks says it."""
        now = self._clock()
        self._said = {text: at for text, at in self._said.items() if now < at + self._pause}
        if message in self._said:
            return False
        self._said[message] = now
        return True
