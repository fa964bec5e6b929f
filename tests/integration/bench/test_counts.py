"""What a plain job, and items of an array, cost in writes, counted by the API server itself."""

from dataclasses import replace

import pytest

from asyncjob_bench import store
from asyncjob_bench.parts import arrays, writes
from asyncjob_bench.parts.part import SMALL, PartContext
from asyncjob_bench.stats.limits import check_limits, read_limits
from asyncjob_bench.stats.results import Results

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

COUNTED = {
    "writes_per_job",
    "operator_writes_per_job",
    "watch_events_per_job",
    "worker_requests_per_job",
}


def test_a_plain_job_costs_the_writes_events_and_requests_it_is_meant_to() -> None:
    scale, results = replace(SMALL, counted_jobs=40, warm_up=10), Results()
    with writes.audited(controllers=False) as site:
        found = writes.measure(PartContext(site, scale, results))
    verdicts = check_limits(read_limits(store.LIMITS, "counts"), found, only_measured=True)
    assert {verdict.limit.key for verdict in verdicts} == COUNTED
    missed = [(it.limit.key, it.number, it.limit.text) for it in verdicts if not it.met]
    assert not missed, results.curves["writes-by-user"]
    by_user = [
        (row["user"], row["per job"])
        for row in results.curves["writes-by-user"]
        if "asyncjobs." in str(row["write"]) and str(row["code"]).startswith("2")
    ]
    assert sorted(by_user) == [("asyncjob-submitter", 1), ("asyncjob-worker", 2)]


def test_a_thousand_items_cost_no_more_writes_than_they_are_meant_to_and_few_objects() -> None:
    scale = replace(SMALL, array_items=5000)
    with writes.audited(controllers=False) as site:
        found = arrays.measure_writes(PartContext(site, scale, Results()))
    [verdict] = check_limits(read_limits(store.LIMITS, "counts"), found, only_measured=True)
    assert verdict.met, f"{verdict.number} is not {verdict.limit.text}"
    # The array and its ten chunks, each of which is written to.
    assert 1 < found["array_live_objects"] <= 11
    assert found["array_writes_per_1000"] >= 8
