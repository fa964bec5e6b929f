"""So many per second on average, and a few more at once."""

from collections.abc import Callable


class TokenBucket:
    """A token bucket that holds what comes in two seconds. `clock` gives seconds."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._tokens = self._capacity = max(1.0, 2 * per_second)
        self._updated_at = clock()

    def seconds_until_available(self) -> float:
        """Return how long to wait until there is one, in seconds; 0 if there is one now."""
        now = self._clock()
        self._tokens = min(
            self._capacity, self._tokens + (now - self._updated_at) * self._per_second
        )
        self._updated_at = now
        return max(0.0, (1 - self._tokens) / self._per_second)

    def take(self) -> float:
        """Take one if there is one and return 0; else return how long to wait, in seconds."""
        wait = self.seconds_until_available()
        if not wait:
            self._tokens -= 1
        return wait

    def give_back(self) -> None:
        """Put one back that was not needed after all."""
        self._tokens = min(self._capacity, self._tokens + 1)
