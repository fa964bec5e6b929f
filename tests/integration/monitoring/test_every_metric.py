"""Each metric of the table is moved by something that happens in a running system."""

import signal
from contextlib import ExitStack

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from asyncjob.metrics import TABLE
from asyncjob.names import CRON_JOBS, WORKER_LEASE_PREFIX, collection_path
from asyncjob_dev.ports import free_port
from asyncjob_operator.kube.paths import leases_path
from support.driven.jobs import now, until
from support.objects.builders import cron_job
from support.processes.gateway import GatewayProcess
from support.processes.operator import OperatorProcess, Replicas
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(150)]

NOT_HERE = {
    "asyncjob_operator_resync_repairs": "operator/test_outage.py breaks the watch",
    "asyncjob_operator_watch_restarts": "the same",
    "asyncjob_operator_recovery_errors": "a turn of the loop fails only by a fault of ours",
    "asyncjob_operator_recovery_failed": "operator/test_outage.py takes the API server away",
    "asyncjob_operator_quarantined": "unit/operator/test_quarantine.py has what makes it fail",
    "asyncjob_operator_quarantined_objects": "the same",
    "asyncjob_jobs_parked": "unit/operator/test_queue_status.py has parked jobs",
    "asyncjob_parked_oldest_seconds": "the same",
    "asyncjob_arrays": "arrays/test_metrics.py has arrays",
    "asyncjob_array_items": "the same",
    "asyncjob_array_items_left": "the same",
    "asyncjob_array_open_chunks": "the same",
    "asyncjob_array_idle_seconds": "the same",
    "asyncjob_operator_retention_over_limit": "operator/test_retention.py fills a namespace",
    "asyncjob_worker_shards": "from five workers on; unit/worker/test_metrics.py shows them",
    "asyncjob_worker_takeovers": "unit/worker/test_slots.py counts those of another worker's jobs",
    "asyncjob_gateway_stream_resyncs": "unit/gateway/test_job_cache_feed.py has a slow follower",
}


NO_RETRY = {"maxRetries": 0}


class Moved:
    """What the processes have shown so far that is more than 0."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self.names: set[str] = set()

    def scrape(self) -> set[str]:
        """Look at all once more; return the names so far."""
        for port in self._ports:
            text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
            for family in text_string_to_metric_families(text):
                if any(sample.value > 0 for sample in family.samples):
                    self.names.add(family.name)
        return self.names

    def until(self, *names: str) -> None:
        """Wait until these have moved, too."""
        wanted = {f"asyncjob_{name}" for name in names}
        until(lambda: wanted <= self.scrape(), 20, f"{wanted - self.names}")


def test_a_busy_system_moves_every_metric(
    replicas: Replicas, ns: WorkerNamespace, gateway: GatewayProcess
) -> None:
    operator = replicas.start("--worker-timeout=1").until_leading()
    port = free_port()
    ns.worker(
        "w",
        "--concurrency=3",
        "--stop-wait=0.5",
        f"--health-port={port}",
        "--health-host=127.0.0.1",
    )
    moved = Moved([operator.metrics_port, port, gateway.metrics_port])
    with ExitStack() as stack:
        http = stack.enter_context(gateway.client())
        stack.enter_context(http.stream("GET", "/api/v1/events"))
        moved.until("gateway_streams", "gateway_in_flight")
        ends_of_all_kinds(http, ns, moved)
        too_much_to_do(ns, moved)
        an_event_loop_that_stands_still(ns, moved)
        a_handler_that_ignores_its_stop(ns, moved)
        an_operator_that_sleeps(operator, ns, moved)
        a_worker_that_dies(ns, moved)
    known = {spec.name for spec in TABLE}
    assert known - moved.names == set(NOT_HERE)


def ends_of_all_kinds(http: httpx.Client, ns: WorkerNamespace, moved: Moved) -> None:
    """Have jobs succeed, retried, given up, redriven, dismissed, run by a cron job, removed."""
    jobs = (("fine", "echo", 1), ("again", "checkpoints", {"values": [], "gate": ""}))
    for name, type_, payload in (*jobs, ("dead", "order", "no order")):
        body = {"name": name, "type": type_, "payload": payload}
        assert http.post("/api/v1/jobs", json=body).status_code == 202
    ns.create("stepped", "stepped", 0.01)
    ns.until_phase("stepped", "Succeeded")
    ns.until_phase("fine", "Succeeded")
    ns.until_phase("again", "Succeeded")
    ns.until_phase("dead", "DeadLetter")
    moved.until(
        "jobs",
        "worker_step_seconds",
        "job_end_to_end_seconds",
        "jobs_dead_lettered",
        "jobs_retried",
    )
    assert http.post("/api/v1/jobs/dead/redrive").status_code == 202
    ns.until_status("dead", lambda status: status.get("redrives") == 1)
    ns.until_phase("dead", "DeadLetter")
    assert http.post("/api/v1/jobs/dead/dismiss").status_code == 202
    ns.until_phase("dead", "Cancelled")
    ns.api.create(collection_path(ns.namespace, CRON_JOBS), cron_job(type="echo"))
    assert http.post("/api/v1/cron-jobs/nightly/trigger").status_code == 202
    ns.create("brief", "echo", ttlSecondsAfterFinished=0)
    moved.until("jobs_redriven", "jobs_cancelled", "operator_cron_runs")
    moved.until("operator_retention_removed", "operator_events_posted")


def too_much_to_do(ns: WorkerNamespace, moved: Moved) -> None:
    """Fill all slots, so that jobs have to wait; hold leases for so long that they are renewed."""
    for number in range(6):
        ns.create(f"wait-{number}", "wait", "slots", leaseDurationSeconds=5)
    moved.until("worker_backlog", "worker_running", "queue_oldest_seconds", "queue_slots")
    moved.until("worker_lease_renewals", "operator_pending_requeues")
    ns.open("slots")
    for number in range(6):
        ns.until_phase(f"wait-{number}", "Succeeded")


def an_event_loop_that_stands_still(ns: WorkerNamespace, moved: Moved) -> None:
    """Block it until the operator has ended the attempt, whose outcome is then not stored."""
    ns.create("block", "block", "loop", executionTimeoutSeconds=1, retryPolicy=NO_RETRY)
    moved.until("worker_event_loop_stalls", "worker_event_loop_stalled_seconds")
    ns.until_phase("block", "DeadLetter", within=20)
    ns.open("loop")
    moved.until("worker_fenced")


def a_handler_that_ignores_its_stop(ns: WorkerNamespace, moved: Moved) -> None:
    """Let its time run out; it holds its slot until it ends."""
    limits = {"executionTimeoutSeconds": 1, "retryPolicy": NO_RETRY}
    ns.create("stubborn", "stubborn", "ends", **limits)
    ns.until_phase("stubborn", "DeadLetter")
    moved.until("worker_abandoned")
    ns.open("ends")


def an_operator_that_sleeps(operator: OperatorProcess, ns: WorkerNamespace, moved: Moved) -> None:
    """Stop it while a job comes, for more than the second that is no lag."""
    assert operator.process
    operator.process.send_signal(signal.SIGSTOP)
    ns.create("unseen", "echo")
    ns.until_phase("unseen", "Succeeded")
    created = ns.get("unseen")["metadata"]["creationTimestamp"]
    until(lambda: now(-3) > created, 10, "three seconds")
    operator.process.send_signal(signal.SIGCONT)
    moved.until("operator_watch_lag_seconds", "operator_scheduler_lag_seconds")


def a_worker_that_dies(ns: WorkerNamespace, moved: Moved) -> None:
    """Kill it with a job; the job is recovered, and its Lease goes when it has been silent."""
    other = ns.worker("mortal", "--queue=mortal")
    ns.create("orphan", "wait", "never", queue="mortal", leaseDurationSeconds=5)
    ns.until_phase("orphan", "Running")
    other.kill()
    moved.until("operator_recovery_recovered", "operator_recovery_seconds")
    lease = f"{leases_path(ns.namespace)}/{WORKER_LEASE_PREFIX}mortal"
    ns.api.merge(lease, {"spec": {"leaseDurationSeconds": 1}})  # it is 45, too long to wait for
    moved.until("operator_workers_removed")
