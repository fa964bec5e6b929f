"""What holds for every test: nothing depends on how fast or from where the suite is run."""

import logging
from collections.abc import Iterator

import pytest
import structlog
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


@pytest.fixture(scope="session", autouse=True)
def loggers_that_are_never_cached() -> Iterator[None]:
    """Let a test change how is logged, also by a module that has logged before."""
    with pytest.MonkeyPatch.context() as patch:
        configure = structlog.configure
        patch.setattr(
            structlog,
            "configure",
            lambda **how: configure(**how | {"cache_logger_on_first_use": False}),
        )
        yield


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Put logging back as it was: a program run by a test sets it up for the whole process."""
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.configure(**configured)
