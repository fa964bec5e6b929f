"""Tells people when many jobs at once were taken from dead workers: a node or a rollout is ill."""

from collections import deque
from collections.abc import Callable
from typing import Final

from asyncjob_operator.core.job_event import Notice, namespace_notice

RECOVERY_STORM: Final = "RecoveryStorm"
JOBS: Final = 20
SECONDS: Final = 60.0


class Storms:
    """Recoveries of the last minute by namespace; `clock` gives monotonic seconds."""

    def __init__(self, tell: Callable[[Notice], None], clock: Callable[[], float]) -> None:
        self._tell = tell
        self._clock = clock
        self._recent: dict[str, deque[float]] = {}

    def recovered(self, namespace: str, reason: str) -> None:
        """Take that a job was recovered; one Event is told for many."""
        now = self._clock()
        recent = self._recent.setdefault(namespace, deque(maxlen=JOBS))
        recent.append(now)
        if len(recent) == JOBS and now - recent[0] <= SECONDS:
            recent.clear()
            message = (
                f"{JOBS} jobs or more were taken from dead workers within a minute, "
                f"the last one for {reason}"
            )
            self._tell(namespace_notice(namespace, RECOVERY_STORM, message))
