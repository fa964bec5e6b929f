"""What a cron job does on the days on which clocks change, as the explanation tells it."""

from itertools import islice, takewhile
from pathlib import Path

import pytest

from asyncjob_dev.reference.resources import CLOCK_CHANGES, SCHEDULES, early_runs, runs
from asyncjob_operator.core.schedules.calendar import parse_schedule
from asyncjob_operator.core.schedules.view import format_epoch
from support.objects.schedules import utc

PAGE = Path(__file__).parents[3] / "docs/explanation/schedules-and-clock-changes.md"

EXPECTED = {
    ("Europe/Berlin", "2026-03-29"): {
        "30 2 * * *": "03:00",
        "0,30 1-3 * * *": "01:00 01:30 03:00 03:30",
        "*/30 1-3 * * *": "01:00 01:30 03:00 03:30",
        "*/30 2 * * *": "",
        "30 */2 * * *": "00:30 04:30",
    },
    ("Europe/Berlin", "2026-10-25"): {
        "30 2 * * *": "02:30 (first)",
        "0,30 1-3 * * *": "01:00 01:30 02:00 (first) 02:30 (first) 03:00 03:30",
        "*/30 1-3 * * *": (
            "01:00 01:30 02:00 (first) 02:30 (first) 02:00 (second) 02:30 (second) 03:00 03:30"
        ),
        "*/30 2 * * *": "02:00 (first) 02:30 (first) 02:00 (second) 02:30 (second)",
        "30 */2 * * *": "00:30 02:30 (first) 02:30 (second) 04:30",
    },
    ("America/New_York", "2026-03-08"): {"30 2 * * *": "03:00", "*/30 2 * * *": ""},
    ("America/New_York", "2026-11-01"): {
        "30 2 * * *": "02:30",
        "*/30 1-3 * * *": (
            "01:00 (first) 01:30 (first) 01:00 (second) 01:30 (second) 02:00 02:30 03:00 03:30"
        ),
    },
    ("Australia/Lord_Howe", "2026-10-04"): {
        "30 2 * * *": "02:30",
        "0,30 1-3 * * *": "01:00 01:30 02:30 03:00 03:30",
    },
    ("Australia/Lord_Howe", "2026-04-05"): {
        "0,30 1-3 * * *": "01:00 01:30 (first) 02:00 02:30 03:00 03:30",
        "*/30 1-3 * * *": "01:00 01:30 (first) 01:30 (second) 02:00 02:30 03:00 03:30",
    },
    ("Australia/Sydney", "2026-10-04"): {"30 2 * * *": "03:00"},
    ("Australia/Sydney", "2026-04-05"): {"30 2 * * *": "02:30 (first)"},
}
CASES = [
    (zone, day, text, expected)
    for (zone, day), table in EXPECTED.items()
    for text, expected in table.items()
]


@pytest.mark.parametrize(("zone", "day", "text", "expected"), CASES)
def test_on_a_day_that_is_longer_or_shorter(zone: str, day: str, text: str, expected: str) -> None:
    assert " ".join(early_runs(text, zone, day)) == expected


@pytest.mark.parametrize(("zone", "day"), [(change.zone, change.day) for change in CLOCK_CHANGES])
def test_a_fixed_time_runs_once_on_every_day_of_the_week_of_the_change(zone: str, day: str) -> None:
    assert len(runs("30 2 * * *", zone, day, days=7)) == 7
    assert len(runs("0 0 * * *", zone, day, days=7)) == 7


@pytest.mark.parametrize("text", ["0,30 1 * * SUN", "*/30 1 * * SUN"])
def test_where_clocks_change_at_midnight_the_hour_after_it_is_not_missed(text: str) -> None:
    schedule = parse_schedule(text, "America/Santiago", "ns/name")
    for start in ("2026-08-31T00:00:00Z", "2026-09-06T03:59:59Z"):
        found = islice(schedule.times_after(utc(start)), 3)
        assert [format_epoch(time)[:16] for time in found] == [
            "2026-09-06T04:00",
            "2026-09-06T04:30",
            "2026-09-13T04:00",
        ]


@pytest.mark.parametrize("zone", ["Africa/Casablanca", "America/Havana", "Europe/Berlin", "UTC"])
@pytest.mark.parametrize("text", ["*/20 0-3 * * *", "15 */3 * * SAT,SUN", "30 1,2 * * *"])
def test_times_do_not_depend_on_where_one_begins_to_look(zone: str, text: str) -> None:
    schedule = parse_schedule(text, zone, "ns/name")
    start, end = utc("2026-01-01T00:00:00Z"), utc("2027-01-01T00:00:00Z")
    whole = list(takewhile(lambda time: time < end, schedule.times_after(start)))
    assert whole == sorted(set(whole))
    for moment in range(start, end, 86_400 * 5 + 1_800):
        later = [time for time in whole if time > moment][:20]
        assert list(islice(schedule.times_after(moment), len(later))) == later


@pytest.mark.parametrize(("zone", "day"), [(change.zone, change.day) for change in CLOCK_CHANGES])
@pytest.mark.parametrize("text", SCHEDULES)
def test_from_any_minute_of_the_day_the_next_time_is_the_same(
    zone: str, day: str, text: str
) -> None:
    schedule, start = parse_schedule(text, zone, "ns/name"), utc(f"{day}T00:00:00Z") - 86_400
    whole = list(takewhile(lambda time: time < start + 5 * 86_400, schedule.times_after(start)))
    for moment in range(start, start + 2 * 86_400, 600):
        assert next(schedule.times_after(moment)) == next(time for time in whole if time > moment)


def test_the_page_has_a_table_for_each_change_and_each_schedule() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for change in CLOCK_CHANGES:
        assert f"{change.zone}, {change.day}" in text
    assert all(f"`{schedule}`" in text for schedule in SCHEDULES)
