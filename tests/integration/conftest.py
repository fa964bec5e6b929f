"""One API server with everything installed, a namespace for each test, and identities in it."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.api import Client
from support.enforcement import until_laws_hold
from support.identities import Space, Worker

ROOT = Path(__file__).parents[2]
NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane with our CRDs, policies and roles."""
    with ControlPlane() as plane:
        plane.kubectl("apply", f"--filename={ROOT / 'crds'}")
        plane.kubectl("apply", f"--filename={ROOT / 'dev/manifests/rbac.yaml'}")
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        until_laws_hold(Client(plane.url, plane.ca_file, plane.admin_token))
        yield plane


@pytest.fixture(scope="session")
def admin(control_plane: ControlPlane) -> Client:
    """Act as who may do everything."""
    return Client(control_plane.url, control_plane.ca_file, control_plane.admin_token)


@pytest.fixture
def space(admin: Client) -> Space:
    """Create a namespace of the test's own."""
    return Space(f"test-{next(NUMBERS)}", admin).create()


@pytest.fixture
def namespace(space: Space) -> str:
    """Name it."""
    return space.name


@pytest.fixture
def operator_identity(space: Space) -> Client:
    """Act as the operator's service account."""
    return space.operator()


@pytest.fixture
def worker_identity(space: Space) -> Callable[[str], Worker]:
    """Make workers: the name of a pod → the pod, its UID and a client with its bound token."""
    return space.worker


@pytest.fixture
def worker(space: Space) -> Worker:
    """Make the worker that claims."""
    return space.worker("worker-0")
