"""One control plane and one operator for the tests that break neither; a namespace for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from support.cluster.installation import install
from support.processes.operator import OperatorProcess
from support.processes.workers import WorkerNamespace, worker_namespace

OPERATOR = (
    "--lease-margin=0.3",
    "--timeout-margin=7",
    "--unknown-type-delay=2",
    "--backoff-initial=0.2",
    "--backoff-max=2",
    "--no-retention",
)


@pytest.fixture(scope="package")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        install(running)
        yield running


@pytest.fixture(scope="package")
def operator(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(plane.kubeconfig, log, *OPERATOR) as running:
        yield running.until_ready().until_leading()


@pytest.fixture
def ns(plane: ControlPlane, operator: OperatorProcess, tmp_path: Path) -> Iterator[WorkerNamespace]:
    """Prepare a namespace with an operator at work."""
    with worker_namespace(plane, tmp_path) as prepared:
        yield prepared


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[WorkerNamespace]:
    """Prepare a namespace on a control plane of its own, to be broken."""
    with ControlPlane(ControlPlaneOptions(with_controller_manager=False)) as plane:
        install(plane)
        with worker_namespace(plane, tmp_path) as prepared:
            yield prepared
