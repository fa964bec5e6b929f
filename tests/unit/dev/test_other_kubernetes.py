"""Control planes of other versions: pinned as `dev/tools` is, and handed to tests in a folder."""

import re
from pathlib import Path

import pytest
import yaml

from asyncjob_dev.binaries.__main__ import read_arguments
from asyncjob_dev.binaries.installed import Binary
from asyncjob_dev.binaries.pins import TOOLS, VERSIONS_DIR, read_pin
from asyncjob_dev.binaries.resolver import assets_folder, other_versions
from asyncjob_dev.bundled import CHECKOUT

CHART = CHECKOUT / "charts" / "asyncjob" / "Chart.yaml"
WORKFLOW = CHECKOUT / ".github" / "workflows" / "ci.yaml"
PAGE = CHECKOUT / "docs" / "reference" / "versions.md"


@pytest.mark.parametrize("version", other_versions())
def test_each_program_of_a_version_is_of_that_version(version: str) -> None:
    folders = [path.name for path in (VERSIONS_DIR / version).iterdir()]
    assert set(folders) <= set(TOOLS)
    assert "kube-apiserver" in folders
    for tool in set(folders) - {"etcd"}:
        pin = read_pin(tool, VERSIONS_DIR / version)
        assert pin.version.startswith(f"v{version}."), tool


def test_the_oldest_that_the_chart_admits_and_the_page_names_is_tried() -> None:
    oldest = re.search(r"kubeVersion: .>=(1\.\d+)", CHART.read_text())
    assert oldest is not None
    assert oldest[1] in other_versions()
    assert f"| Kubernetes | {oldest[1]} or newer" in PAGE.read_text()


def test_all_versions_with_modules_are_tried_by_the_workflow_and_named_on_the_page() -> None:
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["other-kubernetes"]
    assert job["strategy"]["matrix"]["kubernetes"] == other_versions()
    [command] = [
        step["run"] for step in job["steps"] if "make test-kubernetes" in step.get("run", "")
    ]
    assert command.endswith("KUBERNETES=${{ matrix.kubernetes }}")
    tried = PAGE.read_text().partition("| Kubernetes | ")[2].partition("\n")[0]
    assert all(version in tried for version in other_versions())


def test_what_is_found_is_linked_in_one_folder(tmp_path: Path) -> None:
    environ = {"ASYNCJOB_CACHE": str(tmp_path / "cache")}
    programs = []
    for tool in ("etcd", "kubectl"):
        path = tmp_path / tool
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        programs.append(Binary(tool, path, "v1", "built"))
    folder = assets_folder(programs, environ)
    assert {path.name: path.resolve() for path in folder.iterdir()} == {
        tool: (tmp_path / tool).resolve() for tool in ("etcd", "kubectl")
    }
    assert assets_folder(programs, environ) == folder
    assert assets_folder(programs[:1], environ) != folder


def test_a_version_without_modules_is_refused_by_naming_those_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        read_arguments(["--kubernetes", "1.31"])
    assert "choose from '1.32'" in capsys.readouterr().err
