"""Growing pauses between tries at something that fails."""

import random


class ExponentialBackoff:
    """Pauses from `initial` doubling up to `cap` seconds, each cut by chance by up to half."""

    def __init__(self, initial: float = 1.0, cap: float = 60.0) -> None:
        self._initial = initial
        self._cap = cap
        self._delay = initial

    def next_delay(self) -> float:
        """Return how long to wait now, in seconds."""
        pause, self._delay = self._delay, min(self._delay * 2, self._cap)
        return pause * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin anew: something succeeded."""
        self._delay = self._initial
