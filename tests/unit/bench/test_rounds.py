"""The order of parts in rounds, and the ratios of a round."""

from asyncjob_bench.parts.part import FULL
from asyncjob_bench.parts.runner import PARTS as REAL
from asyncjob_bench.stats.results import round_order, with_ratios

PARTS = ["raw", "whole", "native"]


def test_every_round_has_every_part_once() -> None:
    for number in range(7):
        assert sorted(round_order(PARTS, number)) == sorted(PARTS)


def test_what_is_held_against_the_ceiling_stands_beside_it_before_and_after() -> None:
    names = [part.name for part in REAL if part.compared]
    for number, scale in ((0, FULL), (1, FULL)):
        assert scale.rounds % 2 == 0
        here = round_order(names, number)
        assert abs(here.index("raw") - here.index("end-to-end")) == 1
    assert round_order(names, 0).index("raw") < round_order(names, 0).index("end-to-end")
    assert round_order(names, 1).index("raw") > round_order(names, 1).index("end-to-end")


def test_every_other_round_is_the_one_before_turned_round() -> None:
    assert round_order(PARTS, 1) == round_order(PARTS, 0)[::-1]


def test_no_parts_are_no_round() -> None:
    assert round_order([], 3) == []


def test_a_ratio_is_taken_between_what_one_round_measured() -> None:
    found = with_ratios({"end_to_end_jobs_s": 150.0, "raw_ceiling_jobs_s": 200.0})
    assert found["end_to_end_ratio"] == 0.75


def test_the_waits_are_taken_over_a_round_trip() -> None:
    found = with_ratios({"pickup_p50_ms": 8.0, "pickup_p99_ms": 18.0, "write_round_trip_ms": 4.0})
    assert (found["pickup_p50_ratio"], found["pickup_p99_ratio"]) == (2.0, 4.5)


def test_a_ratio_to_what_was_not_measured_is_left_out() -> None:
    measured = {"end_to_end_jobs_s": 150.0, "native_jobs_s": 0.0}
    assert with_ratios(measured) == measured
