"""The worker's metrics: one table, all of it shown, labels bounded by the app's own types."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import generate_latest

from asyncjob.lifecycle.move import Move
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.claimer import ClaimCounts
from asyncjob_worker.metrics import PREFIX, TABLE, Kind, Metrics, Spec
from asyncjob_worker.parts import Parts
from asyncjob_worker.readings import readings

PAGE = (Path(__file__).parents[3] / "docs/reference/worker.md").read_text(encoding="utf-8")


def parts() -> Parts:
    made: Any = SimpleNamespace(
        claimer=SimpleNamespace(counts=ClaimCounts(won=3, conflicts=2, refused=1)),
        keeper=SimpleNamespace(renewals=5, renewal_failures=4),
        runner=SimpleNamespace(running={"u": None}, abandoned=6),
        backlog=range(7),
    )
    return cast("Parts", made)


def used() -> Metrics:
    """Return metrics with something of everything."""
    metrics = Metrics()
    metrics.read(readings(parts(), slots=8))
    metrics.finished("echo", Move(Phase.DEAD_LETTER, Reason.NOT_RETRYABLE, {}, {}))
    metrics.finished("echo", Move(Phase.SUCCEEDED, None, {}, {}))
    metrics.fenced("echo")
    metrics.handled("echo", 0.3)
    metrics.stall_begun("")
    metrics.stalled("", 1.5)
    metrics.watch_begun("jobs")()
    metrics.request("PATCH", 409, 0.1)
    return metrics


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(PREFIX + name, labels)


@pytest.mark.parametrize("spec", TABLE, ids=lambda spec: spec.name)
def test_every_metric_of_the_table_is_shown_and_documented(spec: Spec) -> None:
    [family] = [found for found in used().registry.collect() if found.name == PREFIX + spec.name]
    assert (family.type, family.documentation) == (spec.kind.value, spec.help)
    for sample in family.samples:
        assert set(sample.labels) - {"le"} == set(spec.labels)
    assert f"| `{spec.shown_as}` | {spec.kind.value} |" in PAGE


def test_nothing_of_ours_is_shown_that_is_not_in_the_table() -> None:
    names = {family.name for family in used().registry.collect()}
    ours = {name for name in names if name.startswith(PREFIX)}
    assert ours == {PREFIX + spec.name for spec in TABLE}
    assert "process_resident_memory_bytes" in names


def test_outcomes_are_counted_by_type_phase_and_reason() -> None:
    metrics = used()
    finished = {"type": "echo", "phase": "DeadLetter", "reason": "NotRetryable"}
    assert value(metrics, "jobs_finished_total", **finished) == 1
    assert value(metrics, "fenced_total", type="echo") == 1
    assert value(metrics, "handler_seconds_count", type="echo") == 1


def test_what_the_parts_know_is_read_when_somebody_asks() -> None:
    metrics = used()
    for outcome, wanted in (("won", 3), ("conflict", 2), ("refused", 1)):
        assert value(metrics, "claims_total", outcome=outcome) == wanted
    assert value(metrics, "lease_renewals_total", outcome="stored") == 5
    assert value(metrics, "lease_renewals_total", outcome="failed") == 4
    read = [value(metrics, name) for name in ("running", "abandoned", "backlog", "slots")]
    assert read == [1, 6, 7, 8]


def test_two_workers_in_one_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.fenced("echo")
    assert b"fenced_total{" not in generate_latest(other.registry)


def test_only_counters_are_shown_with_their_suffix() -> None:
    for spec in TABLE:
        assert spec.shown_as.endswith("_total") == (spec.kind is Kind.COUNTER)
