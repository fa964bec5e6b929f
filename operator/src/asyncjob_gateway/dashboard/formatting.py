"""Durations, ages, counts and JSON as text for people. Pure; the time is an argument."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.timestamps import try_parse_timestamp

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

MAX_JSON_CHARS: Final = 64 * 1024
"""Characters of a payload or result that a page shows; REST has the whole."""

_UNIT_SECONDS: Final = {"s": 1, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_DURATION_PATTERN: Final = re.compile(r"(\d{1,9})\s*(s|min|m|h|d|w)?")


@dataclass(frozen=True, slots=True)
class DisplayTime:
    """A time: `exact` is RFC 3339, `clock` for reading, `ago` relative to when the page was made.

    Scripts on the page show `clock` in the reader's zone and keep `ago` true.
    """

    exact: str
    clock: str
    ago: str


def display_time(text: str | None, now: datetime) -> DisplayTime | None:
    """Return the time that the text gives, None where there is none.

    A time that the API server takes and the calendar here does not have is shown as it is written.
    """
    if not text:
        return None
    when = try_parse_timestamp(text)
    if when is None:
        return DisplayTime(exact="", clock=text, ago=text)
    return DisplayTime(
        exact=when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        clock=f"{when:%Y-%m-%d %H:%M:%S} UTC",
        ago=relative_time((now - when).total_seconds()),
    )


def relative_time(seconds: float) -> str:
    """Return `3 min ago`, `in 5 s` or `now`."""
    if abs(seconds) < 1:
        return "now"
    return f"{format_duration(seconds)} ago" if seconds > 0 else f"in {format_duration(-seconds)}"


def format_duration(seconds: float) -> str:
    """Return a duration, in its largest unit and, where that is small, the one below."""
    whole = int(seconds)
    if whole < 1:
        return f"{round(seconds * 1000)} ms"
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return _two_units(whole, MINUTE, "min", 1, "s", small=10)
    if whole < DAY:
        return _two_units(whole, HOUR, "h", MINUTE, "min", small=10)
    return _two_units(whole, DAY, "d", HOUR, "h", small=4)


def _two_units(whole: int, unit: int, name: str, below: int, name_below: str, *, small: int) -> str:
    count, rest = divmod(whole, unit)
    more = rest // below
    return f"{count} {name} {more} {name_below}" if count < small and more else f"{count} {name}"


def parse_duration(text: str) -> int | None:
    """Return the seconds of `90`, `30m`, `2h`, `1d`; None where it is no duration."""
    found = _DURATION_PATTERN.fullmatch(text.strip().lower())
    return int(found[1]) * _UNIT_SECONDS[found[2] or "s"] if found else None


def timestamp_minutes_ago(now: datetime, minutes: float) -> str:
    """Return the time this long ago, as text that compares with stored times of whole seconds."""
    return f"{(now - timedelta(minutes=minutes)).astimezone(UTC):%Y-%m-%dT%H:%M:%S}"


def plural(count: int, word: str, many: str = "") -> str:
    """Return `1 job`, `2,000 jobs`."""
    return f"{count:,} {word if count == 1 else many or word + 's'}"


def format_json(value: Json) -> tuple[str, bool]:
    """Return JSON for reading, and whether it was cut."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text[:MAX_JSON_CHARS], len(text) > MAX_JSON_CHARS
