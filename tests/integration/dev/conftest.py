"""One control plane for the tests that do not break it, and a namespace for each test."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.supervisor import DevPods

numbers = itertools.count(1)


@pytest.fixture(scope="package")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        yield running


@pytest.fixture
def pods(plane: ControlPlane, tmp_path: Path) -> Iterator[DevPods]:
    with DevPods(plane.api, tmp_path / "pods", namespace=f"dev-{next(numbers)}") as prepared:
        prepared.prepare()
        yield prepared
