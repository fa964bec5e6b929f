"""Times as the API server writes them."""

from datetime import UTC, datetime
from email.utils import format_datetime


def whole_seconds(epoch: float) -> str:
    """Return a time as `metadata` has it, in whole seconds."""
    return f"{datetime.fromtimestamp(int(epoch), UTC):%Y-%m-%dT%H:%M:%SZ}"


def http_date(epoch: float) -> str:
    """Return a time as the `Date` header has it."""
    return format_datetime(datetime.fromtimestamp(int(epoch), UTC), usegmt=True)
