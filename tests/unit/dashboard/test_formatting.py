import pytest

from asyncjob_gateway.dashboard.formatting import (
    display_time,
    format_duration,
    format_json,
    parse_duration,
    plural,
    relative_time,
)
from support.objects.rest_jobs import NOW, before


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0421, "42 ms"),
        (1, "1 s"),
        (59.9, "59 s"),
        (61, "1 min 1 s"),
        (600, "10 min"),
        (660, "11 min"),
        (3600, "1 h"),
        (3660, "1 h 1 min"),
        (40_000, "11 h"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
        (86_400 * 30, "30 d"),
    ],
)
def test_a_duration_is_told_in_its_largest_units(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_an_age_tells_past_from_future() -> None:
    assert [relative_time(0.4), relative_time(5), relative_time(-5)] == ["now", "5 s ago", "in 5 s"]


def test_a_moment_has_the_exact_time_and_one_for_reading() -> None:
    shown = display_time(before(65.5), NOW)

    assert shown
    assert shown.exact == "2026-11-21T11:58:54.500Z"
    assert shown.clock == "2026-11-21 11:58:54 UTC"
    assert shown.ago == "1 min 5 s ago"


def test_no_time_is_no_moment() -> None:
    assert display_time(None, NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("30m", 1800), ("2h", 7200), (" 1D ", 86_400), ("1w", 604_800), ("5 min", 300)],
)
def test_a_duration_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "1.5h", "9" * 40, "5 y"])
def test_what_is_no_duration_is_not_read(text: str) -> None:
    assert parse_duration(text) is None


def test_counts_have_their_plural() -> None:
    assert [plural(1, "job"), plural(2000, "job"), plural(2, "child", "children")] == [
        "1 job",
        "2,000 jobs",
        "2 children",
    ]


def test_json_is_shown_readably_and_cut_where_it_is_long() -> None:
    assert format_json({"a": ["ü"]}) == ('{\n  "a": [\n    "ü"\n  ]\n}', False)
    text, was_cut = format_json("x" * 70_000)
    assert was_cut
    assert len(text) == 64 * 1024


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "2016-12-31T23:59:60Z"]
)
def test_a_time_that_no_calendar_here_has_is_shown_as_it_is_written(text: str) -> None:
    shown = display_time(text, NOW)

    assert shown
    assert (shown.exact, shown.clock, shown.ago) == ("", text, text)
