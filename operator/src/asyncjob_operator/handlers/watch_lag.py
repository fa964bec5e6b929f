"""How late new jobs are seen. In a quiet cluster nobody can tell, and an old answer is none."""

from collections.abc import Callable
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.core.moment import Now

SHOWN_SECONDS: Final = 60.0
"""So long the lag of the newest job is shown."""


class WatchLag:
    """The age of the newest job when it was first seen, by two clocks: ours, the API server's."""

    def __init__(self, now: Callable[[], Now]) -> None:
        self._now = now
        self._seconds = 0.0
        self._observed_at = float("-inf")

    def observe_created(self, obj: JsonObject) -> None:
        """Take a job that was created; the API server tells whole seconds, so 1 is no lag."""
        now = self._now()
        age = -now.seconds_until(text(child(obj, "metadata"), "creationTimestamp"))
        self._seconds, self._observed_at = age if age >= 1.0 else 0.0, now.monotonic

    def seconds(self) -> float:
        """Return the lag, 0 if no job was created lately."""
        is_fresh = self._now().monotonic < self._observed_at + SHOWN_SECONDS
        return self._seconds if is_fresh else 0.0
