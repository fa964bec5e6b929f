"""One API server with everything installed, a namespace for each test, and identities in it."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space, Worker
from support.cluster.installation import install

NUMBERS = itertools.count(1)


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane with our CRDs, policies and roles."""
    with ControlPlane() as plane:
        install(plane)
        yield plane


@pytest.fixture(scope="package")
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
