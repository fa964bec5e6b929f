"""Several measurements as one number with its spread."""

import pytest

from asyncjob_bench.stats.results import Spread, collect, quantile


def test_the_median_is_the_middle_value_and_the_spread_its_ends() -> None:
    spread = Spread((30.0, 10.0, 20.0))
    assert (spread.median, spread.low, spread.high, spread.mean) == (20.0, 10.0, 30.0, 20.0)


def test_of_an_even_number_the_median_lies_between() -> None:
    assert Spread((1.0, 2.0, 3.0, 10.0)).median == 2.5


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1), (0.5, 51), (0.9, 91), (0.99, 100), (1.0, 100)]
)
def test_a_quantile_is_a_value_that_was_measured(share: float, value: int) -> None:
    assert quantile(range(100, 0, -1), share) == value


def test_without_values_there_is_no_quantile() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


def test_each_key_has_the_values_of_the_rounds_that_measured_it() -> None:
    found = collect([{"a": 1.0, "b": 2.0}, {"a": 3.0}])
    assert {key: spread.values for key, spread in found.items()} == {"a": (1.0, 3.0), "b": (2.0,)}
