"""The gateway's wall clock, the only place that reads it."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)
