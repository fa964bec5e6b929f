"""One town for all scenarios, and each client in turn."""

from collections.abc import Iterator

import pytest

from asyncjob.client import Jobs
from contract.clients.faces import FACES
from contract.clients.town import Place, Town, town


@pytest.fixture(scope="package")
def place_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("town")) as running:
        yield running


@pytest.fixture(scope="package", params=FACES)
def jobs(request: pytest.FixtureRequest, place_of_all: Town) -> Iterator[Jobs]:
    with FACES[request.param](place_of_all) as client:
        yield client


@pytest.fixture
def place(place_of_all: Town) -> Place:
    return Place.anew(place_of_all)
