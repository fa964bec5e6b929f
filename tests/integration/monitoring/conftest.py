"""Operators and workers in a namespace of the test's own, on the control plane of all."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.replicas import Replicas
from support.workers import Field, field_on


@pytest.fixture
def field(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Field]:
    with field_on(control_plane, tmp_path) as prepared:
        yield prepared


@pytest.fixture
def replicas(control_plane: ControlPlane, field: Field) -> Iterator[Replicas]:
    with ExitStack() as stack:
        yield Replicas(control_plane.kubeconfig, field, stack)
