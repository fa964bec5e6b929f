"""A real Prometheus scrapes running processes: alerts fire and clear, the dashboard has data."""

from pathlib import Path

import pytest

from asyncjob.names import ARRAYS, collection_path
from asyncjob_dev.ports import free_port
from support.cluster.promql import dashboard_queries
from support.driven.jobs import until
from support.loopback.prometheus import Prometheus
from support.objects.builders import array
from support.processes.gateway import GatewayProcess
from support.processes.operator import Replicas
from support.processes.workers import WorkerNamespace

pytestmark = pytest.mark.integration

MINUTE = 0.5
"""A minute of the alerts takes so many seconds here; thresholds are what they are."""

DEAD = "AsyncJobDeadLetters"
NEVER_HERE = ('"429"', "asyncjob_jobs_parked", "asyncjob_parked_oldest_seconds")
"""The API server has throttled nobody, and no job is parked; all else of the dashboard has data."""


def shown(query: str) -> str:
    """Return a query as Grafana would send it."""
    picked = query.replace("$namespace", ".*").replace("$queue", ".*")
    return picked.replace("$__rate_interval", "1h")


def test_a_dead_letter_alerts_until_it_is_redriven_or_dismissed(
    replicas: Replicas, ns: WorkerNamespace, gateway: GatewayProcess, tmp_path: Path
) -> None:
    operator = replicas.start().until_leading()
    port = free_port()
    ns.worker(
        "worker-0", f"--health-port={port}", "--health-host=127.0.0.1",
        app="support.apps.monitored:app",
    )  # fmt: skip
    targets = {
        "operator": operator.metrics_port, "worker": port, "gateway": gateway.metrics_port
    }  # fmt: skip
    with Prometheus(tmp_path, targets, MINUTE) as prometheus:
        for number in range(3):
            ns.create(f"fine-{number}", "fine", number)
        ns.create("later", "later")
        waits = array("waits", type="thumb", items={"count": 10}, suspend=True)
        ns.api.create(collection_path(ns.namespace, ARRAYS), waits)
        ns.create("doomed", "doomed")
        ns.until_phase("doomed", "DeadLetter")
        labels = prometheus.until_firing(DEAD)
        assert (labels["namespace"], labels["queue"]) == (ns.namespace, "default")
        assert set(prometheus.firing()) == {DEAD}

        ns.open("mended")
        ns.patch("doomed", {"spec": {"redrive": 1}})
        ns.until_phase("doomed", "Succeeded")
        prometheus.until_clear(DEAD)

        (tmp_path / "mended").unlink()
        ns.create("hopeless", "doomed")
        ns.until_phase("hopeless", "DeadLetter")
        prometheus.until_firing(DEAD)
        ns.cancel("hopeless")
        assert ns.until_phase("hopeless", "Cancelled")["reason"] == "Dismissed"
        prometheus.until_clear(DEAD)

        agrees_with_what_was_done(prometheus)
        operator.stop()
        missed = prometheus.until_firing("AsyncJobLeaderMissing")
        assert (missed["job"], missed["severity"]) == ("operator", "critical")


def agrees_with_what_was_done(prometheus: Prometheus) -> None:
    assert prometheus.ill() == []
    until(lambda: not missing(prometheus), 5, f"data for {missing(prometheus)}")
    counted = {
        "submitted": 6.0, "claimed": 7.0, "succeeded": 4.0, "redriven": 1.0,
        "dead_lettered": 2.0, "cancelled": 1.0, "retried": 1.0,
    }  # fmt: skip
    for name, count in counted.items():
        assert value(prometheus, f"sum(asyncjob_jobs_{name}_total)") == count, name
    for name, count in {"queue": 7.0, "end_to_end": 5.0}.items():
        assert value(prometheus, f"sum(asyncjob_job_{name}_seconds_count)") == count, name
    assert value(prometheus, "sum(asyncjob_worker_claims_total{outcome='won'})") == 7.0


def missing(prometheus: Prometheus) -> list[str]:
    """Return the queries of the dashboard without data, but for what never happens here."""
    asked = dashboard_queries()
    empty = [query for query in asked if not prometheus.query(shown(query))]
    return [query for query in empty if not any(part in query for part in NEVER_HERE)]


def value(prometheus: Prometheus, query: str) -> float:
    [sample] = prometheus.query(query)
    return float(sample["value"][1])


def test_a_queue_without_workers_alerts_and_is_told_of_no_more_once_one_comes(
    replicas: Replicas, ns: WorkerNamespace, tmp_path: Path
) -> None:
    operator = replicas.start().until_leading()
    ns.create("waiting", "fine")
    look = "asyncjob_queue_oldest_seconds"
    until(lambda: operator.samples(look).get((ns.namespace, "default"), 0) > 1, 10, "its age")
    crews = ("asyncjob_queue_workers", "asyncjob_queue_slots")
    key = (ns.namespace, "default")
    assert [operator.samples(name).get(key) for name in crews] == [0, 0]
    ns.worker("worker-0", "--concurrency=3", app="support.apps.monitored:app")
    ns.until_phase("waiting", "Succeeded")
    until(lambda: [operator.samples(name).get(key) for name in crews] == [1, 3], 5, "its worker")
    assert operator.samples(look)[key] == 0
