"""Lengths and points of time, as people write and read them."""

from datetime import UTC, datetime, timedelta

import pytest

from asyncjob.cli.durations import (
    absolute_time,
    human_duration,
    parse_duration,
    precise_duration,
    relative_time,
    time_since,
)

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "length"),
    [("90", 90), ("90s", 90), ("10m", 600), ("2h30m", 9000), ("7d", 604_800), ("1d2h3m4s", 93_784)],
)
def test_durations_are_read(text: str, length: int) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["", "m", "1.5h", "10 m", "5w", "-3s", "1h2d", "ten"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write 90s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("length", "text"),
    [(-3, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (10_799, "179m"), (10_800, "3h"),
     (172_799, "47h"), (172_800, "2d")],
)  # fmt: skip
def test_ages_are_rough(length: float, text: str) -> None:
    assert human_duration(length) == text


@pytest.mark.parametrize(
    ("length", "text"),
    [(0.4239, "0.42s"), (2, "2s"), (12.34, "12.3s"), (200, "3m20s"), (7505, "2h5m"),
     (90_061, "1d1h")],
)  # fmt: skip
def test_durations_are_shown_with_two_units(length: float, text: str) -> None:
    assert precise_duration(length) == text


def test_times_from_now_on_go_both_ways() -> None:
    assert relative_time(NOW, "+10m") == "2026-11-21T20:10:00Z"
    assert relative_time(NOW, "-2h") == "2026-11-21T18:00:00Z"
    assert relative_time(NOW + timedelta(milliseconds=5), "+1s") == "2026-11-21T20:00:01.005Z"


def test_times_are_turned_into_utc_and_a_bare_day_begins_there() -> None:
    assert absolute_time("2026-11-21T21:00:00+01:00") == "2026-11-21T20:00:00Z"
    assert absolute_time("2026-11-21") == "2026-11-21T00:00:00Z"


@pytest.mark.parametrize("text", ["2026-11-21T20:00:00", "soon", "2026-13-01"])
def test_a_time_without_zone_or_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"zone|isoformat|month"):
        absolute_time(text)


def test_what_has_no_time_has_no_age() -> None:
    assert time_since(None, NOW) == time_since("never", NOW) == ""
    assert time_since("2026-11-21T19:59:00Z", NOW) == "60s"


def test_a_time_without_zone_that_a_server_tells_is_in_utc() -> None:
    assert time_since("2026-11-21T19:00:00", NOW) == "60m"
