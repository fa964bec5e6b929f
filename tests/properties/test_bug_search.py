"""A search for a planted bug reports nothing as found but what the bug alone has broken."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from asyncjob_simulation.planting import nothing
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from support.judging.planted_bugs import BugSearch, Found

NUMBERS = st.integers(0, 1000)


def _is_planted() -> bool:
    return HeartbeatThread._kill is nothing


def _found(judged: Callable[[int], None], seed: str = "1") -> Found:
    search = BugSearch(seed)
    return search.finds("killed by event loop", NUMBERS, judged, broken="too large", at_most=200)


def _large_with_bug(number: int) -> None:
    assert not _is_planted() or number < 900, f"{number} is too large"


def test_what_a_search_takes_is_counted_up_to_the_first_find(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tried: list[int] = []

    def judged(number: int) -> None:
        tried.append(number)
        _large_with_bug(number)

    found = _found(judged)
    first = next(place for place, number in enumerate(tried, 1) if number >= 900)
    assert 1 < found.examples == first
    assert found.why == f"{tried[first - 1]} is too large"
    assert f"killed by event loop, seed 1: {first} examples, " in capsys.readouterr().out


def test_a_search_of_one_seed_is_the_same_each_time_and_another_is_another() -> None:
    first, again, other = (_found(_large_with_bug, seed) for seed in ("1", "1", "2"))
    assert (first.examples, first.why) == (again.examples, again.why)
    assert (first.examples, first.why) != (other.examples, other.why)


def test_what_holds_with_the_bug_is_not_found() -> None:
    with pytest.raises(NoSuchExample):
        _found(lambda _: None)


def test_what_fails_without_the_bug_as_well_is_not_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def judged(number: int) -> None:
        assert number < 900, f"{number} is too large"

    with pytest.raises(AssertionError, match="is too large"):
        _found(judged)
    assert not capsys.readouterr().out


def test_what_breaks_another_promise_is_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    def judged(number: int) -> None:
        assert not _is_planted() or number < 900, f"{number} is not even"

    with pytest.raises(AssertionError, match="is not even"):
        _found(judged)
    assert not capsys.readouterr().out
