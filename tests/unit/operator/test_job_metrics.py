"""What the operator counts of jobs: what it sees happen while it leads, and never without end."""

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Metric

from asyncjob.lifecycle.phases import Phase
from asyncjob.metrics import OTHER_LABEL, MetricSpec, arrays, jobs, operator
from asyncjob_operator.telemetry.job_metrics import (
    MAX_QUEUE_TYPES,
    MAX_QUEUES,
    MAX_TYPES,
    JobMetrics,
    JobStats,
)
from asyncjob_operator.telemetry.metrics import RECOVERY_REASONS, REPAIR_KINDS, OperatorMetrics
from support.objects.snapshots import at, job, raw, running
from support.parts.evaluation import evaluation

QUEUE = {"namespace": "ns", "queue": "default"}
TYPED = {**QUEUE, "type": "test"}


class JobMetricsHarness:
    """An observer whose metrics are read; `see` shows it a job as the watch would."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leads, self.now, self.version = True, 0.0, 100
        self.metrics = JobMetrics(self.registry, lambda: self.leads, lambda: self.now)
        made = evaluation(lambda: at(self.now), metrics=self.metrics)
        self.observer, self.caches = made.evaluator, made.caches
        self.metrics.expose(self.look)

    def look(self) -> JobStats:
        counts = self.caches.store.counts
        return JobStats(counts, {("ns", "default"): 3.0}, {("ns", "default"): (2, 8)}, 50)

    def see(
        self, phase: str, *, just_changed: bool = True, name: str = "job", **status: Any
    ) -> None:
        """Show the job in this phase, as a version of its own."""
        held = running() if phase == "Running" else {}
        obj: Any = raw(name, **{"phase": phase, **held, **status})
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.observer.on_update(obj, just_changed=just_changed)

    def value(self, spec: MetricSpec, end: str = "", **labels: str) -> float:
        return self.registry.get_sample_value(spec.exposed_name + end, labels) or 0.0


@pytest.fixture
def harness() -> JobMetricsHarness:
    return JobMetricsHarness()


def test_a_plain_life_is_counted_transition_by_transition_and_timed_on_one_clock(
    harness: JobMetricsHarness,
) -> None:
    harness.see("Queued")
    harness.now = 2.0
    harness.see("Running", attempt=1)
    harness.now = 5.0
    harness.see("Succeeded", attempt=1)
    counted = [
        harness.value(one, **TYPED) for one in (jobs.SUBMITTED, jobs.CLAIMED, jobs.SUCCEEDED)
    ]
    assert counted == [1, 1, 1]
    assert harness.value(jobs.QUEUE_SECONDS, "_sum", **QUEUE) == 2.0
    assert harness.value(jobs.END_TO_END_SECONDS, "_sum", **QUEUE) == 5.0


def test_heartbeats_and_other_news_of_the_same_stay_count_nothing(
    harness: JobMetricsHarness,
) -> None:
    harness.see("Queued")
    harness.see("Running", attempt=1)
    harness.see("Running", attempt=1, progress={"percent": 5})
    assert harness.value(jobs.CLAIMED, **TYPED) == 1


def test_retries_dead_letters_redrives_and_dismissals_have_counters_of_their_own(
    harness: JobMetricsHarness,
) -> None:
    harness.see("Queued")
    harness.see("Running", attempt=1)
    harness.see("Retrying", attempt=1, reason="HandlerFailed", retryDelaySeconds=1.0)
    harness.see("Queued", attempt=1)
    harness.see("Running", attempt=2)
    for redrives in (0, 1):
        dead: dict[str, Any] = {
            "attempt": 2 + redrives,
            "reason": "RetriesExhausted",
            "redrives": redrives,
        }
        harness.see("DeadLetter", **dead)
        harness.see("DeadLetter", **dead, spec={"redrive": redrives + 1})
        harness.see("Queued", attempt=2 + redrives, reason="Redriven", redrives=redrives + 1)
        harness.see("Running", attempt=3 + redrives, redrives=redrives + 1)
    harness.see("DeadLetter", attempt=4, reason="NotRetryable", redrives=2)
    harness.see("Cancelled", attempt=4, reason="Dismissed", redrives=2)
    assert harness.value(jobs.RETRIED, **TYPED) == 1
    assert harness.value(jobs.CLAIMED, **TYPED) == 4
    assert harness.value(jobs.REDRIVEN, **TYPED) == 2
    assert harness.value(jobs.DEAD_LETTERED, **TYPED, reason="RetriesExhausted") == 2
    assert harness.value(jobs.DEAD_LETTERED, **TYPED, reason="NotRetryable") == 1
    assert harness.value(jobs.CANCELLED, **TYPED, reason="Dismissed") == 1
    assert harness.value(jobs.END_TO_END_SECONDS, "_count", **QUEUE) == 1, "the first end only"


def test_what_is_only_found_in_a_list_is_not_counted_nor_timed(harness: JobMetricsHarness) -> None:
    harness.see("Queued", just_changed=False)
    harness.now = 9.0
    harness.see("Running", attempt=1)
    harness.see("Succeeded", attempt=1, just_changed=False)
    assert harness.value(jobs.SUBMITTED, **TYPED) == 0
    assert harness.value(jobs.CLAIMED, **TYPED) == 1
    assert harness.value(jobs.SUCCEEDED, **TYPED) == 0
    assert harness.value(jobs.QUEUE_SECONDS, "_count", **QUEUE) == 0
    assert harness.value(jobs.END_TO_END_SECONDS, "_count", **QUEUE) == 0


def test_a_standby_counts_nothing_and_shows_no_gauge_of_jobs(harness: JobMetricsHarness) -> None:
    harness.leads = False
    harness.see("Queued")
    harness.see("Running", attempt=1)
    shown = {family.name for family in harness.registry.collect() if family.samples}
    assert not shown & {spec.name for spec in jobs.TABLE}
    harness.leads = True
    assert harness.value(jobs.JOBS, **QUEUE, phase="Running") == 1
    assert harness.value(jobs.CLAIMED, **TYPED) == 0


def test_counters_never_go_back_when_the_lead_is_lost_and_won_again(
    harness: JobMetricsHarness,
) -> None:
    harness.see("Queued")
    harness.leads = False
    assert harness.value(jobs.SUBMITTED, **TYPED) == 1
    harness.see("Queued", name="other")
    harness.leads = True
    harness.see("Queued", name="third")
    assert harness.value(jobs.SUBMITTED, **TYPED) == 2


def test_the_leader_shows_all_phases_of_each_queue_ages_workers_and_slots(
    harness: JobMetricsHarness,
) -> None:
    harness.see("Running", attempt=1)
    for phase in Phase:
        shown = harness.registry.get_sample_value(jobs.JOBS.name, {**QUEUE, "phase": phase.value})
        assert shown == (phase is Phase.RUNNING)
    values = [
        harness.value(spec, **QUEUE) for spec in (jobs.OLDEST_SECONDS, jobs.WORKERS, jobs.SLOTS)
    ]
    assert values == [3.0, 2, 8]
    assert harness.value(jobs.FINISHED_LIMIT) == 50


def test_workers_are_not_shown_where_they_cannot_be_known() -> None:
    registry = CollectorRegistry()
    metrics = JobMetrics(registry, lambda: True, lambda: 0.0)
    metrics.expose(lambda: JobStats({("ns", "q", Phase.QUEUED): 1}))
    names = {family.name for family in registry.collect() if family.samples}
    assert jobs.JOBS.name in names
    assert not {jobs.WORKERS.name, jobs.SLOTS.name, jobs.FINISHED_LIMIT.name} & names


def test_a_queue_with_jobs_and_no_workers_shows_zero_workers() -> None:
    registry = CollectorRegistry()
    metrics = JobMetrics(registry, lambda: True, lambda: 0.0)
    metrics.expose(lambda: JobStats({("ns", "q", Phase.QUEUED): 1}, {}, {}))
    labels = {"namespace": "ns", "queue": "q"}
    assert registry.get_sample_value(jobs.WORKERS.name, labels) == 0


def shown(registry: CollectorRegistry, spec: MetricSpec) -> list[Any]:
    [family] = [found for found in registry.collect() if found.name == spec.name]
    return [sample for sample in family.samples if not sample.name.endswith("_created")]


def test_ten_thousand_types_fill_a_bounded_number_of_series_and_all_are_counted(
    harness: JobMetricsHarness,
) -> None:
    dead = replace(job(), phase=Phase.DEAD_LETTER, reason="NotRetryable")
    for number in range(10_000):
        harness.metrics.record_change(None, replace(dead, type=f"type-{number}"), None)
    for spec in (jobs.SUBMITTED, jobs.DEAD_LETTERED):
        samples = shown(harness.registry, spec)
        assert len(samples) == MAX_TYPES + 1
        assert sum(sample.value for sample in samples) == 10_000
    assert harness.value(jobs.SUBMITTED, **QUEUE, type=OTHER_LABEL) == 10_000 - MAX_TYPES


def test_ten_thousand_queues_types_and_reasons_at_once_are_bounded_too(
    harness: JobMetricsHarness,
) -> None:
    dead = replace(job(), phase=Phase.DEAD_LETTER)
    for number in range(10_000):
        made = replace(
            dead,
            namespace=f"ns-{number % 7}",
            queue=f"queue-{number % 3000}",
            type=f"type-{number}",
            reason=f"Reason{number}",
        )
        harness.metrics.record_change(None, made, None)
    samples = shown(harness.registry, jobs.DEAD_LETTERED)
    assert len(samples) <= MAX_QUEUE_TYPES + MAX_QUEUES + 1
    assert sum(sample.value for sample in samples) == 10_000
    assert {sample.labels["reason"] for sample in samples} == {OTHER_LABEL}


def test_queues_beyond_the_bound_are_added_up_as_other_and_the_oldest_stays_the_oldest() -> None:
    registry = CollectorRegistry()
    metrics = JobMetrics(registry, lambda: True, lambda: 0.0)
    names = [("ns", f"queue-{number}") for number in range(MAX_QUEUES + 50)]
    look = JobStats(
        {(*name, Phase.QUEUED): 2 for name in names},
        {name: float(number) for number, name in enumerate(names)},
        dict.fromkeys(names, (1, 4)),
    )
    metrics.expose(lambda: look)
    others = {"namespace": OTHER_LABEL, "queue": OTHER_LABEL}
    found = [
        registry.get_sample_value(jobs.JOBS.name, {**others, "phase": "Queued"}),
        registry.get_sample_value(jobs.OLDEST_SECONDS.name, others),
        registry.get_sample_value(jobs.SLOTS.name, others),
    ]
    assert found == [100, MAX_QUEUES + 49, 200]


def test_parked_jobs_are_shown_by_kind_and_kinds_that_are_not_known_as_other() -> None:
    registry = CollectorRegistry()
    metrics = JobMetrics(registry, lambda: True, lambda: 0.0)
    kinds = {"Signal": 3, "Dawn": 4, "Dusk": 6}
    counts = {("ns", "mail", kind): number for kind, number in kinds.items()}
    ages = {park: 10.0 * count for park, count in counts.items()}
    metrics.expose(lambda: JobStats(parked=counts, oldest_parks=ages))
    queue = {"namespace": "ns", "queue": "mail"}
    found = [
        registry.get_sample_value(spec.name, {**queue, "kind": kind})
        for spec in (jobs.PARKED, jobs.OLDEST_PARK_SECONDS)
        for kind in ("Signal", OTHER_LABEL, "Sleep")
    ]
    assert found == [3, 10, None, 30, 60, None]


def own() -> list[Metric]:
    metrics = OperatorMetrics()
    metrics.register_sources(lambda: True, lambda: {Phase.QUEUED: 1}, lambda: 1, dict)
    metrics.arrays.expose(list)
    return list(metrics.registry.collect())


def test_the_operators_own_metrics_are_those_of_the_table() -> None:
    assert {(one.name, one.type) for one in own()} == {
        (spec.name, spec.kind.value) for spec in (*operator.TABLE, *arrays.TABLE)
    }


def test_crowded_namespaces_are_shown_by_the_leader_alone() -> None:
    metrics, leads = OperatorMetrics(), True
    metrics.register_sources(lambda: leads, dict, lambda: 0, dict)
    metrics.set_namespaces_over_limit(3)
    assert metrics.registry.get_sample_value(operator.RETENTION_OVER_LIMIT.name) == 3
    leads = False
    assert metrics.registry.get_sample_value(operator.RETENTION_OVER_LIMIT.name) == 0


def test_requests_are_counted_and_timed() -> None:
    metrics = OperatorMetrics()
    metrics.observe_request("GET", 429, 0.5)
    labels = {"method": "GET", "code": "429"}
    assert metrics.registry.get_sample_value(operator.API_REQUESTS.exposed_name, labels) == 1
    sums = operator.API_REQUEST_SECONDS.name + "_sum"
    assert metrics.registry.get_sample_value(sums, {"method": "GET"}) == 0.5


def test_what_an_alert_waits_for_begins_at_zero_so_that_its_first_burst_is_a_growth() -> None:
    registry = OperatorMetrics().registry
    for spec, label, known in (
        (operator.RECOVERED, "reason", RECOVERY_REASONS),
        (operator.RESYNC_REPAIRS, "kind", REPAIR_KINDS),
    ):
        values = [registry.get_sample_value(spec.exposed_name, {label: one}) for one in known]
        assert values == [0.0] * len(known)
