"""The worker's metrics: all of the table's is shown, labels bounded."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import generate_latest

from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.metrics import OTHER_LABEL, MetricSpec
from asyncjob.metrics.worker import TABLE
from asyncjob_worker.claiming.claimer import ClaimCounts
from asyncjob_worker.claiming.slots import TakeoverCounts
from asyncjob_worker.components import Components
from asyncjob_worker.leases.heartbeat import HeartbeatCounts
from asyncjob_worker.metrics import MAX_TYPES, Metrics
from asyncjob_worker.worker import metric_sources

PREFIX = "asyncjob_worker_"


def parts() -> Components:
    made: Any = SimpleNamespace(
        claimer=SimpleNamespace(counts=ClaimCounts(won=3, conflicts=2, refused=1, postponed=9)),
        heartbeat=SimpleNamespace(
            counts=HeartbeatCounts(stored=5, failed=4), lag=SimpleNamespace(seconds=0.5)
        ),
        runner=SimpleNamespace(running={"u": None}, abandoned=6),
        backlog=range(7),
        shard_watches=SimpleNamespace(deal=SimpleNamespace(own={1, 2}, deputy={3})),
        job_watches=SimpleNamespace(events=12),
        slots=SimpleNamespace(takeovers=TakeoverCounts(won=10, lost=11)),
    )
    return cast("Components", made)


def used() -> Metrics:
    """Return metrics with something of everything."""
    metrics = Metrics()
    metrics.add_sources(metric_sources(parts(), slots=8))
    metrics.finished("echo", PhaseChange(Phase.DEAD_LETTER, Reason.NOT_RETRYABLE, {}, {}))
    metrics.finished("echo", PhaseChange(Phase.SUCCEEDED, None, {}, {}))
    metrics.fenced("echo")
    metrics.handler_ended("echo", 0.3)
    metrics.step_stored("echo", 0.2)
    metrics.stall_begun("")
    metrics.stalled("", 1.5)
    metrics.watch_observer("jobs").watch_opened()
    metrics.request("PATCH", 409, 0.1)
    return metrics


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(PREFIX + name, labels)


@pytest.mark.parametrize("spec", TABLE, ids=lambda spec: spec.name)
def test_every_metric_of_the_table_is_shown_as_it_says(spec: MetricSpec) -> None:
    [family] = [found for found in used().registry.collect() if found.name == spec.name]
    assert (family.type, family.documentation) == (spec.kind.value, spec.help)
    for sample in family.samples:
        assert set(sample.labels) - {"le"} == set(spec.labels)


def test_nothing_of_ours_is_shown_that_is_not_in_the_table() -> None:
    names = {family.name for family in used().registry.collect()}
    ours = {name for name in names if name.startswith("asyncjob")}
    assert ours == {spec.name for spec in TABLE}
    assert "process_resident_memory_bytes" in names


def test_outcomes_are_counted_by_type_phase_and_reason() -> None:
    metrics = used()
    finished = {"type": "echo", "phase": "DeadLetter", "reason": "NotRetryable"}
    assert value(metrics, "jobs_finished_total", **finished) == 1
    assert value(metrics, "fenced_total", type="echo") == 1
    assert value(metrics, "handler_seconds_count", type="echo") == 1
    assert value(metrics, "step_seconds_sum", type="echo") == 0.2


def test_what_the_parts_know_is_read_when_somebody_asks() -> None:
    metrics = used()
    for outcome, wanted in (("won", 3), ("conflict", 2), ("refused", 1), ("postponed", 9)):
        assert value(metrics, "claims_total", outcome=outcome) == wanted
    assert [value(metrics, "takeovers_total", outcome=one) for one in ("won", "lost")] == [10, 11]
    assert value(metrics, "lease_renewals_total", outcome="stored") == 5
    assert value(metrics, "lease_renewals_total", outcome="failed") == 4
    read = [value(metrics, name) for name in ("running", "abandoned", "backlog", "slots")]
    assert read == [1, 6, 7, 8]
    assert [value(metrics, "shards", part=part) for part in ("own", "deputy")] == [2, 1]
    assert value(metrics, "job_events_total") == 12


def test_requests_are_counted_and_timed() -> None:
    metrics = used()
    assert value(metrics, "api_requests_total", method="PATCH", code="409") == 1
    assert value(metrics, "api_request_seconds_sum", method="PATCH") == 0.1


def test_an_app_with_ten_thousand_types_fills_no_more_series_than_the_bound() -> None:
    metrics = Metrics()
    for number in range(10_000):
        metrics.fenced(f"type-{number}")
        metrics.handler_ended(f"type-{number}", 1.0)
    [family] = [one for one in metrics.registry.collect() if one.name == PREFIX + "fenced"]
    shown = [sample for sample in family.samples if sample.name.endswith("_total")]
    assert len(shown) == MAX_TYPES + 1
    assert sum(sample.value for sample in shown) == 10_000
    assert value(metrics, "fenced_total", type=OTHER_LABEL) == 10_000 - MAX_TYPES


def test_two_workers_in_one_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.fenced("echo")
    assert b"fenced_total{" not in generate_latest(other.registry)


def test_types_of_the_app_are_fenced_zero_times_at_first_so_that_once_is_a_growth() -> None:
    metrics = Metrics()
    metrics.expect(["echo", "other-type"])
    assert value(metrics, "fenced_total", type="echo") == 0
    metrics.fenced("echo")
    assert value(metrics, "fenced_total", type="echo") == 1
