"""The operator's clocks, the only place that reads them."""

import time
from datetime import UTC, datetime

from asyncjob_operator.core.moment import Moment


def monotonic() -> float:
    """Return seconds on a clock that nobody sets and that runs on while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def moment(draw: float = 0.5) -> Moment:
    """Return this moment."""
    return Moment(monotonic(), time.time(), draw)


def micro_text() -> str:
    """Return the wall clock with microseconds, as coordination Leases want it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
