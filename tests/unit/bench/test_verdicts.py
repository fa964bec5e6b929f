"""The checker: limits as they are written down, and what becomes of each."""

from pathlib import Path

import pytest

from asyncjob_bench import store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.stats.limits import Limit, check_limits, read_limits

RATIO = Limit("ratio", "at_least", 0.7, 0.8)
CONFLICTS = Limit("conflicts", "at_most", 0.05)
WRITES = Limit("writes", "exactly", 3.0)


def word(limit: Limit, number: float | None) -> str:
    (verdict,) = check_limits([limit], {} if number is None else {limit.key: number})
    return verdict.label


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0.69, "MISSED"), (0.7, "met"), (0.79, "met"), (0.8, "aim reached"), (None, "not measured")],
)
def test_a_least_value_is_missed_met_or_surpassed(number: float | None, expected: str) -> None:
    assert word(RATIO, number) == expected


@pytest.mark.parametrize(("number", "expected"), [(0.05, "met"), (0.051, "MISSED")])
def test_a_greatest_value_is_met_or_missed(number: float, expected: str) -> None:
    assert word(CONFLICTS, number) == expected


@pytest.mark.parametrize(("number", "expected"), [(3.0, "met"), (3.01, "MISSED"), (2.9, "MISSED")])
def test_a_count_is_met_exactly(number: float, expected: str) -> None:
    assert word(WRITES, number) == expected


def test_what_was_not_measured_is_not_met() -> None:
    (verdict,) = check_limits([RATIO], {})
    assert not verdict.met


def test_of_a_part_only_what_it_measured_is_judged() -> None:
    verdicts = check_limits([RATIO, WRITES], {"writes": 3.0}, only_measured=True)
    assert [verdict.limit.key for verdict in verdicts] == ["writes"]


BARS = {
    "jobs_s_per_api_core": "≥ 100",
    "end_to_end_ratio": "≥ 0.75",
    "writes_per_job": "= 3",
    "operator_writes_per_job": "= 0",
    "pickup_p50_ratio": "≤ 2",
    "pickup_p99_ratio": "≤ 5",
    "conflict_ratio": "≤ 0.05",
    "conflict_ratio_idle": "≤ 0.05",
    "conflict_ratio_backlog": "≤ 0.05",
    "watch_events_per_job_64": "≤ 6",
    "flat_ratio_64": "≥ 0.6",
    "conflict_ratio_64": "≤ 0.03",
    "operator_ms_per_event": "≤ 0.4 ms",
    "operator_growth_ratio": "≤ 1.3",
    "operator_rss_mib": "≤ 800 MiB",
    "worker_rss_mib": "≤ 150 MiB",
    "orphans_requeued_s": "≤ 7 s",
    "start_rss_operator_mib": "≤ 300 MiB",
    "start_rss_gateway_mib": "≤ 300 MiB",
    "api_alloc_kib_per_job": "≤ 1800 KiB",
    "waits_writes": "= 9",
    "parked_operator_ratio": "≤ 1.05",
    "parked_worker_ms_s": "≤ 10 ms",
    "parked_requests": "= 0",
    "signal_p50_ratio": "≤ 5",
    "plain_alloc_ratio": "≤ 1.01",
    "array_items_over_jobs": "≥ 20",
    "array_items_over_peer": "≥ 4",
    "array_writes_per_1000": "≤ 20",
    "array_live_objects": "≤ 50",
    "array_operator_rss_ratio": "≤ 1.1",
    "array_repeated_s": "≤ 2 s",
    "array_plain_pickup_ratio": "≤ 2",
}
CEILING = {
    "raw_cores_busy": "≥ 0.95",
    "raw_generator_share": "≤ 0.1",
    "raw_beyond_ratio": "≤ 1.15",
}
"""What shows that the ceiling is the API server's."""


def test_the_bars_are_those_of_the_design_and_of_what_they_are_compared_with() -> None:
    found = {it.key: it.text for it in read_limits(store.LIMITS, "bars")}
    assert found == {**BARS, **CEILING}


def test_jobs_by_kopf_have_bars_of_their_own() -> None:
    found = {it.key: it.text for it in read_limits(store.LIMITS, "kopf")}
    assert found == {"kopf_end_to_end_ratio": "≥ 0.7", "kopf_operator_ms_per_event": "≤ 0.7 ms"}


def test_each_limit_has_a_comment_on_what_was_measured() -> None:
    lines = store.LIMITS.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if " = {" in line:
            assert lines[number - 1].startswith("#"), line


@pytest.mark.parametrize(
    "entry",
    ["{ at_least = 1, at_most = 2 }", "{ aim = 2 }", "{ at_most = 1, atmost = 2 }"],
)
def test_a_limit_that_says_nothing_or_too_much_is_named(entry: str, tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(f"[bars]\nratio = {entry}\n", encoding="utf-8")
    with pytest.raises(BenchError, match=r"bars\.ratio needs one of"):
        read_limits(file, "bars")


def test_a_file_without_the_table_is_named(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("[other]\n", encoding="utf-8")
    with pytest.raises(BenchError, match=r"no table \[bars\]"):
        read_limits(file, "bars")
