"""So many per second on average, and a few more at once."""

from collections.abc import Callable


class Rate:
    """A token bucket that holds what comes in two seconds. `clock` gives seconds."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._room = self._most = max(1.0, 2 * per_second)
        self._at = clock()

    def wait(self) -> float:
        """Return how long to wait until there is one, in seconds; 0 if there is one now."""
        now = self._clock()
        self._room = min(self._most, self._room + (now - self._at) * self._per_second)
        self._at = now
        return max(0.0, (1 - self._room) / self._per_second)

    def take(self) -> float:
        """Take one if there is one and return 0; else return how long to wait, in seconds."""
        wait = self.wait()
        if not wait:
            self._room -= 1
        return wait

    def give_back(self) -> None:
        """Put one back that was not needed after all."""
        self._room = min(self._most, self._room + 1)
