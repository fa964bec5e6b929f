"""One server for the tests that leave it as it is."""

import sys
from collections.abc import Iterator

import pytest

from integration.dev_server.project import Project, Server, new_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    if sys.platform != "linux":
        pytest.skip("descendants are found in /proc")
    with new_project(tmp_path_factory.mktemp("dev-server")) as made:
        yield made


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[Server]:
    with project.server("hello:app") as started:
        yield started
