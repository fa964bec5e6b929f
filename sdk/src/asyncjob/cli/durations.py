"""Durations and times as people write and read them: `90s`, `2h30m`, `7d`, `+10m`. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PARTS: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")
_MAX_PARTS: Final = 2
"""Up to this many of a unit the next smaller one is shown with it, as kubectl does."""


def parse_duration(text: str) -> int:
    """Return the seconds of `2h30m`, `90`, `7d`; raises ValueError if it is none."""
    found = _PARTS.fullmatch(text.strip())
    if not found or not any(found.groups()):
        raise ValueError(f"{text!r} is not a duration: write 90s, 10m, 2h30m or 7d")
    counts = [int(part or 0) for part in found.groups()]
    return sum(count * unit for count, unit in zip(counts, _UNITS.values(), strict=True))


def human_duration(seconds: float) -> str:
    """Return a rough length: `5s`, `4m`, `100m`, `3h`, `2d`."""
    whole = max(int(seconds), 0)
    if whole < 2 * 60:
        return f"{whole}s"
    if whole < 3 * 3_600:
        return f"{whole // 60}m"
    if whole < 2 * 86_400:
        return f"{whole // 3_600}h"
    return f"{whole // 86_400}d"


def precise_duration(seconds: float) -> str:
    """Return a length with two units: `0.42s`, `12.3s`, `3m20s`, `2h5m`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.2g}s" if seconds < 1 else f"{seconds:.1f}s".replace(".0s", "s")
    parts, rest = [], int(seconds)
    for letter, unit in _UNITS.items():
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts[:_MAX_PARTS])


def parse_time(text: str | None) -> datetime | None:
    """Return the moment of RFC 3339 text, None if there is none or it is no time.

    A time without a zone, which a server may send that is not ours, is one in UTC.
    """
    try:
        then = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return then.replace(tzinfo=UTC) if then and then.tzinfo is None else then


def time_since(text: str | None, now: datetime) -> str:
    """Return how long ago that was, roughly; an empty text if it is not known."""
    then = parse_time(text)
    return human_duration((now - then).total_seconds()) if then else ""


class DurationParam(click.ParamType[int]):
    """An option's value that is a length of time, given to the command in seconds."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the seconds."""
        try:
            return value if isinstance(value, int) else parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class TimeParam(click.ParamType[str]):
    """An option's value that is a time: RFC 3339, or from now on as `+10m`, `-2h`.

    The command is given RFC 3339 text; `now` comes from the world.
    """

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return RFC 3339 text."""
        try:
            if value[:1] in {"+", "-"}:
                assert ctx is not None
                return relative_time(ctx.obj.now(), value)
            return absolute_time(value)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a time: write 2026-11-21T20:00:00Z, +10m or -2h", param, ctx
            )


def relative_time(now: datetime, text: str) -> str:
    """Return RFC 3339 text of a time this far from now, `+10m` or `-2h`."""
    sign = -1 if text.startswith("-") else 1
    return to_rfc3339(now + sign * timedelta(seconds=parse_duration(text[1:])))


def absolute_time(text: str) -> str:
    """Return RFC 3339 text of a time that says its zone; a day alone begins in UTC."""
    then = datetime.fromisoformat(text)
    if then.tzinfo is None:
        if len(text) > len("2026-11-21"):
            raise ValueError("no zone")
        then = then.replace(tzinfo=UTC)
    return to_rfc3339(then)


def to_rfc3339(then: datetime) -> str:
    """Return RFC 3339 text in UTC, to the second where that is exact."""
    precise = "milliseconds" if then.microsecond else "seconds"
    return then.astimezone(UTC).isoformat(timespec=precise).replace("+00:00", "Z")
