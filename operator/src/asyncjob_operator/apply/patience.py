"""How long to leave something alone whose write has failed: longer each time, within bounds."""

from typing import Final

from asyncjob_operator.kube.chance import with_jitter

MAX_REFUSED_BACKOFF: Final = 600.0
"""Seconds; so seldom is tried again what the API server refuses, be it by a rule or for a right.

It refuses the same write for as long as the object is as it is, so trying sooner helps nobody.
"""

MAX_TRACKED_ITEMS: Final = 10_000
"""Of so many that have failed and were not heard of since it is known how often."""


class ItemBackoff:
    """Failures in a row per key; pauses in seconds, doubled from `initial` up to `cap`."""

    def __init__(self, initial: float, cap: float) -> None:
        self.cap = cap
        self.initial = initial
        self._failures: dict[str, int] = {}
        self._last_errors: dict[str, str] = {}

    def record_failure(self, key: str) -> float:
        """Count a failure and return the pause before the next try."""
        failures = self._failures[key] = self._failures.pop(key, 0) + 1
        if len(self._failures) > MAX_TRACKED_ITEMS:
            self.reset(next(iter(self._failures)))
        return with_jitter(min(self.initial * 2 ** min(failures - 1, 30), self.cap))

    def failures(self, key: str) -> int:
        """Return how often in a row it has failed."""
        return self._failures.get(key, 0)

    def is_new_error(self, key: str, message: str) -> bool:
        """Return whether it fails otherwise than the last time; whoever asks says so."""
        before = self._last_errors.get(key)
        self._last_errors[key] = message
        return before != message

    def reset(self, key: str) -> None:
        """Begin anew: it could be written, or there is nothing more to do about it."""
        self._failures.pop(key, None)
        self._last_errors.pop(key, None)
