"""When a schedule is due: cronsim's times, as whole seconds since the epoch, in order, each once.

Zones come from the pinned tzdata package and never from the host, so that all replicas of one
version agree. Where days are longer or shorter than others all is as in cronsim, which follows
Debian's cron: see `docs/explanation/schedules-and-clock-changes.md`, whose tables come from here.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from importlib import resources
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from asyncjob_operator.core.cron.elapsing import interval_times
from asyncjob_operator.core.cron.errors import (
    BadScheduleError,
    BadTimeZoneError,
    NeverFiresError,
)
from asyncjob_operator.core.cron.hashing import expand_h

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
    """Five fields without H, and the zone they are meant in."""

    fields: str
    zone: tzinfo

    def times_after(self, time: float) -> Iterator[int]:
        """Yield the times later than the moment, in order."""
        last = int(time // 1)
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
            # From within an hour that comes twice cronsim goes on with the first of the two.
            at = int(tick.timestamp())
            if at > last:
                last = at
                yield at

    def first_after(self, time: float) -> int | None:
        """Return the first time later than the moment, or None if there is none in 50 years."""
        return _first_after(self, int(time // 1))

    def newest_times(self, after: float, until: float, limit: int) -> list[int]:
        """Return the newest times later than `after` and not later than `until`, oldest first.

        Looks back farther and farther, so that a year of downtime costs no more than its end.
        """
        if until <= after:
            return []
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
    """Read a schedule; `seed` is what H follows from.

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


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names of all zones."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return frozenset(listed.split())


@lru_cache(maxsize=1024)
def load_zone(name: str) -> tzinfo:
    """Return the zone; raises BadTimeZoneError."""
    if name not in zone_names():
        raise BadTimeZoneError(f"spec.timeZone: there is no zone {name!r} in the operator's tzdata")
    if name == "UTC":
        return UTC
    with resources.files("tzdata.zoneinfo").joinpath(name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)
