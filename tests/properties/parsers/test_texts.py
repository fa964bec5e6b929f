"""Texts that people and other programs write: read, or refused by the error that is documented."""

import re
from datetime import UTC, datetime
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asyncjob.audit.job_version import epoch_of, order_of
from asyncjob.cli.durations import (
    DurationParam,
    TimeParam,
    human_duration,
    parse_duration,
    precise_duration,
    time_since,
)
from asyncjob.cli.input.documents import is_pair, parse_payload
from asyncjob.errors import ApiError, ThrottledError
from asyncjob.kube.transport import error_from_response, error_from_watch_event
from asyncjob.lifecycle.timestamps import seconds_between, try_parse_timestamp
from asyncjob.rest.listing import BadCursorError, decode_cursor, encode_cursor
from asyncjob.tracing.context import normalize_traceparent, trace_id_of
from asyncjob_operator.core.now import MAX_EPOCH, MIN_EPOCH, to_epoch
from asyncjob_operator.core.schedules.calendar import (
    BadScheduleError,
    BadTimeZoneError,
    NeverFiresError,
    parse_schedule,
)
from asyncjob_operator.kube.version_times import VersionTimes, read_samples
from asyncjob_worker.builtin.http_response import build_answer, excerpt, retry_after_seconds
from asyncjob_worker.builtin.model import Head
from support.objects.fuzz import NASTY_TEXTS, fuzzed, mutated, mutated_text

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
SCHEDULES = [
    "*/5 0-6,12 1 JAN-DEC MON#2",
    "H H(1-5)/2 L * 5L",
    "@hourly",
    "0 0 LW 2 *",
    "59 23 31 12 7",
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York"]
TIMES = ["2026-11-23T12:00:00.123Z", "2026-11-23t12:00:00+01:00", "2026-11-23", "+10m", "-2h30m"]
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@fuzzed
@given(mutated_text(SCHEDULES), mutated_text(ZONES), st.text(max_size=5))
def test_a_schedule_is_read_or_refused(text: str, zone: str, seed: str) -> None:
    try:
        schedule = parse_schedule(text, zone, seed)
    except (BadScheduleError, BadTimeZoneError, NeverFiresError):
        return
    first = schedule.first_after(1.8e9)
    assert first is None or first > 1.8e9


FIELDS = st.from_regex(
    r"(\*|H|[0-9]{1,2}|[0-9]-[0-9]{1,2}|H\([0-9]-[0-9]{1,2}\))(/[0-9]{1,2})?(,[0-9]{1,2}(#[0-9]|L)?)?",
    fullmatch=True,
)


@fuzzed
@given(st.lists(FIELDS, min_size=5, max_size=5), st.sampled_from(ZONES))
def test_a_schedule_of_well_formed_fields_is_read_or_refused(fields: list[str], zone: str) -> None:
    try:
        schedule = parse_schedule(" ".join(fields), zone, "s")
    except (BadScheduleError, NeverFiresError):
        return
    newest = schedule.newest_times(1.8e9, 1.8e9 + 3 * 86_400, 5)
    assert newest == sorted(set(newest))


@fuzzed
@given(mutated_text(["90s", "2h30m", "7d", "1d2h3m4s", "90"]))
def test_a_duration_is_read_or_refused(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        with pytest.raises(click.UsageError):
            DurationParam().convert(text, None, None)
        return
    assert DurationParam().convert(text, None, None) == seconds >= 0


@fuzzed
@given(st.floats(allow_nan=False, min_value=-1e12, max_value=1e15))
def test_any_length_of_time_has_words(seconds: float) -> None:
    assert re.fullmatch(r"\d+[smhd]", human_duration(seconds))
    assert precise_duration(abs(seconds))


class _Clock:
    def now(self) -> datetime:
        return NOW


@fuzzed
@given(mutated_text(TIMES))
def test_a_time_on_the_command_line_is_read_or_refused(text: str) -> None:
    context = click.Context(click.Command("x"), obj=_Clock())
    try:
        found = TimeParam().convert(text, None, context)
    except click.UsageError:
        return
    assert try_parse_timestamp(found) is not None


@fuzzed
@given(mutated_text(TIMES))
@example("9999-12-31T23:59:59-23:59")
@example("2026-01-01T00:00:00")
def test_a_stored_time_tells_a_moment_or_none(text: str) -> None:
    assert MIN_EPOCH <= to_epoch(text, default=MIN_EPOCH) <= MAX_EPOCH
    moment = try_parse_timestamp(text)
    assert (epoch_of(text) is None) == (moment is None)
    assert (seconds_between(text, text) is None) == (moment is None)
    assert isinstance(time_since(text, NOW), str)


@fuzzed
@given(mutated_text([TRACEPARENT, TRACEPARENT.replace("00-", "01-", 1) + "-more"]))
def test_a_traceparent_is_normalised_or_none(text: str) -> None:
    found = normalize_traceparent(text)
    assert (found is None) == (trace_id_of(text) is None)
    if found is not None:
        assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", found)
        assert normalize_traceparent(found) == found


@fuzzed
@given(mutated_text([encode_cursor(("2026-11-23T12:00:00Z", "uid")), encode_cursor(("", ""))]))
def test_a_cursor_is_read_or_refused(text: str) -> None:
    try:
        position = decode_cursor(text)
    except BadCursorError:
        return
    assert all(isinstance(part, str) for part in position)


@fuzzed
@given(mutated_text(["100@1800000000 200@1800000060", "1@1"]))
def test_samples_of_versions_are_read_or_left_out(text: str) -> None:
    samples = read_samples(text)
    order = [(sample.version, sample.at) for sample in samples]
    assert order == sorted(set(order))
    times = VersionTimes()
    times.restore(text, 0)
    assert read_samples(times.text()) == samples


WORDS = ["to=ada@example.com", "count:=3", "tags:=[1, null]", "empty=", '{"a": 1}', "3"]


@fuzzed
@given(st.lists(mutated_text(WORDS), min_size=1, max_size=3))
def test_a_payload_on_the_command_line_is_read_or_refused(words: list[str]) -> None:
    try:
        parse_payload(words)
    except ValueError as error:
        assert len(str(error)) < 300 + sum(map(len, words))  # noqa: PT017
        return
    assert len(words) == 1 or all(map(is_pair, words))


STATUS = b'{"kind":"Status","status":"Failure","message":"words","reason":"Conflict","code":409}'
CODES = st.sampled_from(
    [400, 401, 403, 404, 409, 410, 413, 418, 422, 429, 500, 503, 504]
) | st.integers(400, 999)


@fuzzed
@given(
    CODES, mutated([STATUS]), st.none() | mutated_text(["1", "30", "Wed, 21 Oct 2026 07:28:00 GMT"])
)
@example(429, b"", "²")
def test_an_answer_of_the_api_server_stands_for_an_error(
    code: int, body: bytes, wait: str | None
) -> None:
    error = error_from_response(code, body, wait)
    assert isinstance(error, ApiError)
    assert error.status == code
    assert not isinstance(error, ThrottledError) or error.retry_after >= 0


@fuzzed
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "code": st.sampled_from([410, 0, -1, 2**63, "410", None, [], 1e308]),
            "message": st.sampled_from(NASTY_TEXTS),
            "reason": st.none() | st.just("Expired"),
        },
    )
)
def test_an_error_event_of_a_watch_stands_for_an_error(status: Any) -> None:
    assert isinstance(error_from_watch_event(status), ApiError)


DATES = ["Wed, 21 Oct 2026 07:28:00 GMT", "120", "Wed, 21 Oct 2026 07:28:00 -2359", "21 Oct 26"]


@fuzzed
@given(mutated_text(DATES), st.none() | mutated_text(DATES))
def test_a_services_retry_after_is_at_most_a_day(value: str, date: str | None) -> None:
    found = retry_after_seconds(value, date, NOW)
    assert found is None or 0 <= found <= 86_400


CHARSETS = [
    "utf-8",
    "utf-16",
    "latin-1",
    "idna",
    "zlib",
    "rot13",
    "hex",
    "utf_7",
    "shift_jis",
    "unicode_escape",
    "mbcs",
    "oem",
    "base64",
    "undefined",
    "raw_unicode_escape",
    "punycode",
    "hz",
    "cp037",
    "utf_32",
]
CONTENT_TYPES = [f"application/json; charset={charset}" for charset in CHARSETS]


@fuzzed
@given(
    mutated_text(CONTENT_TYPES),
    mutated([b'{"a": [1, "\xc3\xa9"]}', "é".encode("utf-16"), b"+AGE-"]),
    st.booleans(),
)
def test_any_response_of_a_service_is_a_result_of_bounded_size(
    content_type: str, body: bytes, cut: bool
) -> None:
    head = Head(len(body) - cut)
    head.add(body)
    answer = build_answer(
        200, "http://a", {"content-type": content_type}, head, limit=2048, size=None
    )
    assert len(str(answer.body)) <= 4096
    assert len(excerpt(head, content_type, 200)) <= 200


@fuzzed
@given(st.sampled_from(NASTY_TEXTS) | st.text(max_size=20))
@example("9" * 5000)
@example("²")
def test_any_resource_version_has_an_order_or_none(version: str) -> None:
    assert order_of(version) >= 0
