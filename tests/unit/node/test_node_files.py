"""Files of a dead node: removed however long that takes, and named if something holds them."""

from pathlib import Path

import pytest

from asyncjob_dev.errors import LeftoverError
from asyncjob_dev.node import host
from asyncjob_dev.node.plan import NodePaths


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodePaths:
    """Return a dead node that left files; no time remains once the first pass has ended."""
    monkeypatch.setattr(host, "FILES_GONE_SECONDS", 0.0)
    monkeypatch.setattr(host, "remove_cgroups", lambda _: None)
    layout = NodePaths(nodes=tmp_path, name="node")
    (layout.root / "images" / "layer").mkdir(parents=True)
    return layout


def test_files_that_took_long_to_remove_are_no_leftover(layout: NodePaths) -> None:
    host.remove_node(layout)
    assert not layout.root.exists()


def test_files_that_stay_are_named(layout: NodePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(LeftoverError, match="node is still there"):
        host.remove_node(layout)
