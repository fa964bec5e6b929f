"""Which cluster the end-to-end suite takes, and what it asks of one that exists."""

from pathlib import Path
from typing import ClassVar

import pytest

from asyncjob_dev.images import Engine
from e2e.targets import Images, choose
from e2e.targets.choice import NAMES, VARIABLE
from e2e.targets.errors import TargetError
from e2e.targets.existing import PREFIX, PUSH


class FakeEngine(Engine):
    """Notes what it is to do."""

    done: ClassVar[list[str]] = []

    def run(self, *arguments: str) -> str:
        self.done.append(" ".join(arguments))
        return ""


def existing(tmp_path: Path, **more: str) -> dict[str, str]:
    (tmp_path / "kubeconfig").touch()
    return {VARIABLE: "existing", "KUBECONFIG": str(tmp_path / "kubeconfig"), **more}


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_target_asked_for_is_taken(tmp_path: Path, name: str) -> None:
    assert choose({VARIABLE: name}, tmp_path).name == name


def test_without_docker_it_is_a_node(tmp_path: Path) -> None:
    assert choose({"PATH": str(tmp_path)}, tmp_path).name == "node"


def test_where_docker_runs_it_is_kind(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\n")
    docker.chmod(0o755)
    assert choose({"PATH": str(tmp_path)}, tmp_path).name == "kind"


def test_an_unknown_target_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="choose one of kind, node, existing"):
        choose({VARIABLE: "minikube"}, tmp_path)


def test_an_existing_cluster_needs_a_kubeconfig_and_a_place_for_images(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="needs KUBECONFIG"):
        choose({VARIABLE: "existing"}, tmp_path)
    with pytest.raises(TargetError, match=PREFIX):
        choose(existing(tmp_path), tmp_path)


@pytest.mark.parametrize("pushes", [True, False])
def test_images_for_an_existing_cluster_are_pushed_only_if_told(
    tmp_path: Path, *, pushes: bool
) -> None:
    more = {PREFIX: "registry.example/team/", PUSH: "1" if pushes else ""}
    engine = FakeEngine("docker")
    engine.done.clear()
    target = choose(existing(tmp_path, **more), tmp_path)
    reference = target.load("localhost/asyncjob-worker:e2e-0a1b", Images(engine, tmp_path))
    assert reference == "registry.example/team/asyncjob-worker:e2e"
    both = [f"tag localhost/asyncjob-worker:e2e-0a1b {reference}", f"push --quiet {reference}"]
    assert engine.done == (both if pushes else [])
