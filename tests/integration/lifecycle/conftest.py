"""Both API servers, the real one and the one in memory, and what forbidden writes need.

Every test here is a clause of the contract between the two: what one refuses or accepts the other
does as well, in the same words.
"""

import time

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.forbidden import ForbiddenSetup
from support.in_memory.memory import memory_admin, memory_server


@pytest.fixture(scope="package", params=["memory", "real"])
def admin(request: pytest.FixtureRequest) -> Client:
    """Act as who may do everything, on either API server."""
    if request.param == "memory":
        return memory_admin(memory_server(time.time))
    plane: ControlPlane = request.getfixturevalue("control_plane")
    return Client(plane.url, plane.ca_file, plane.admin_token)


@pytest.fixture
def setup(space: Space) -> ForbiddenSetup:
    """Make two workers and an operator."""
    return ForbiddenSetup(
        space, space.worker("worker-0"), space.worker("worker-1"), space.operator()
    )
