"""When schedules are due: fields, H, zones, clock changes and leap years."""

from datetime import UTC
from itertools import islice

import pytest

from asyncjob_operator.core.schedules.calendar import (
    MACROS,
    BadScheduleError,
    BadTimeZoneError,
    NeverFiresError,
    Schedule,
    expand_h,
    load_zone,
    parse_schedule,
    stable_hash,
    zone_names,
)
from asyncjob_operator.core.schedules.view import format_epoch
from support.objects.schedules import seconds, utc


def schedule(text: str, zone: str = "UTC", seed: str = "ns/nightly") -> Schedule:
    return parse_schedule(text, zone, seed)


def times(text: str, zone: str, start: str, count: int) -> list[str]:
    found = islice(schedule(text, zone).times_after(utc(start)), count)
    return [format_epoch(time)[:16] for time in found]


def test_times_are_later_than_the_moment_and_in_order() -> None:
    at = seconds("2026-11-21T03:00")
    [first, second] = islice(schedule("0 * * * *").times_after(at), 2)
    assert (format_epoch(first), format_epoch(second)) == (
        "2026-11-21T04:00:00.000Z",
        "2026-11-21T05:00:00.000Z",
    )
    assert next(schedule("0 * * * *").times_after(at - 0.5)) == at


@pytest.mark.parametrize("macro", MACROS)
def test_every_macro_is_the_schedule_it_stands_for(macro: str) -> None:
    assert schedule(macro) == schedule(MACROS[macro])


def test_names_lists_ranges_steps_and_last_days_are_understood() -> None:
    start = "2026-11-21T00:00:00Z"
    assert times("0 9 * JAN mon-fri", "UTC", start, 1) == ["2027-01-01T09:00"]
    assert times("0 0 L * *", "UTC", start, 1) == ["2026-11-30T00:00"]
    assert times("0 0 LW * *", "UTC", "2026-10-01T00:00:00Z", 1) == ["2026-10-30T00:00"]
    assert times("0 0 * * MON#1", "UTC", start, 1) == ["2026-12-07T00:00"]
    assert times("0 0 * * 5L", "UTC", start, 1) == ["2026-11-27T00:00"]


def test_day_and_weekday_both_count_as_either_unless_one_begins_with_a_star() -> None:
    start = "2026-11-21T00:00:00Z"
    assert times("0 0 13 * FRI", "UTC", start, 2) == ["2026-11-27T00:00", "2026-12-04T00:00"]
    assert times("0 0 */31 * FRI", "UTC", start, 1) == ["2027-01-01T00:00"]


def test_a_leap_day_comes_every_four_years_and_not_in_2100() -> None:
    found = times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 20)
    assert found[:2] == ["2028-02-29T00:00", "2032-02-29T00:00"]
    assert found[17:19] == ["2096-02-29T00:00", "2104-02-29T00:00"]


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 4 */2", "0 0 */29 2 MON#5"]
)
def test_a_day_that_no_month_has_never_comes_and_is_said_so(text: str) -> None:
    with pytest.raises(NeverFiresError, match="no day ever matches"):
        schedule(text)


def test_a_schedule_that_matches_once_in_many_years_is_found() -> None:
    assert times("0 0 */31 2 MON", "UTC", "2026-11-21T00:00:00Z", 1) == ["2027-02-01T00:00"]
    assert times("0 0 * 2 MON#5", "UTC", "2026-11-21T00:00:00Z", 1) == ["2044-02-29T00:00"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 32 * *", "day"),
        ("* * 0 * *", "day"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "weekday"),
        ("5-1 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("H(5-99) * * * *", "minute"),
        ("H/99 * * * *", "minute"),
        ("* * * * H/9", "weekday"),
        ("* * * *", "five fields"),
        ("0 0 * * * *", "five fields"),
        ("@often", "five fields"),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(text: str, field: str) -> None:
    with pytest.raises(BadScheduleError, match=rf"\b{field}\b") as refusal:
        schedule(text)
    assert str(refusal.value).startswith("spec.schedule: ")


@pytest.mark.parametrize(
    "zone", ["Europe/Atlantis", "../etc/passwd", "", "posixrules", "europe/berlin"]
)
def test_an_unknown_zone_is_refused_by_name(zone: str) -> None:
    with pytest.raises(BadTimeZoneError, match=r"spec\.timeZone"):
        schedule("0 0 * * *", zone)


def test_utc_is_utc_whatever_zone_the_machine_is_in() -> None:
    load_zone.cache_clear()  # whoever asked before has had the work done
    assert load_zone("UTC") is UTC


def test_every_zone_of_the_pinned_database_can_be_used() -> None:
    assert len(zone_names()) > 400
    for zone in zone_names():
        assert schedule("0 3 * * *", zone).first_after(0.0)


# ---------------------------------------------------------------- H


def test_h_is_the_same_for_the_same_name_and_differs_between_names() -> None:
    assert schedule("H H * * *") == schedule("H H * * *")
    minutes = {schedule("H * * * *", seed=f"ns/{n}").fields.split()[0] for n in range(400)}
    assert len(minutes) == 60


@pytest.mark.parametrize("seed", [f"ns/{number}" for number in range(40)])
def test_h_stays_within_what_it_stands_for(seed: str) -> None:
    minute, hour, day, month, weekday = expand_h(["H", "H(2-5)", "H", "H", "H"], seed)
    assert 0 <= int(minute) <= 59
    assert 2 <= int(hour) <= 5
    assert 1 <= int(day) <= 28
    assert 1 <= int(month) <= 12
    assert 0 <= int(weekday) <= 6
    steps = [int(value) for value in expand_h(["H/15", "*", "*", "*", "*"], seed)[0].split(",")]
    assert steps == list(range(steps[0], 60, 15))
    assert len(steps) == 4
    [each] = expand_h(["H(3-7)/1"], seed)
    assert each == "3,4,5,6,7"
    [some] = expand_h(["H(0-29)/10,59"], seed)
    values = [int(value) for value in some.split(",")]
    assert len(values) == 4
    assert values[-1] == 59


def test_a_range_of_h_may_be_as_wide_as_its_field_and_as_narrow_as_one_value() -> None:
    assert expand_h(["H(0-59)/1", "H(7-7)", "H(31-31)", "H(12-12)", "H(6-6)"], "s")[1:] == [
        "7",
        "31",
        "12",
        "6",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("H(0-60) * * * *", "minute: H(0-60) is not a range within 0 to 59"),
        ("* H(0-24) * * *", "hour: H(0-24) is not a range within 0 to 23"),
        ("* * H(1-32) * *", "day: H(1-32) is not a range within 1 to 31"),
        ("* * H(0-9) * *", "day: H(0-9) is not a range within 1 to 31"),
        ("* * * H(1-13) *", "month: H(1-13) is not a range within 1 to 12"),
        ("* * * H(0-9) *", "month: H(0-9) is not a range within 1 to 12"),
        ("* * * * H(0-7)", "weekday: H(0-7) is not a range within 0 to 6"),
    ],
)
def test_a_range_of_h_beyond_its_field_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadScheduleError) as refusal:
        schedule(text)
    assert str(refusal.value) == f"spec.schedule: {why}"


def test_h_stays_the_same_from_one_version_to_the_next() -> None:
    """Another number would move the runs of everybody who upgrades."""
    assert expand_h(["H"] * 5, "ns/nightly") == ["12", "17", "1", "10", "5"]
    assert expand_h(["H/15", "H(2-5)"], "ns/nightly") == ["12,27,42,57", "3"]
    assert expand_h(["0", "0", "H", "H", "H"], "ns/weekly")[2:] == ["15", "8", "2"]


@pytest.mark.parametrize("text", ["H/0 * * * *", "H/61 * * * *", "H(1-3)/4 * * * *"])
def test_a_step_of_h_is_at_least_one_and_no_longer_than_its_range(text: str) -> None:
    with pytest.raises(BadScheduleError, match="the step of"):
        schedule(text)
    assert len(expand_h(["H/60"], "s")[0].split(",")) == 1


def test_what_only_contains_an_h_is_left_alone() -> None:
    assert expand_h(["0", "0", "*", "MAR", "THU"], "s") == ["0", "0", "*", "MAR", "THU"]


def test_draws_are_spread_evenly() -> None:
    counts = [0] * 10
    for number in range(5000):
        counts[stable_hash(f"ns/{number}", 10)] += 1
    assert all(400 < count < 600 for count in counts)


# ---------------------------------------------------------------- looking back


def test_the_newest_times_are_found_however_long_ago_the_first_was() -> None:
    every = schedule("* * * * *")
    until = seconds("2026-11-21T03:00")
    found = every.newest_times(seconds("1990-01-01T00:00"), until, 100)
    assert (found[0], found[-1], len(found)) == (until - 99 * 60, until, 100)
    rare = schedule("0 0 29 2 *")
    assert len(rare.newest_times(seconds("1990-01-01T00:00"), until, 100)) == 9
    assert every.newest_times(until, until, 100) == []
    assert every.newest_times(until, until - 1, 100) == []


def test_h_stands_for_the_same_time_in_every_version() -> None:
    assert [stable_hash(f"ns/nightly {name}", 1000) for name in ("minute", "hour")] == [12, 729]
