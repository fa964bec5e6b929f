"""Statuses as authors write them, and when a service wants to be asked again."""

from datetime import UTC, datetime

import pytest

from asyncjob_worker.builtin.http_request import contains_status, statuses_of
from asyncjob_worker.builtin.http_response import retry_after_seconds

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
NOON = "Thu, 01 Jan 2026 12:00:00 GMT"
LATER = "Thu, 01 Jan 2026 12:01:30 GMT"


@pytest.mark.parametrize(
    ("entry", "first", "last"),
    [(204, 204, 204), ("204", 204, 204), ("200-204", 200, 204), ("4XX", 400, 499)],
)
def test_an_entry_stands_for_its_statuses(entry: int | str, first: int, last: int) -> None:
    assert (statuses_of(entry)[0], statuses_of(entry)[-1]) == (first, last)


@pytest.mark.parametrize("entry", [99, 600, "6xx", "2x", "", "204-200", "200-", "٢٠٠"])
def test_anything_else_is_refused(entry: int | str) -> None:
    with pytest.raises(ValueError, match=r"status|reversed range"):
        statuses_of(entry)


def test_one_of_several_is_enough() -> None:
    assert contains_status((201, "5xx"), 503)
    assert not contains_status((201, "5xx"), 200)
    assert not contains_status((), 200)


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("120", None, 120),
        ("0", None, 0),
        (" 7 ", NOON, 7),
        (LATER, None, 90),
        (LATER, NOON, 90),
        (LATER, "Thu, 01 Jan 2026 12:01:00 GMT", 30),
        ("Thu, 01 Jan 2026 11:00:00 GMT", None, 0),
        ("999999999999", None, 86_400),
        ("Fri, 01 Jan 2100 00:00:00 GMT", None, 86_400),
        (LATER, "nonsense", 90),
        (LATER, "Mon, 01 Jan 99999999999 00:00:00 GMT", 90),
        ("Mon, 01 Jan 0001 00:00:00 +2359", None, 0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 01 Jan 0001 00:00:00 +2359", 86_400),
    ],
)
def test_both_forms_of_retry_after_are_read(value: str, date: str | None, seconds: int) -> None:
    assert retry_after_seconds(value, date, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "-5",
        "1.5",
        "²",
        "Mon, 01 Jan 99999999999 00:00:00 GMT",
        "Mon, 01 Jan 2026 99999999999:00:00 GMT",
        "Mon, 01 Jan 2026 00:00:00 +99999999999999",
        "Mon, 01 Jan 9999999999999999999999999 00:00:00 GMT",
    ],
)
def test_what_says_nothing_is_left_to_the_policy(value: str | None) -> None:
    assert retry_after_seconds(value, NOON, NOW) is None
