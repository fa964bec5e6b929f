"""So many per second on average, and a few more at once."""

from collections.abc import Callable


class Rate:
    """A token bucket that holds what comes in two seconds. `clock` gives seconds."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._room = self._most = max(1.0, 2 * per_second)
        self._at = clock()

    def take(self) -> float:
        """Take one if there is one and return 0; else return how long to wait, in seconds."""
        now = self._clock()
        self._room = min(self._most, self._room + (now - self._at) * self._per_second)
        self._at = now
        if self._room < 1:
            return (1 - self._room) / self._per_second
        self._room -= 1
        return 0.0
