"""What holds for every test: nothing depends on how fast or from where the suite is run."""

import asyncio
import gc
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from support.judging.explained import all_errors_explained
from support.processes.signals import as_in_a_terminal

# Properties are bounded by their number of examples. How long one takes on a machine that does
# other things as well says nothing about the code. Where CI is set Hypothesis tries the same
# examples each time, so that what fails is of the change at hand; `make fuzz` and the night try new
# ones, as many as ASYNCJOB_FUZZ_EXAMPLES says.
FUZZ_EXAMPLES = os.environ.get("ASYNCJOB_FUZZ_EXAMPLES")
settings.register_profile(
    "asyncjob",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=settings().derandomize and FUZZ_EXAMPLES is None,
    max_examples=int(FUZZ_EXAMPLES or settings().max_examples),
)
settings.load_profile("asyncjob")

# API server and etcd, which are written in Go, collect garbage less often than is usual: starting
# one and installing everything takes a third less processor time so, and the memory is there.
os.environ.setdefault("GOGC", "400")
os.environ.setdefault("GOMEMLIMIT", "1GiB")

HEARTBEAT_END_SECONDS = 5.0
"""How long a worker itself waits for the thread of its heartbeats to end."""


class Folder(pytest.Package):
    """A folder of tests: what its `conftest.py` makes in the scope "package" ends with it.

    So no API server, operator or worker of one folder runs, and takes its share of processor and
    memory, beside the tests of the next.
    """

    def setup(self) -> None:
        """Import nothing: unlike a package of pytest's, it has no `__init__.py`."""


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Have each folder be one; packages that tests import hold no tests."""
    is_imported = (path / "__init__.py").exists()
    return None if is_imported else Folder.from_parent(parent, path=path)


TOGETHER = ("tests/contract/clients/", "tests/integration/cli/", "tests/integration/security/")
"""Folders that one process runs: each starts much for all of its files, and none takes long."""


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # its package has no types
    """Give each process a file at a time, or such a folder."""

    def _split_scope(self, nodeid: str) -> str:
        whole = [folder for folder in TOGETHER if nodeid.startswith(folder)]
        return whole[0] if whole else nodeid.split("::", 1)[0]


@pytest.hookimpl(optionalhook=True)  # not there where tests are run without processes
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Share the tests out in this way wherever files are shared out."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Leave what is imported and collected to no garbage collection: it is most of what there is.

    A test that collects garbage, as each simulated life does, is held up for a second otherwise.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def event_loops_only_by_who_runs_them() -> None:
    """Have asyncio make no event loop of its own accord, which nobody would close.

    What a killed process of a simulation leaves behind asks for one when it is freed.
    """
    asyncio.set_event_loop(None)


@pytest.fixture(scope="session", autouse=True)
def errors_that_are_explained() -> Iterator[None]:
    """Let no test meet an error without a code that `asyncjob explain` knows."""
    with all_errors_explained():
        yield


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


@pytest.fixture(autouse=True)
def no_heartbeats_of_others() -> Iterator[None]:
    """Let no test leave a worker's heartbeats behind: they go on and log in the tests after it."""
    yield
    for thread in threading.enumerate():
        if thread.name == "heartbeat":
            thread.join(HEARTBEAT_END_SECONDS)
            assert not thread.is_alive(), "a worker of this test still renews leases"
