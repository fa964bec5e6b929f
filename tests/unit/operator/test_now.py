"""The time of a decision, and times that somebody has stored."""

import pytest

from asyncjob_operator.core.now import Now, to_epoch

EPOCH = 1_800_000_000.0
STORED = "2027-01-15T08:00:00.000Z"


def test_a_decision_has_its_wall_time_as_it_is_stored_and_by_the_servers_clock() -> None:
    now = Now(monotonic=5.0, wall=EPOCH, ahead=3.0)
    assert (now.timestamp, now.server_wall) == (STORED, EPOCH - 3)
    assert (Now(0.0, EPOCH).jitter, Now(0.0, EPOCH).server_wall) == (0.5, EPOCH)


@pytest.mark.parametrize(
    ("left", "requeue"), [(-5.0, 100.0), (0.0, 100.0), (59.0, 159.0), (61.0, 160.0)]
)
def test_a_calendar_time_is_looked_at_when_it_has_come_and_within_a_minute(
    left: float, requeue: float
) -> None:
    now = Now(monotonic=100.0, wall=EPOCH - left)
    assert now.seconds_until(STORED) == left
    assert now.recheck_at(STORED) == requeue


@pytest.mark.parametrize(
    ("left", "requeue"),
    [
        *((-5.0, 100.0), (0.0, 100.0), (0.5, 100.5), (59.0, 159.0), (61.0, 160.0)),
        *((120.0, 160.0), (122.0, 161.0), (86_400.0, 43_300.0), (1e7, 86_500.0)),
    ],
)
def test_a_time_by_the_servers_clock_is_looked_at_when_it_has_come_and_halfway(
    left: float, requeue: float
) -> None:
    now = Now(monotonic=100.0, wall=EPOCH - left + 7.0, ahead=7.0)
    assert now.server_seconds_until(STORED) == left
    assert now.recheck_at_server_time(STORED) == requeue


def test_what_is_no_time_never_comes() -> None:
    now = Now(monotonic=100.0, wall=EPOCH)
    assert now.server_seconds_until("tomorrow") == float("inf")
    assert now.recheck_at_server_time("tomorrow") == 86_500.0
    assert now.seconds_until("tomorrow") == float("inf")
    assert now.recheck_at("tomorrow") == 160.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (STORED, EPOCH),
        ("2027-01-15T10:00:00+02:00", EPOCH),
        ("2027-01-15T08:00:00", EPOCH),  # without a zone it is UTC, wherever the machine is
        ("", 7.0),
        (None, 7.0),
        ("2027-01-15T25:00:00Z", 7.0),
        ("0001-01-01T00:00:00Z", -30_610_224_000.0),
        ("1000-01-01T00:00:00+14:00", -30_610_224_000.0),
        ("9999-12-31T23:59:59.9Z", 253_402_300_799.0),
    ],
)
def test_a_stored_time_is_within_the_years_that_can_be_stored_again(
    text: str | None, seconds: float
) -> None:
    assert to_epoch(text, default=7.0) == seconds
