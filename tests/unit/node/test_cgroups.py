"""Cgroups: found in both versions, and removed with all below."""

from pathlib import Path

import pytest

from asyncjob_dev.errors import LeftoverError
from asyncjob_dev.node import host


def version_1(root: Path) -> Path:
    for name in ("cpu", "memory", "unified"):
        (root / name).mkdir()
        (root / name / "cgroup.procs").touch()
    (root / "cpuacct").symlink_to("cpu")
    (root / "not-mounted").mkdir()
    return root


def test_every_hierarchy_of_version_1_has_its_own(tmp_path: Path) -> None:
    host.create_cgroups("node", version_1(tmp_path))
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/node"))
    assert made == ["cpu/node", "cpuacct/node", "memory/node", "unified/node"]


def test_version_2_has_one(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    (tmp_path / "system.slice").mkdir()
    host.create_cgroups("node", tmp_path)
    assert (tmp_path / "node").is_dir()
    assert not (tmp_path / "system.slice" / "node").exists()


def test_a_machine_without_cgroups_has_none(tmp_path: Path) -> None:
    assert host.cgroup_roots(tmp_path / "nowhere") == []


def test_all_below_goes_too_and_removing_again_does_no_harm(tmp_path: Path) -> None:
    root = version_1(tmp_path)
    for path in ("cpu/node/pods/a/b", "cpu/node/pods/c", "memory/node/pods"):
        (root / path).mkdir(parents=True)
    host.remove_cgroups("node", root)
    host.remove_cgroups("node", root)
    assert list(root.glob("*/node")) == []


def test_a_cgroup_that_stays_busy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "CGROUPS_GONE_SECONDS", 0.0)
    busy = version_1(tmp_path) / "cpu" / "node"
    busy.mkdir()
    (busy / "cannot-be-removed").touch()
    with pytest.raises(LeftoverError, match="cpu/node is still there"):
        host.remove_cgroups("node", tmp_path)
