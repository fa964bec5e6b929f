"""The worker's clocks: wall time for people and for spans, monotonic time for leases and delays."""

import time
from datetime import UTC, datetime

from asyncjob.lifecycle.timestamps import format_timestamp


def now_text() -> str:
    """Return the wall clock as RFC 3339 text, for people to read.

    No decision about a job depends on it. How many items a chunk of an array gets does, by how long
    others have taken: a clock that jumps costs one wrong size.
    """
    return format_timestamp(datetime.now(UTC))


def micro_time_text() -> str:
    """Return the wall clock with microseconds, as coordination Leases want it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def wall_seconds() -> float:
    """Return the wall clock in epoch seconds; the API server's counts wherever it is known."""
    return time.time()


def wall_nanoseconds() -> int:
    """Return the wall clock in nanoseconds since 1970, as OpenTelemetry spans have it."""
    return time.time_ns()


def boottime() -> float:
    """Return seconds of a clock that is never set and goes on while the machine sleeps.

    Leases are measured by it: they go on expiring while this machine sleeps.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def monotonic() -> float:
    """Return seconds of a clock that is never set and stops while the machine sleeps."""
    return time.monotonic()
