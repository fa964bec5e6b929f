"""One operator for all namespaces, an honest tenant in one of them, and others beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.cluster.installation import install
from support.driven.jobs import NUMBERS
from support.processes.operator import QUICK, OperatorProcess, operator_kubeconfig
from support.processes.workers import WorkerNamespace, worker_namespace
from support.tenants.honest import Honest, HonestArrays, HonestTenant, broken_loops

FOREIGN = "foreign"


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane for each module: what one leaves behind must not burden the next."""
    with ControlPlane() as plane:
        install(plane)
        yield plane


@pytest.fixture(scope="module")
def admin(control_plane: ControlPlane) -> Client:
    return Client(control_plane.url, control_plane.ca_file, control_plane.admin_token)


@pytest.fixture(scope="module")
def operator_access(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give operators their roles in the whole cluster."""
    return operator_kubeconfig(control_plane, tmp_path_factory.mktemp("access") / "kubeconfig")


@pytest.fixture
def operator(operator_access: Path, tmp_path: Path) -> Iterator[OperatorProcess]:
    """Run one for all namespaces, which compares what it knows with a list all the time."""
    options = (*QUICK, "--resync-interval=1")
    with OperatorProcess(operator_access, tmp_path / "operator.log", *options) as running:
        yield running.until_ready(60).until_leading()


@pytest.fixture
def honest(control_plane: ControlPlane, tmp_path: Path) -> Iterator[WorkerNamespace]:
    """Prepare the honest tenant's namespace, with a worker at work."""
    with worker_namespace(control_plane, tmp_path) as prepared:
        prepared.worker("worker", "--queue=honest", "--concurrency=4")
        yield prepared


@pytest.fixture
def space(admin: Client) -> Space:
    """Create the other tenant's namespace."""
    return Space(f"tenant-{next(NUMBERS)}", admin).create()


@pytest.fixture
def foreign(honest: WorkerNamespace) -> str:
    """Return the UID of a finished job of the honest tenant."""
    uid: str = honest.create(FOREIGN, "echo", 1, queue="honest")["metadata"]["uid"]
    honest.until_phase(FOREIGN, "Succeeded")
    return uid


@pytest.fixture
def undisturbed(honest: WorkerNamespace, foreign: str, operator: OperatorProcess) -> Iterator[None]:
    """Check that the honest tenant and the operator do not notice what the test does."""
    before = honest.get(FOREIGN)
    assert before["metadata"]["uid"] == foreign
    with unharmed(HonestTenant(honest), operator):
        yield
    assert honest.get(FOREIGN) == before


@contextmanager
def unharmed(tenant: Honest, operator: OperatorProcess) -> Iterator[None]:
    """Check that neither a tenant nor the operator notices what is done."""
    with tenant.undisturbed(at_least=3):
        yield
    assert operator.leads()
    operator.until_ready(1.0)
    assert not broken_loops(operator)


@pytest.fixture
def arrays_undisturbed(honest: WorkerNamespace, operator: OperatorProcess) -> Iterator[None]:
    """Check that the honest tenant's arrays and the operator do not notice what the test does."""
    with unharmed(HonestArrays(honest), operator):
        yield
