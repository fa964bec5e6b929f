"""Schedules that mean every so often: each minute that the local clock shows is looked at.

cronsim itself would do, but for zones whose clocks change at midnight: there it can begin a day at
a midnight that does not exist and miss the hour after it. So it gets local times without a zone,
from one change of the clocks to the next.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from cronsim import CronSim

_DAY: Final = 86_400


def interval_times(fields: str, zone: tzinfo, last: int) -> Iterator[int]:
    """Yield the times later than `last`, in order; a local time that comes twice is two."""
    resumes: int | None = last
    while resumes is not None:
        last, resumes = resumes, None
        offset = _utc_offset(zone, last + 1)
        for tick in CronSim(fields, _naive_utc(last + offset)):
            at = int(tick.replace(tzinfo=UTC).timestamp()) - offset
            change = _next_offset_change(zone, last + 1, at, offset)
            if change is not None:
                resumes = change - 1
                break
            last = at
            yield at


def _utc_offset(zone: tzinfo, time: int) -> int:
    found = datetime.fromtimestamp(time, zone).utcoffset() or timedelta()
    return int(found.total_seconds())


def _naive_utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _next_offset_change(zone: tzinfo, after: int, until: int, offset: int) -> int | None:
    """Return the first moment with another offset than there is at `after`, `until` included."""
    before = after
    while before < until:
        moment = min(before + _DAY, until)
        if _utc_offset(zone, moment) != offset:
            return _bisect(zone, before, moment, offset)
        before = moment
    return None


def _bisect(zone: tzinfo, before: int, after: int, offset: int) -> int:
    while after - before > 1:
        middle = (before + after) // 2
        if _utc_offset(zone, middle) == offset:
            before = middle
        else:
            after = middle
    return after
