"""One control plane and one operator, a namespace for each test, and an operator to be killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.installation import install
from support.driven.arrays import Arrays
from support.processes.operator import OperatorProcess, operator_kubeconfig
from support.processes.workers import worker_namespace

OPERATOR = (
    "--lease-margin=0.3",
    "--timeout-margin=2",
    "--backoff-initial=0.2",
    "--backoff-max=2",
    "--retention-interval=1",
    "--retention-min-age=0",
)


@pytest.fixture(scope="package")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        install(running)
        yield running


@pytest.fixture(scope="package")
def access(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give operators their roles, and no others."""
    return operator_kubeconfig(plane, tmp_path_factory.mktemp("access") / "kubeconfig")


@pytest.fixture(scope="package")
def operator(access: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(access, log, *OPERATOR) as running:
        yield running.until_ready().until_leading()


@pytest.fixture
def arrays(plane: ControlPlane, operator: OperatorProcess, tmp_path: Path) -> Iterator[Arrays]:
    """Prepare a namespace with an operator at work."""
    with worker_namespace(plane, tmp_path) as prepared:
        yield Arrays(prepared)
