"""What an environment adds to a control plane.

CRDs, policies and roles, and the operator, gateway and workers, each as a Pod with a token bound to
it. Another service is one more function here and one more entry in `SERVICES`.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from asyncjob.names import (
    COMPONENT_LABEL,
    DEFAULT_QUEUE,
    GATEWAY_COMPONENT,
    OPERATOR_COMPONENT,
    WORKER_COMPONENT,
)
from asyncjob_dev.bundled import bundled
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.environment.settings import EnvironmentSettings
from asyncjob_dev.errors import ManifestsMissingError
from asyncjob_dev.supervisor import WorkerSpec

DEV_MANIFESTS = bundled("manifests")
MANIFESTS = (bundled("crds"), DEV_MANIFESTS)
ESTABLISHED_WITHIN_SECONDS = 30


def install(plane: ControlPlane, manifests: Sequence[Path] = MANIFESTS) -> None:
    """Apply everything; returns when the API server serves the new types."""
    for folder in manifests:
        if not any(folder.glob("*.yaml")):
            raise ManifestsMissingError(folder)
        plane.kubectl("apply", "-f", str(folder))
    timeout = f"--timeout={ESTABLISHED_WITHIN_SECONDS}s"
    plane.kubectl("wait", "--for=condition=Established", timeout, "crd", "--all")


NAMESPACE = "default"
WORKER_ACCOUNT = "asyncjob-worker"
OPERATOR_ACCOUNT = "asyncjob-operator"
GATEWAY_ACCOUNT = "asyncjob-gateway"

ServiceBuilder = Callable[[EnvironmentSettings], WorkerSpec]


def operator_spec(settings: EnvironmentSettings) -> WorkerSpec:
    """Return the operator."""
    argv = [script_path("asyncjob-operator"), "run", f"--namespace={NAMESPACE}"]
    return _spec(settings, "operator", argv, OPERATOR_ACCOUNT, OPERATOR_COMPONENT)


def gateway_spec(settings: EnvironmentSettings) -> WorkerSpec:
    """Return the gateway, open to this machine only."""
    argv = [
        *(script_path("asyncjob-gateway"), "run", f"--namespace={NAMESPACE}"),
        *("--open", "--host=127.0.0.1", f"--port={settings.gateway_port}"),
        f"--grace={max(1.0, settings.grace - 2.0):g}",
    ]
    return _spec(settings, "gateway", argv, GATEWAY_ACCOUNT, GATEWAY_COMPONENT)


def worker_spec(
    settings: EnvironmentSettings, number: int, queue: str = DEFAULT_QUEUE
) -> WorkerSpec:
    """Return a queue's worker of a number, from 1."""
    name = f"worker-{number}" if queue == DEFAULT_QUEUE else f"worker-{queue}-{number}"
    argv = [
        *(script_path("asyncjob-worker"), "run", settings.app),
        f"--queue={queue}",
        f"--concurrency={settings.slots}",
        # With the wait it is less than what a part gets to end, or jobs would not be released.
        *(f"--grace={max(0.0, settings.grace - 2.0):g}", "--stop-wait=1"),
        *([f"--payload-prefix=file://{settings.readable}"] if settings.readable else []),
    ]
    return _spec(settings, name, argv, WORKER_ACCOUNT, WORKER_COMPONENT)


def _spec(
    settings: EnvironmentSettings, name: str, argv: Sequence[str], account: str, component: str
) -> WorkerSpec:
    return WorkerSpec(
        name=name,
        argv=argv,
        service_account=account,
        labels={COMPONENT_LABEL: component},
        restart=settings.restart,
        grace=settings.grace,
    )


SERVICES: tuple[ServiceBuilder, ...] = (operator_spec, gateway_spec)


def worker_specs(settings: EnvironmentSettings) -> list[WorkerSpec]:
    """Return all workers: so many for each queue."""
    numbers = range(1, settings.workers + 1)
    queues = settings.queues.split(",")
    return [worker_spec(settings, number, queue) for queue in queues for number in numbers]


def script_path(name: str) -> str:
    """Return the script of this virtual environment, whatever PATH says."""
    return str(Path(sys.executable).with_name(name))
