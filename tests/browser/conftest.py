"""One control plane, one gateway with all that belongs to it and one browser for all tests.

They run by themselves: while the browser is there, its event loop has the main thread.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.installation import install
from support.processes.chromium import PATIENCE_MILLISECONDS, Complaints, chromium, sign_in
from support.processes.dashboard_setup import DashboardSetup, SampleJobs, dashboard_on, prepare

expect.set_options(timeout=PATIENCE_MILLISECONDS)
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse company, whose coroutines would not be run."""
    if any(HERE not in item.path.parents for item in items):
        raise pytest.UsageError(
            "run these with make browser-test, others with --ignore=tests/browser"
        )


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        yield running


@pytest.fixture(scope="session")
def admin(plane: ControlPlane) -> Client:
    return install(plane)


@pytest.fixture(scope="session")
def setup(
    plane: ControlPlane, admin: Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DashboardSetup]:
    with dashboard_on(plane, admin, tmp_path_factory.mktemp("setup")) as prepared:
        yield prepared


@pytest.fixture(scope="session")
def samples(setup: DashboardSetup) -> SampleJobs:
    """Have something of everything there."""
    return prepare(setup)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def passes(
    setup: DashboardSetup, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Sign in once; return what the browser keeps of it."""
    kept = tmp_path_factory.mktemp("browser") / "state.json"
    context = browser.new_context()
    sign_in(context.new_page(), setup.url("/sign-in"), setup.admin_token)
    context.storage_state(path=kept)
    context.close()
    return kept


@pytest.fixture
def context(browser: Browser, passes: Path) -> Iterator[BrowserContext]:
    """Open a browser window in which the admin has signed in."""
    opened = browser.new_context(storage_state=passes)
    opened.set_default_timeout(PATIENCE_MILLISECONDS)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """Open a page; afterwards, the browser must have had nothing against what it showed."""
    opened = context.new_page()
    complaints = Complaints(opened)
    yield opened
    assert complaints.heard == []
