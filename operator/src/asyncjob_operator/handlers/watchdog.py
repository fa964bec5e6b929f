"""Tells a watch that has gone silent from a cluster in which nothing happens."""


class SilentWatchDetector:
    """A watch can hang without a word, as behind a proxy that keeps it open, and looks healthy."""

    def __init__(self) -> None:
        self.events = 0
        self._events_before = 0

    def is_silent(self, repaired: int) -> bool:
        """Return whether a comparison had to repair something although no event came before it.

        `repaired` is how many jobs the comparison since the last call here found to differ.
        """
        silent = repaired > 0 and self.events == self._events_before
        self._events_before = self.events
        return silent
