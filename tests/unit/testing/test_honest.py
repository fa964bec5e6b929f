"""How tests judge that one tenant made another wait."""

from support.tenants.honest import FACTOR, FLOOR, harm

QUICK = [0.1] * 5
SLOW = [1.0] * 5


def test_waits_as_long_as_alone_are_no_harm_however_slow_the_machine_is() -> None:
    assert harm(QUICK, QUICK, QUICK) == ""
    assert harm(SLOW, [FACTOR * 1.0] * 5, SLOW) == ""


def test_a_machine_that_becomes_slow_meanwhile_is_no_harm() -> None:
    assert harm([0.4] * 5, [2.9] * 5, SLOW) == ""


def test_a_wait_that_a_busy_machine_explains_is_no_harm() -> None:
    assert harm([0.01] * 5, [FACTOR * FLOOR] * 5, [0.01] * 5) == ""


def test_waits_longer_by_more_than_the_factor_are_harm() -> None:
    told = harm(QUICK, [1.5, 0.1, 1.5, 1.5, 0.1], QUICK)
    assert told == "1.50 s in the median beside it, 0.30 and 0.30 s alone"


def test_waits_that_stay_long_after_it_are_harm() -> None:
    assert harm(QUICK, SLOW, SLOW) == "1.00 s in the median after it, 0.30 s before"


def test_a_single_wait_of_many_seconds_is_harm() -> None:
    assert harm(QUICK, [*QUICK, 30.0], QUICK) == "longer than 2.00 s: [30.0]"
