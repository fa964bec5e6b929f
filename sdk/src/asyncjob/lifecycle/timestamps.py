"""Timestamps as the API server stores them: RFC 3339 text in UTC, with milliseconds."""

from datetime import UTC, datetime, timedelta


def format_timestamp(time: datetime) -> str:
    """Return RFC 3339 text in UTC with milliseconds; raises ValueError if UTC has no such year."""
    try:
        time = time.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{time} lies beyond the years of UTC, 1 to 9999") from error
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(value: str) -> datetime:
    """Return the moment; raises ValueError if the text is not RFC 3339, in whichever case."""
    return datetime.fromisoformat(value.upper())


def try_parse_timestamp(value: str) -> datetime | None:
    """Return the moment in UTC, or None if the text tells none that UTC has.

    For times that somebody else wrote: the API server takes year 0 in metadata, and 9999 with an
    offset that leads beyond it.
    """
    try:
        moment = parse_timestamp(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def add_seconds(value: str, seconds: float) -> str:
    """Return the text of the moment that is `seconds` later."""
    return format_timestamp(parse_timestamp(value) + timedelta(seconds=seconds))


def seconds_between(start: str, end: str) -> float | None:
    """Return how many seconds `end` is after `start`, or None if either tells no time."""
    began, ended = try_parse_timestamp(start), try_parse_timestamp(end)
    return (ended - began).total_seconds() if began and ended else None
