"""One control plane and one operator for all recipes; a namespace and a folder for each."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.installation import install
from support.docs.recipe_runs import Recipe
from support.processes.operator import QUICK, OperatorProcess
from support.processes.workers import ROOT, WorkerNamespace, worker_namespace

# As a worker does it, which is started in the folder that its app lies in.
sys.path.append(str(ROOT))


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        install(plane)
        yield plane


@pytest.fixture(scope="package")
def operator(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(control_plane.kubeconfig, log, *QUICK, "--no-retention") as running:
        yield running.until_ready().until_leading()


@pytest.fixture
def ns(
    control_plane: ControlPlane, operator: OperatorProcess, tmp_path: Path
) -> Iterator[WorkerNamespace]:
    """Prepare a folder that looks like a clone, and a namespace."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    with worker_namespace(control_plane, tmp_path) as prepared:
        yield prepared


@pytest.fixture
def recipe(request: pytest.FixtureRequest, ns: WorkerNamespace) -> Recipe:
    """Take the page that the test names."""
    return Recipe(request.param, ns)
