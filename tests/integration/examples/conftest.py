"""A folder as a user has it, and a namespace with an operator of its own beside the other tests."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.processes.operator import own_operator
from support.processes.workers import ROOT, WorkerNamespace, worker_namespace

# As a worker does it, which is started in the folder that its app lies in.
sys.path.append(str(ROOT))


@pytest.fixture
def ns(control_plane: ControlPlane, tmp_path: Path) -> Iterator[WorkerNamespace]:
    """Prepare a namespace with an operator for it alone; its folder has the examples' data."""
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    with worker_namespace(control_plane, tmp_path) as prepared, own_operator(prepared):
        yield prepared
