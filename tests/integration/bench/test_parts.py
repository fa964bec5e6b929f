"""The benchmark itself, at its smallest: that it measures what it says, not how fast it is."""

from dataclasses import replace

import pytest

from asyncjob_bench.parts import (
    arrays,
    ceiling,
    conflicts,
    end_to_end,
    large_jobs,
    operator_load,
    orphans,
    waits,
    writes,
)
from asyncjob_bench.parts import end_to_end as end_to_end_module
from asyncjob_bench.parts.part import SMALL, Part
from asyncjob_bench.parts.runner import Runner

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(300)]

TINY = replace(
    SMALL,
    rounds=1,
    jobs=60,
    warm_up=10,
    pickups=5,
    orphans=20,
    large_jobs=5,
    priced_jobs=20,
    idle_claims=5,
    backlog_claims=30,
    many_workers=3,
    few_jobs=20,
    many_jobs=60,
    operator_jobs=20,
    staged_jobs=5,
    signals=5,
    parked_jobs=20,
    parked_seconds=2,
    array_items=1000,
    million_items=3000,
)
PARTS = (
    Part("bare", ceiling.measure_bare, compared=True),
    Part("raw", ceiling.measure_raw, compared=True),
    Part("end-to-end", end_to_end.measure_throughput, compared=True),
    Part("end-to-end-kopf", end_to_end.measure_throughput_by_kopf, compared=True),
    Part("pickup", end_to_end_module.measure_pickup, compared=True),
    Part("array-pickup", arrays.measure_pickup, compared=True),
    Part("arrays", arrays.measure_throughput, compared=True),
    Part("array-kills", arrays.measure_kills),
    Part("array-memory", arrays.measure_memory),
    Part("orphans", orphans.measure),
    Part("large-jobs", large_jobs.measure),
    Part("conflicts", conflicts.measure),
    Part("operator", operator_load.measure),
    Part("operator-kopf", operator_load.measure_by_kopf),
    Part("signals", waits.measure_signals),
    Part("parked", waits.measure_parked),
    Part("waits", waits.measure_writes, site=writes.audited),
    Part("allocation", ceiling.measure_untracked, site=ceiling.untracked),
    Part("allocation-tracked", ceiling.measure_tracked, site=ceiling.tracked),
    Part("allocation-before", ceiling.measure_before, site=ceiling.before),
)


def test_jobs_flow_through_the_generator_and_through_workers_and_are_told_apart() -> None:
    results = Runner(TINY, print).run(PARTS)
    assert (results.failed, results.left_out) == ({}, {})
    found = results.medians
    raw_rate, rate = found["raw_ceiling_jobs_s"], found["end_to_end_jobs_s"]
    assert found["end_to_end_ratio"] == pytest.approx(rate / raw_rate)
    assert 0 < found["write_round_trip_ms"] < 15_000
    assert found["raw_bare_ratio"] == pytest.approx(raw_rate / found["bare_ceiling_jobs_s"])
    assert 0 < found["orphans_released_s"] < found["orphans_requeued_s"] < 60
    assert 0 < found["start_rss_operator_mib"] < 300
    assert 0 < found["start_rss_gateway_mib"] < 300
    assert 0 <= found["conflict_ratio"] < 1
    assert 0 < found["jobs_s_per_api_core"] < 1000
    assert 0 < found["bare_jobs_s_per_api_core"] < 10_000
    assert 0 < found["api_alloc_kib_per_job"] < found["api_alloc_kib_per_job_tracked"]
    assert 0.5 < found["plain_alloc_ratio"] < 2
    assert found["waits_writes"] == 9
    assert found["array_items_over_jobs"] == pytest.approx(found["array_items_s"] / rate)
    assert 0 < found["array_pickup_p50_ms"] < 10_000
    assert 0 < found["array_plain_pickup_ratio"] < 1000
    assert 0 < found["array_repeated_s"] < 10
    assert 0.5 < found["array_operator_rss_ratio"] < 2
    assert found["array_operator_peak_mib"] > 30
    assert found["parked_requests"] == 0
    assert 0 < found["signal_p50_ms"] < 10_000
    assert 0 < found["operator_ms_per_event"] < 1000
    assert 0 < found["kopf_operator_ms_per_event"] < 1000
    assert found["kopf_end_to_end_ratio"] == pytest.approx(
        found["kopf_end_to_end_jobs_s"] / raw_rate
    )
    columns = {str(row["what"]): row.keys() for row in results.cpu}
    assert "workers" not in columns["raw"]
    assert {"workers", "operator", "client", "kube-apiserver"} <= columns["end to end"]
