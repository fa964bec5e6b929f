"""Who may create jobs cannot fill Prometheus: what a scrape shows is bounded, and so is its memory.

10,000 job types, queues, reasons and paths are thrown at what each part shows as a scrape reads it.
"""

from collections.abc import Iterator
from dataclasses import replace

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, generate_latest
from starlette.types import Message
from structlog.testing import capture_logs

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.metrics import TABLE
from asyncjob_gateway.telemetry import AccessLogMiddleware, GatewayMetrics
from asyncjob_operator.core.snapshot import Observation
from asyncjob_operator.telemetry.job_metrics import (
    MAX_QUEUE_TYPES,
    MAX_QUEUES,
    MAX_TYPES,
    JobMetrics,
    JobStats,
)
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_worker.metrics import Metrics as WorkerMetrics
from support.cluster.promql import series_names
from support.objects.snapshots import job

MANY = 10_000
TELLING = {series for spec in TABLE for series in series_names(spec)}


def series(registry: CollectorRegistry) -> int:
    """Return how many series a scrape shows; each is in the table or about the process."""
    lines = generate_latest(registry).decode().splitlines()
    shown = [line for line in lines if not line.startswith("#")]
    names = {line.partition(" ")[0].partition("{")[0] for line in shown}
    assert {name for name in names if name.startswith("asyncjob")} <= TELLING
    return len(shown)


PHASES = (
    *(Phase.QUEUED, Phase.RUNNING, Phase.RETRYING, Phase.DEAD_LETTER),
    *(Phase.QUEUED, Phase.SUCCEEDED, Phase.CANCELLED),
)
SEEN = Observation(
    (Phase.QUEUED, 0, "", None, None), 0.0, 0, 0.0, seen_from_start=True, created_at=0.0
)


def lives() -> Iterator[tuple[JobView | None, JobView]]:
    """Yield changes of jobs of many types in many queues, the known ones in ever new pairs."""
    reasons = [reason.value for reason in Reason]
    for number in range(MANY):
        type_ = f"type-{number % 130 if number % 2 else number}"
        named = replace(job(), queue=f"queue-{number % 251}", type=type_)
        before = None
        for attempt, phase in enumerate(PHASES):
            reason = reasons[(number + attempt) % len(reasons)]
            now = replace(named, phase=phase, attempt=attempt, reason=reason)
            yield before, now
            before = now


def test_the_leader_shows_a_bounded_number_of_series_and_keeps_no_more() -> None:
    own = OperatorMetrics()
    metrics = JobMetrics(own.registry, lambda: True, lambda: 5.0)
    counts = {("ns", f"queue-{n}", phase): 1 for n in range(3000) for phase in Phase}
    ages = {("ns", f"queue-{n}"): 1.0 for n in range(3000)}
    metrics.expose(lambda: JobStats(counts, ages, dict.fromkeys(ages, (1, 1)), 50))
    for before, now in lives():
        metrics.record_change(before, now, SEEN)
    assert series(own.registry) < 30_000, "with each of 30 reasons in each of 200 queues"
    labels = metrics._labels
    kept = [
        len(one._known)
        for one in (
            labels.of_queue,
            labels._type_bound,
            labels._queue_type_bound,
            labels._reason_bound,
        )
    ]
    assert kept == [MAX_QUEUES, MAX_TYPES, MAX_QUEUE_TYPES, MAX_QUEUE_TYPES]


def test_a_worker_shows_a_bounded_number_of_series() -> None:
    metrics = WorkerMetrics()
    types = [f"type-{number}" for number in range(MANY)]
    metrics.expect(types)
    for type_ in types:
        for phase, reason in (
            (Phase.SUCCEEDED, None),
            (Phase.RETRYING, Reason.HANDLER_FAILED),
            (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE),
        ):
            metrics.finished(type_, PhaseChange(phase, reason, {}, {}))
        metrics.fenced(type_)
        metrics.handler_ended(type_, 1.0)
        metrics.stall_begun(type_)
        metrics.stalled(type_, 1.0)
    assert series(metrics.registry) < 2500


async def test_a_gateway_shows_a_bounded_number_of_series() -> None:
    metrics, app = GatewayMetrics(), FastAPI()
    app.add_api_route("/jobs/{id}", lambda: None)
    served = AccessLogMiddleware(app, metrics)
    with capture_logs() as lines:
        for number in range(MANY):
            path = ("/jobs/{}", "/nowhere/{}")[number % 2].format(number)
            method = f"M{number}" if number % 3 else "GET"
            about = {"path": path, "method": method, "query_string": b"type=type-%d" % number}
            await served({"type": "http", "headers": [], **about}, nothing, drop)
    assert len(lines) == MANY
    assert series(metrics.registry) < 100


async def nothing() -> Message:
    return {"type": "http.disconnect"}


async def drop(_message: Message) -> None: ...
