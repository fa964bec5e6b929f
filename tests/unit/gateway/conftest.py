"""A clock to be set, and jobs as the API server would show them."""

import pytest


class Clock:
    """Shows the time that it is set to, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()
