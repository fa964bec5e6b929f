"""What a schedule does on the days on which clocks change, as the explanation tells it."""

from pathlib import Path

import pytest

from asyncjob_dev.reference.schedules import CHANGES, SCHEDULES, early_runs, runs

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


@pytest.mark.parametrize(("zone", "day"), [(change.zone, change.day) for change in CHANGES])
def test_a_fixed_time_runs_once_on_every_day_of_the_week_of_the_change(zone: str, day: str) -> None:
    assert len(runs("30 2 * * *", zone, day, days=7)) == 7
    assert len(runs("0 0 * * *", zone, day, days=7)) == 7


def test_the_page_has_a_table_for_each_change_and_each_schedule() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for change in CHANGES:
        assert f"{change.zone}, {change.day}" in text
    assert all(f"`{schedule}`" in text for schedule in SCHEDULES)
