"""Every test has commands of its own, and may leave nothing running."""

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes.commands import Commands


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    if sys.platform != "linux":
        pytest.skip("descendants are found in /proc")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    marked = Commands(uuid.uuid4().hex, temporary)
    try:
        yield marked
    finally:
        marked.kill_all()
