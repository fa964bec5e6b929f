"""What clients do while a gateway or an API server is away."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob.client import JobsClient, KubernetesJobsClient
from asyncjob.client.errors import GatewayUnavailableError
from asyncjob.rest.jobs import Job
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from contract.clients.full_stack import FullStack, ScenarioScope
from support.cluster.installation import install
from support.processes.workers import WorkerNamespace, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WITHIN = 60.0


def in_background(do: Callable[[], Any]) -> Callable[[], Any]:
    """Begin, and return what waits for the value."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(do()), daemon=True)
    thread.start()

    def value() -> Any:
        thread.join(WITHIN)
        assert found, "it does not come"
        return found[0]

    return value


def test_a_wait_and_a_submit_outlast_a_gateway_that_is_killed(full_stack: FullStack) -> None:
    scope, gateway = ScenarioScope.again(full_stack), full_stack.gateway
    seen: list[Job] = []
    watching = threading.Event()

    def on_change(job: Job) -> None:
        seen.append(job)
        watching.set()

    with JobsClient(gateway.url, token=full_stack.token, patience=WITHIN) as jobs:
        name = scope.name("outage")
        jobs.submit("wait", scope.name("gate"), name=name)
        waiting = in_background(lambda: jobs.wait(name, WITHIN, on_change=on_change))
        assert watching.wait(WITHIN)
        gateway.kill()
        submitting = in_background(lambda: jobs.submit("echo", labels=scope.label))
        hasty = JobsClient(gateway.url, token=full_stack.token, patience=0.0)
        with hasty, pytest.raises(GatewayUnavailableError):
            hasty.get(name)
        scope.open(scope.name("gate"))
        gateway.start().until_ready()
        assert waiting().succeeded
        assert submitting().created
        assert scope.count() == 1


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[WorkerNamespace]:
    with ControlPlane(ControlPlaneOptions(with_controller_manager=False)) as plane:
        install(plane)
        with worker_namespace(plane, tmp_path) as ns:
            yield ns


def test_a_wait_and_a_submit_outlast_an_api_server_that_is_killed(fragile: WorkerNamespace) -> None:
    plane = fragile.plane
    fragile.worker()
    with KubernetesJobsClient.connect(str(plane.kubeconfig), fragile.namespace) as jobs:
        first = jobs.submit("wait", "gate")
        running = threading.Event()

        def on_change(job: Job) -> None:
            if job.phase == "Running":
                running.set()

        waiting = in_background(lambda: jobs.wait(first.id, WITHIN, on_change=on_change))
        assert running.wait(WITHIN)
        plane.kill_apiserver()
        submitting = in_background(lambda: jobs.submit("echo"))
        fragile.open("gate")
        plane.start_apiserver()
        assert waiting().result == "waited"
        assert submitting().created
        assert len(fragile.jobs()) == 2
