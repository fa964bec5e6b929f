"""The order of parts in rounds, and the ratios of a round."""

from collections import Counter

from asyncjob_bench.reckoning.rounds import order, with_ratios

PARTS = ["raw", "whole", "native"]


def test_every_round_has_every_part_once() -> None:
    for number in range(7):
        assert sorted(order(PARTS, number)) == sorted(PARTS)


def test_no_part_always_comes_at_the_same_place() -> None:
    for place in range(3):
        seen = Counter(order(PARTS, number)[place] for number in range(6))
        assert set(seen) == set(PARTS)


def test_every_other_round_is_the_one_before_turned_round() -> None:
    assert order(PARTS, 1) == order(PARTS, 0)[::-1]


def test_no_parts_are_no_round() -> None:
    assert order([], 3) == []


def test_a_ratio_is_taken_between_what_one_round_measured() -> None:
    found = with_ratios({"end_to_end_jobs_s": 150.0, "raw_ceiling_jobs_s": 200.0})
    assert found["end_to_end_ratio"] == 0.75


def test_the_waits_are_taken_over_a_round_trip() -> None:
    found = with_ratios({"pickup_p50_ms": 8.0, "pickup_p99_ms": 18.0, "write_round_trip_ms": 4.0})
    assert (found["pickup_p50_ratio"], found["pickup_p99_ratio"]) == (2.0, 4.5)


def test_a_ratio_to_what_was_not_measured_is_left_out() -> None:
    measured = {"end_to_end_jobs_s": 150.0, "native_jobs_s": 0.0}
    assert with_ratios(measured) == measured
