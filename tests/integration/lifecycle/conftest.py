"""The scene of a forbidden write: a namespace with two workers and the operator."""

import pytest

from support.forbidden import Scene
from support.identities import Space


@pytest.fixture
def scene(space: Space) -> Scene:
    """Set the scene."""
    return Scene(space, space.worker("worker-0"), space.worker("worker-1"), space.operator())
