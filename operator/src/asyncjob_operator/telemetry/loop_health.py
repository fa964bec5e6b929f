"""Whether all loops and watches of the process make progress, each as it reports itself.

Liveness and readiness probes, and whether this replica may lead, are answered from it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class LoopHealth:
    """The health of one loop or watch; `limit` is how many seconds it may be silent.

    Attempts and progress are recorded apart: with the API server down a loop still makes attempts,
    which fail, but no progress.
    """

    def __init__(self, name: str, limit: float, clock: Callable[[], float]) -> None:
        self.name = name
        self.limit = limit
        self._clock = clock
        self._attempted_at = self._progressed_at = clock()
        self._idle = 0

    def tick(self) -> None:
        """Record an attempt that has made progress."""
        self._attempted_at = self._progressed_at = self._clock()

    def attempted(self) -> None:
        """Record an attempt, successful or not."""
        self._attempted_at = self._clock()

    def progressed(self) -> None:
        """Record that the purpose of the loop is served, by itself or by another."""
        self._progressed_at = self._clock()

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Enclose a wait that may last for any time: for work, leadership or the next round."""
        self._idle += 1
        try:
            yield
        finally:
            self._idle -= 1
            self.attempted()

    def seconds_since_attempt(self) -> float:
        """Return the seconds since the last attempt, 0 while the loop is idle."""
        return 0.0 if self._idle else self._clock() - self._attempted_at

    def seconds_since_progress(self) -> float:
        """Return the seconds since the last progress."""
        return self._clock() - self._progressed_at


class HealthMonitor:
    """The health of all loops by name; `limit` applies to loops without their own."""

    def __init__(self, limit: float, clock: Callable[[], float]) -> None:
        self.limit = limit
        self._clock = clock
        self._loops: dict[str, LoopHealth] = {}

    def loop(self, name: str, limit: float | None = None) -> LoopHealth:
        """Return the health of the loop with this name, and begin to monitor it if it is new."""
        if name not in self._loops:
            own = self.limit if limit is None else limit
            self._loops[name] = LoopHealth(name, own, self._clock)
        return self._loops[name]

    def stalled(self) -> str:
        """Return a message about the first loop that makes no attempts any more, else empty."""
        return _first(
            f"the loop {loop.name!r} has made no attempt for {loop.seconds_since_attempt():.0f} s"
            for loop in self._loops.values()
            if loop.seconds_since_attempt() > loop.limit
        )

    def without_progress(self, names: Iterable[str]) -> str:
        """Return a message about the first of these without progress for too long, else empty."""
        return _first(
            f"nothing of the {loop.name} for {loop.seconds_since_progress():.0f} s"
            for loop in map(self.loop, names)
            if loop.seconds_since_progress() > loop.limit
        )

    def all_without_progress(self, names: Iterable[str]) -> bool:
        """Return whether all of these have been without progress for too long."""
        return all(loop.seconds_since_progress() > loop.limit for loop in map(self.loop, names))


def _first(found: Iterator[str]) -> str:
    return next(found, "")
