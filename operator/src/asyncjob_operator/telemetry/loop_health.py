"""Whether all loops and watches of the process make progress, each as it reports itself.

Liveness and readiness probes, and whether this replica may lead, are answered from it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class LoopHealth:
    """One loop or watch. `limit`: seconds after which its silence is too long.

    Two things are told apart: that it turns, were it only to fail at a request once more, and that
    it gets anywhere. With the API server down it turns and gets nowhere.
    """

    def __init__(self, name: str, limit: float, clock: Callable[[], float]) -> None:
        self.name = name
        self.limit = limit
        self._clock = clock
        self._attempted_at = self._progressed_at = clock()
        self._idle = 0

    def tick(self) -> None:
        """Take that it has got on."""
        self._attempted_at = self._progressed_at = self._clock()

    def attempted(self) -> None:
        """Take that it has tried."""
        self._attempted_at = self._clock()

    def progressed(self) -> None:
        """Take that what it is there for is done, by itself or by another."""
        self._progressed_at = self._clock()

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Wait inside for what need not come: work, leadership, the next round."""
        self._idle += 1
        try:
            yield
        finally:
            self._idle -= 1
            self.attempted()

    def seconds_since_attempt(self) -> float:
        """Return the seconds since it last turned, 0 while it waits."""
        return 0.0 if self._idle else self._clock() - self._attempted_at

    def seconds_since_progress(self) -> float:
        """Return the seconds since it last got anywhere."""
        return self._clock() - self._progressed_at


class HealthMonitor:
    """All pulses by name; `limit` is for those without one of their own."""

    def __init__(self, limit: float, clock: Callable[[], float]) -> None:
        self.limit = limit
        self._clock = clock
        self._loops: dict[str, LoopHealth] = {}

    def loop(self, name: str, limit: float | None = None) -> LoopHealth:
        """Return the pulse of that name, from now on if it is new."""
        if name not in self._loops:
            own = self.limit if limit is None else limit
            self._loops[name] = LoopHealth(name, own, self._clock)
        return self._loops[name]

    def stalled(self) -> str:
        """Return which loop does not turn any more, or an empty text."""
        return _first(
            f"no turn of the loop {one.name!r} for {one.seconds_since_attempt():.0f} s"
            for one in self._loops.values()
            if one.seconds_since_attempt() > one.limit
        )

    def without_progress(self, names: Iterable[str]) -> str:
        """Return which of these has got nowhere for too long, or an empty text."""
        return _first(
            f"nothing of the {one.name} for {one.seconds_since_progress():.0f} s"
            for one in map(self.loop, names)
            if one.seconds_since_progress() > one.limit
        )

    def all_without_progress(self, names: Iterable[str]) -> bool:
        """Return whether every one of these has got nowhere for too long."""
        return all(one.seconds_since_progress() > one.limit for one in map(self.loop, names))


def _first(found: Iterator[str]) -> str:
    return next(found, "")
