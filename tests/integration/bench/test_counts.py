"""What a plain job costs in writes, events and requests, counted by the API server itself."""

from dataclasses import replace

import pytest

from asyncjob_bench import store
from asyncjob_bench.parts import writes
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
