"""When a schedule is due: cronsim's times, as whole seconds since the epoch, in order, each once.

`H` in a schedule and jitter are derived by hash from the cron job's name. Zones come from the
pinned tzdata package and never from the host, so that all replicas of one version agree. On days
with a clock change the times are those of cronsim, which follows Debian's cron: see
`docs/explanation/schedules-and-clock-changes.md`, whose tables are generated from this module.

Schedules that repeat at an interval are computed in local time, from one clock change to the next:
in zones whose clocks change at midnight cronsim can begin a day at a midnight that does not exist
and miss the hour after it.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from itertools import takewhile
from math import floor
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from asyncjob.errors import AsyncJobError


class BadScheduleError(AsyncJobError):
    """The schedule cannot be read."""

    code = "BadSchedule"


class BadTimeZoneError(AsyncJobError):
    """There is no such time zone."""

    code = "BadTimeZone"


class NeverFiresError(AsyncJobError):
    """No day will ever match the schedule."""

    code = "NeverFires"


MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELD_COUNT: Final = 5
H_RANGES: Final = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day", 1, 28),
    ("month", 1, 12),
    ("weekday", 0, 6),
)
"""The range of H in each field; every month has a 28th."""

_H: Final = re.compile(r"H(?:\((\d+)-(\d+)\))?(?:/(\d+))?", re.IGNORECASE)
_DAY: Final = 86_400
_PROBE: Final = datetime(2000, 1, 1, tzinfo=UTC)
_NEVER_FIRES: Final = "Bad day-of-month"
_FIELD_OF_ERROR: Final = {
    "Bad minute": "minute",
    "Bad hour": "hour",
    "Bad day-of-month": "day",
    "Bad month": "month",
    "Bad day-of-week": "weekday",
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """Five fields without H, and their time zone."""

    fields: str
    zone: tzinfo

    def times_after(self, time: float) -> Iterator[int]:
        """Yield the times later than `time`, in order."""
        last = floor(time)
        if self.zone is UTC or self._is_time_of_day:
            return self._times_of_day(last)
        return interval_times(self.fields, self.zone, last)

    @property
    def _is_time_of_day(self) -> bool:
        minute, hour, *_ = self.fields.split()
        return not (minute.startswith("*") or hour.startswith("*"))

    def _times_of_day(self, last: int) -> Iterator[int]:
        ticks = CronSim(self.fields, datetime.fromtimestamp(last, UTC).astimezone(self.zone))
        for tick in ticks:
            # When started within an hour that is repeated, cronsim begins in the first of the two.
            at = int(tick.timestamp())
            if at > last:
                last = at
                yield at

    def first_after(self, time: float) -> int | None:
        """Return the first time later than `time`, None if there is none within 50 years."""
        return _first_after(self, floor(time))

    def newest_times(self, after: float, until: float, limit: int) -> list[int]:
        """Return the newest times later than `after` and not later than `until`, oldest first.

        It looks back farther and farther until it has found enough, so that a year of downtime
        takes no longer than its end.
        """
        span = _DAY
        while True:
            start = max(after, until - span)
            found = deque(takewhile(lambda at: at <= until, self.times_after(start)), maxlen=limit)
            if start == after or len(found) == limit:
                return list(found)
            span *= 4


@lru_cache(maxsize=4096)
def _first_after(schedule: Schedule, time: int) -> int | None:
    return next(schedule.times_after(time), None)


@lru_cache(maxsize=4096)
def parse_schedule(text: str, zone: str, seed: str) -> Schedule:
    """Read a schedule; `seed` determines the values of H.

    Raises BadScheduleError, BadTimeZoneError or NeverFiresError, whose message names the field.
    """
    fields = MACROS.get(text.strip().lower(), text).split()
    if len(fields) != FIELD_COUNT:
        raise BadScheduleError(
            "spec.schedule: it takes five fields (minute hour day month weekday),"
            f" not {len(fields)}: {text!r}"
        )
    plain = " ".join(expand_h(fields, seed))
    try:
        CronSim(plain, _PROBE)
    except CronSimError as error:
        raise _schedule_error(text, plain, error) from None
    schedule = Schedule(plain, load_zone(zone))
    if schedule.first_after(_PROBE.timestamp()) is None:
        raise NeverFiresError(f"spec.schedule: no day ever matches {text!r}")
    return schedule


def _schedule_error(
    text: str, plain: str, error: CronSimError
) -> BadScheduleError | NeverFiresError:
    if str(error) == _NEVER_FIRES and _valid_in_any_month(plain):
        return NeverFiresError(f"spec.schedule: no day ever matches {text!r}")
    field = _FIELD_OF_ERROR.get(str(error), "text")
    return BadScheduleError(f"spec.schedule: the {field} of {text!r} cannot be read")


def _valid_in_any_month(plain: str) -> bool:
    minute, hour, day, _, weekday = plain.split()
    try:
        CronSim(" ".join((minute, hour, day, "*", weekday)), _PROBE)
    except CronSimError:
        return False
    return True


def expand_h(fields: list[str], seed: str) -> list[str]:
    """Return the five fields with each H replaced. Raises BadScheduleError."""
    return [
        ",".join(_expand_item(item, index, seed) for item in field.split(","))
        for index, field in enumerate(fields)
    ]


def _expand_item(item: str, index: int, seed: str) -> str:
    match = _H.fullmatch(item)
    if not match:
        return item
    name, low, high = H_RANGES[index]
    if match[1] is not None:
        first, last = int(match[1]), int(match[2])
        upper = 31 if name == "day" else high
        if not low <= first <= last <= upper:
            raise BadScheduleError(
                f"spec.schedule: {name}: {item} is not a range within {low} to {upper}"
            )
        low, high = first, last
    step = int(match[3]) if match[3] else 0
    if match[3] and not 0 < step <= high - low + 1:
        raise BadScheduleError(
            f"spec.schedule: {name}: the step of {item} is not within 1 to {high - low + 1}"
        )
    return _expand_values(f"{seed} {name}", low, high, step)


def _expand_values(seed: str, low: int, high: int, step: int) -> str:
    if not step:
        return str(low + stable_hash(seed, high - low + 1))
    return ",".join(str(value) for value in range(low + stable_hash(seed, step), high + 1, step))


def stable_hash(seed: str, size: int) -> int:
    """Return a number from 0 to size - 1 that is determined by the seed."""
    return int.from_bytes(sha256(seed.encode()).digest()[:8]) % size


def interval_times(fields: str, zone: tzinfo, last: int) -> Iterator[int]:
    """Yield the times later than `last`, in order; a local time that is repeated counts twice."""
    resume_after: int | None = last
    while resume_after is not None:
        last, resume_after = resume_after, None
        offset = _utc_offset(zone, last + 1)
        for tick in CronSim(fields, _naive_utc(last + offset)):
            at = int(tick.replace(tzinfo=UTC).timestamp()) - offset
            change = _next_offset_change(zone, last + 1, at, offset)
            if change is not None:
                resume_after = change - 1
                break
            last = at
            yield at


def _utc_offset(zone: tzinfo, time: int) -> int:
    found = datetime.fromtimestamp(time, zone).utcoffset() or timedelta()
    return int(found.total_seconds())


def _naive_utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _next_offset_change(zone: tzinfo, after: int, until: int, offset: int) -> int | None:
    """Return the first time after `after`, up to `until`, whose UTC offset is not `offset`."""
    before = after
    while before < until:
        probe = min(before + _DAY, until)
        if _utc_offset(zone, probe) != offset:
            return _bisect(zone, before, probe, offset)
        before = probe
    return None


def _bisect(zone: tzinfo, before: int, after: int, offset: int) -> int:
    while after - before > 1:
        middle = (before + after) // 2
        if _utc_offset(zone, middle) == offset:
            before = middle
        else:
            after = middle
    return after


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names of all time zones."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return frozenset(listed.split())


@lru_cache(maxsize=1024)
def load_zone(name: str) -> tzinfo:
    """Return the time zone of this name. Raises BadTimeZoneError."""
    if name not in zone_names():
        raise BadTimeZoneError(f"spec.timeZone: there is no zone {name!r} in the operator's tzdata")
    if name == "UTC":
        return UTC
    with resources.files("tzdata.zoneinfo").joinpath(name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)
