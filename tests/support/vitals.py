"""What parts of the operator need of those around them, where that is not what a test is about."""

import time

from asyncjob_operator.telemetry.containment import Containment
from asyncjob_operator.telemetry.loop_health import LoopHealth


def containment() -> Containment:
    """Return a containment that counts nothing."""
    return Containment(time.monotonic, lambda _kind: None)


def pulse(name: str = "loop", limit: float = 60.0) -> LoopHealth:
    """Return a pulse on the real clock."""
    return LoopHealth(name, limit, time.monotonic)
