"""What a plain job costs in instructions and memory, whatever else the machine does."""

import pytest

from asyncjob_bench import store
from asyncjob_bench.counting import counters
from asyncjob_bench.counting.counters import count_instructions
from asyncjob_bench.counting.counts import COUNTS
from asyncjob_bench.stats.limits import check_limits, read_limits

LIMITS = read_limits(store.LIMITS, "counts")
BY_API_SERVER = {
    "writes_per_job",
    "operator_writes_per_job",
    "watch_events_per_job",
    "worker_requests_per_job",
    "api_server_kib_per_job",
    "array_writes_per_1000",
}
"""Counted by integration tests."""


def test_everything_that_has_a_limit_is_counted() -> None:
    assert {limit.key for limit in LIMITS} == COUNTS.keys() | BY_API_SERVER


@pytest.mark.parametrize("key", COUNTS)
def test_a_plain_job_costs_no_more_than_it_is_meant_to(key: str) -> None:
    (verdict,) = check_limits([it for it in LIMITS if it.key == key], {key: COUNTS[key]()})
    assert verdict.met, f"{verdict.number} is not {verdict.limit.text}"


def double(number: int) -> int:
    total = 0
    for _ in range(number):
        total += 2
    return total


def instructions(number: int) -> int:
    with count_instructions((__file__,)) as count:
        double(number)
    return count.instructions


def test_the_same_work_takes_the_same_instructions() -> None:
    assert instructions(10) == instructions(10) > 0


def test_each_turn_of_a_loop_counts() -> None:
    one = instructions(11) - instructions(10)
    assert one > 1
    assert instructions(110) - instructions(10) == 100 * one


def test_what_is_not_ours_does_not_count() -> None:
    with count_instructions(("/nowhere",)) as count:
        double(10)
    assert count.instructions == 0


def test_blocks_that_are_kept_count_and_others_do_not() -> None:
    held: list[object] = []
    assert counters.blocks_kept(
        lambda number: held.append([str(number)] * 3), 5_000
    ) == pytest.approx(3, 0.2)
    assert counters.blocks_kept(lambda number: str(number) * 3, 5_000) == pytest.approx(0, abs=0.1)
