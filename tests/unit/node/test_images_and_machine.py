"""The pause image, what is asked of the machine, and the remains of the dead."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from asyncjob_dev.binaries.pins import NODE_TOOLS, OWN_VERSION, read_pin
from asyncjob_dev.errors import LeftoverError, NodeNotUpError
from asyncjob_dev.node import components, host, programs
from asyncjob_dev.node.host import has_capability
from asyncjob_dev.node.node import Node
from asyncjob_dev.node.plan import NodePaths


def test_the_pause_image_holds_one_program_that_runs_as_nobody() -> None:
    with tarfile.open(
        fileobj=io.BytesIO(components.pause_image(b"program", "localhost/x:1"))
    ) as archive:
        index = json.load(member(archive, "manifest.json"))[0]
        config = json.load(member(archive, index["Config"]))
        with tarfile.open(fileobj=member(archive, index["Layers"][0])) as layer:
            assert [(entry.name, entry.mode) for entry in layer] == [("pause", 0o755)]
    assert index["RepoTags"] == ["localhost/x:1"]
    assert config["config"] == {"Entrypoint": ["/pause"], "User": "65535:65535"}


def test_the_same_program_makes_the_same_image() -> None:
    assert components.pause_image(b"program", "x") == components.pause_image(b"program", "x")


def test_a_capability_is_read_from_the_effective_set(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t000001fffeffffff\n")
    assert not has_capability(24, status)
    assert has_capability(21, status)


def test_all_that_the_machine_lacks_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "CNI_PLUGINS", "/nowhere")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    said = "; ".join(programs.missing_requirements({"PATH": ""}))
    assert "runc is missing (Debian: apt-get install runc)" in said
    assert "apt-get install containernetworking-plugins" in said
    assert "it takes root" in said


def test_cgroups_that_cannot_be_written_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "cgroup_roots", lambda: [tmp_path])
    monkeypatch.setattr(programs, "CNI_PLUGINS", str(tmp_path))
    monkeypatch.setattr(programs, "PACKAGES", {})
    monkeypatch.setattr(programs, "NAMESPACES", ("--version",))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in programs.PLUGINS:
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert programs.missing_requirements({"PATH": ""}) == [f"no cgroup can be made in {tmp_path}"]


@pytest.mark.parametrize("tool", NODE_TOOLS)
def test_every_program_of_a_node_is_pinned(tool: str) -> None:
    pin = read_pin(tool)
    assert pin.package.endswith(f"/{tool}")
    assert (pin.version == OWN_VERSION) is (tool in {"coredns", "pause"})


def test_a_changed_source_of_our_own_changes_the_digest(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "go.mod").write_text(
        "module example.test/own\n\ngo 1.26.0\n\ntool example.test/own\n"
    )
    (folder / "go.sum").touch()
    (folder / "main.go").write_text("package main\n")
    before = read_pin("own", tmp_path).digest
    (folder / "main.go").write_text("package main // changed\n")
    assert read_pin("own", tmp_path).digest != before


def test_the_folders_of_the_dead_are_removed(tmp_path: Path) -> None:
    dead = NodePaths(tmp_path, "dead")
    dead.make()
    (tmp_path / ".lock").touch()
    (tmp_path / "Not A Node").mkdir()
    host.remove_dead_nodes(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "Not A Node"}


def test_what_cannot_be_removed_is_named_and_keeps_no_other_node_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def resist(_name: str) -> None:
        raise LeftoverError("cgroup dead")

    NodePaths(tmp_path, "dead").make()
    monkeypatch.setattr(host, "remove_cgroups", resist)
    host.remove_dead_nodes(tmp_path)
    assert "cgroup dead is still there" in capsys.readouterr().err


def test_a_node_that_is_not_up_says_how_to_start_it(tmp_path: Path) -> None:
    node = Node("dev", {"ASYNCJOB_CACHE": str(tmp_path)})
    assert not node.is_up
    assert node.seconds == {}
    with pytest.raises(NodeNotUpError, match="node up"):
        node.load(tmp_path / "any.tar")


def member(archive: tarfile.TarFile, name: str) -> io.BytesIO:
    found = archive.extractfile(name)
    assert found
    return io.BytesIO(found.read())
