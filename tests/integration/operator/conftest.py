"""One operator for the tests that do not break it; another control plane to break."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.installation import install
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs
from support.processes.operator import QUICK, OperatorProcess, operator_kubeconfig


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane apart from the other tests': here an operator is at work on all of it."""
    with ControlPlane() as plane:
        install(plane)
        yield plane


@pytest.fixture(scope="package")
def operator(
    control_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[OperatorProcess]:
    """Run an operator for all namespaces, under its own roles; a parameter is its --job-watch."""
    folder = tmp_path_factory.mktemp("operator")
    kubeconfig = operator_kubeconfig(control_plane, folder / "kubeconfig")
    options = (*QUICK, f"--job-watch={getattr(request, 'param', 'direct')}")
    with OperatorProcess(kubeconfig, folder / "operator.log", *options) as running:
        yield running.until_ready().until_leading()


@pytest.fixture
def jobs(control_plane: ControlPlane, operator: OperatorProcess) -> Jobs:
    """Jobs in a namespace of their own, with an operator at work."""
    return Jobs(control_plane.api)


@pytest.fixture
def worker(jobs: Jobs) -> FakeWorker:
    return FakeWorker(jobs)


@pytest.fixture(scope="package")
def fragile_plane() -> Iterator[ControlPlane]:
    """Run a control plane without an operator."""
    with ControlPlane() as running:
        install(running)
        yield running


@pytest.fixture(scope="package")
def operator_access(fragile_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give operators on that control plane their roles."""
    return operator_kubeconfig(fragile_plane, tmp_path_factory.mktemp("access") / "kubeconfig")
