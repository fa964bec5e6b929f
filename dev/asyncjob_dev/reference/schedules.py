"""Tables about schedules: what they do on days on which clocks change, from the code itself."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from asyncjob.lifecycle.schedules import CRON_REASON_DOCS
from asyncjob_dev.reference.blocks import table
from asyncjob_operator.core.cron.schedule import load_zone, parse_schedule


@dataclass(frozen=True)
class ClockChange:
    """A day on which the clocks of a zone change."""

    zone: str
    day: str
    what: str


CLOCK_CHANGES: Final = (
    ClockChange("Europe/Berlin", "2026-03-29", "02:00 becomes 03:00"),
    ClockChange("Europe/Berlin", "2026-10-25", "03:00 becomes 02:00"),
    ClockChange("America/New_York", "2026-03-08", "02:00 becomes 03:00"),
    ClockChange("America/New_York", "2026-11-01", "02:00 becomes 01:00"),
    ClockChange("Australia/Sydney", "2026-10-04", "02:00 becomes 03:00"),
    ClockChange("Australia/Sydney", "2026-04-05", "03:00 becomes 02:00"),
    ClockChange("Australia/Lord_Howe", "2026-10-04", "02:00 becomes 02:30"),
    ClockChange("Australia/Lord_Howe", "2026-04-05", "02:00 becomes 01:30"),
)

SCHEDULES: Final = (
    "30 2 * * *",
    "0,30 1-3 * * *",
    "*/30 1-3 * * *",
    "*/30 2 * * *",
    "30 */2 * * *",
)
MORNING: Final = "05:00"


def schedule_reasons() -> str:
    """Return the table of what the status of a schedule may say."""
    rows = [(f"`{reason.value}`", text) for reason, text in CRON_REASON_DOCS.items()]
    return table(("Reason", "Meaning"), rows)


def clock_changes() -> str:
    """Return a table for each change: the runs of each schedule before five in the morning."""
    return "\n\n".join(_change(change) for change in CLOCK_CHANGES)


def _change(change: ClockChange) -> str:
    rows = [
        (f"`{text}`", ", ".join(early_runs(text, change.zone, change.day)) or "no run on this day")
        for text in SCHEDULES
    ]
    head = f"### {change.zone}, {change.day}: {change.what}\n\n"
    return head + table(("Schedule", "Runs before 05:00, by the local clock"), rows)


def early_runs(text: str, zone: str, day: str) -> list[str]:
    """Return the local times of the runs before five in the morning."""
    return [run for run in runs(text, zone, day) if run < MORNING]


def runs(text: str, zone: str, day: str, days: int = 1) -> list[str]:
    """Return the local times of the runs of a day; of an hour that comes twice which of the two."""
    local = load_zone(zone)
    start = datetime.fromisoformat(day).replace(tzinfo=local)
    end = (start + timedelta(days=days)).timestamp()
    schedule = parse_schedule(text, zone, "ns/name")
    found = takewhile(lambda time: time < end, schedule.times_after(start.timestamp() - 1))
    return [_local(datetime.fromtimestamp(time, local)) for time in found]


def _local(moment: datetime) -> str:
    other = moment.replace(fold=1 - moment.fold)
    twice = moment.fold or other.utcoffset() != moment.utcoffset()
    which = " (second)" if moment.fold else " (first)"
    return f"{moment:%H:%M}{which if twice else ''}"
