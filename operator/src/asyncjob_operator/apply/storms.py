"""Tells people when many jobs at once were taken from dead workers: a node or a rollout is ill."""

from collections import deque
from collections.abc import Callable
from typing import Final

from asyncjob_operator.core.job_event import KubernetesEvent, namespace_event

RECOVERY_STORM: Final = "RecoveryStorm"
BURST_JOBS: Final = 20
BURST_SECONDS: Final = 60.0


class RecoveryBurstEvents:
    """Recoveries of the last minute by namespace; `clock` gives monotonic seconds."""

    def __init__(
        self, record_event: Callable[[KubernetesEvent], None], clock: Callable[[], float]
    ) -> None:
        self._record_event = record_event
        self._clock = clock
        self._recent: dict[str, deque[float]] = {}

    def on_recovered(self, namespace: str, reason: str) -> None:
        """Take that a job was recovered; one Event is told for many."""
        now = self._clock()
        recent = self._recent.setdefault(namespace, deque(maxlen=BURST_JOBS))
        recent.append(now)
        if len(recent) == BURST_JOBS and now - recent[0] <= BURST_SECONDS:
            recent.clear()
            message = (
                f"{BURST_JOBS} jobs or more were taken from dead workers within a minute, "
                f"the last one for {reason}"
            )
            self._record_event(namespace_event(namespace, RECOVERY_STORM, message))
