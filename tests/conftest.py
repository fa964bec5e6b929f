"""What holds for every test: nothing depends on how fast or from where the suite is run."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from support.signals import as_in_a_terminal

# Properties are bounded by their number of examples. How long one takes on a machine that does
# other things as well says nothing about the code.
settings.register_profile("asyncjob", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("asyncjob")


@pytest.fixture
def in_a_terminal() -> Iterator[None]:
    """Heed the signals of a terminal, here and in what is started, even if run by `nohup … &`."""
    with as_in_a_terminal():
        yield
