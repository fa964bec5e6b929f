"""One full stack for all scenarios, and each client in turn."""

from collections.abc import Iterator

import pytest

from asyncjob.client import Jobs
from contract.clients.all_clients import ALL_CLIENTS
from contract.clients.full_stack import FullStack, ScenarioScope, run_full_stack


@pytest.fixture(scope="package")
def full_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullStack]:
    with run_full_stack(tmp_path_factory.mktemp("full_stack")) as running:
        yield running


@pytest.fixture(scope="package", params=ALL_CLIENTS)
def jobs(request: pytest.FixtureRequest, full_stack: FullStack) -> Iterator[Jobs]:
    with ALL_CLIENTS[request.param](full_stack) as client:
        yield client


@pytest.fixture
def scope(full_stack: FullStack) -> ScenarioScope:
    return ScenarioScope.again(full_stack)
