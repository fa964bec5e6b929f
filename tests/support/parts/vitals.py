"""What parts of the operator need of those around them, where that is not what a test is about."""

import time

from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.quarantine import Quarantine


def quarantine() -> Quarantine:
    """Return a quarantine that counts nothing."""
    return Quarantine(time.monotonic, lambda _kind: None)


def loop_health(name: str = "loop", limit: float = 60.0) -> LoopHealth:
    """Return a loop's health by the real clock."""
    return LoopHealth(name, limit, time.monotonic)
