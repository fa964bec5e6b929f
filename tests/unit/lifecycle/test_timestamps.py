"""Times: what is written fits the schema, and what fits the schema can be read."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob.lifecycle.timestamps import (
    add_seconds,
    format_timestamp,
    parse_timestamp,
    seconds_between,
    try_parse_timestamp,
)
from asyncjob.models.base import TIMESTAMP_PATTERN

PATTERN = re.compile(TIMESTAMP_PATTERN)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1001, 1, 1), datetime(9998, 12, 31), timezones=zones)  # noqa: DTZ001  # zones come apart


@given(moments)
def test_whatever_is_written_fits_the_schema_and_comes_back(moment: datetime) -> None:
    text = format_timestamp(moment)
    assert PATTERN.match(text)
    assert abs(parse_timestamp(text) - moment) < timedelta(milliseconds=1)


@given(moments, st.sampled_from(["seconds", "milliseconds", "microseconds"]))
def test_whatever_others_write_fits_the_schema_and_can_be_read(moment: datetime, spec: str) -> None:
    text = moment.isoformat(timespec=spec)
    assert PATTERN.match(text)
    assert parse_timestamp(text) == moment.replace(
        microsecond={
            "seconds": 0,
            "milliseconds": moment.microsecond // 1000 * 1000,
            "microseconds": moment.microsecond,
        }[spec]
    )


@given(st.from_regex(PATTERN, fullmatch=True))
def test_what_fits_the_schema_can_be_read_if_there_is_such_a_day(text: str) -> None:
    try:
        datetime.strptime(text[:10], "%Y-%m-%d")  # noqa: DTZ007  # the API server checks the day
    except ValueError:
        return
    assert parse_timestamp(text).tzinfo is not None
    parse_timestamp(text).timestamp()


@pytest.mark.parametrize("text", ["2026-11-21t15:00:00z", "2026-11-21T15:00:00z"])
def test_what_was_stored_before_the_schema_had_a_pattern_is_read_all_the_same(text: str) -> None:
    assert not PATTERN.match(text)
    assert parse_timestamp(text) == datetime(2026, 11, 21, 15, tzinfo=UTC)


def test_times_are_reckoned_with() -> None:
    assert add_seconds("2026-01-01T00:00:00Z", 90.5) == "2026-01-01T00:01:30.500Z"
    assert seconds_between("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00") == 0


@given(st.one_of(st.text(), st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T.*", fullmatch=True)))
def test_whatever_somebody_wrote_is_a_moment_in_utc_or_none(text: str) -> None:
    moment = try_parse_timestamp(text)
    assert moment is None or moment.utcoffset() == timedelta()


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", ""]
)
def test_a_time_that_utc_does_not_have_is_none(text: str) -> None:
    assert try_parse_timestamp(text) is None
    assert seconds_between(text, "2026-01-01T00:00:00Z") is None


def test_a_moment_that_utc_does_not_have_is_not_written() -> None:
    beyond = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2)))
    with pytest.raises(ValueError, match="lies beyond the years of UTC"):
        format_timestamp(beyond)
