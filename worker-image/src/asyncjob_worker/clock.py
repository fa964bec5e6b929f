"""The worker's clocks: for people, for leases, for spans. The only place that reads them."""

import time
from datetime import UTC, datetime

from asyncjob.lifecycle.timestamps import format_timestamp


def now_text() -> str:
    """Return the wall clock as RFC 3339 text; nothing is decided by it."""
    return format_timestamp(datetime.now(UTC))


def wall_nanoseconds() -> int:
    """Return the wall clock as spans tell it, in nanoseconds since 1970."""
    return time.time_ns()


def lease_seconds() -> float:
    """Return seconds on a clock that nobody sets and that runs on while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def awake_seconds() -> float:
    """Return seconds of a clock that never goes back and stands still while the machine sleeps."""
    return time.monotonic()
