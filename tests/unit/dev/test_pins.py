"""The tool modules are the one place where versions are written down."""

from pathlib import Path

import pytest

from asyncjob_dev.binaries.pins import MONITORING_TOOLS, TOOLS, read_pin
from asyncjob_dev.errors import PinUnreadableError, UnsupportedPlatformError
from asyncjob_dev.platforms import platform_name

GO_MOD = """module example.test/tools/{tool}

go 1.26.0

tool {package}

require (
	k8s.io/api v0.36.3 // indirect
	{module} {version} // indirect
)
"""


def module(root: Path, tool: str, package: str, owner: str, version: str) -> Path:
    folder = root / tool
    folder.mkdir(parents=True)
    text = GO_MOD.format(tool=tool, package=package, module=owner, version=version)
    (folder / "go.mod").write_text(text)
    (folder / "go.sum").write_text("sums\n")
    return folder


@pytest.mark.parametrize("tool", [*TOOLS, *MONITORING_TOOLS])
def test_every_tool_of_the_repository_is_pinned(tool: str) -> None:
    pin = read_pin(tool)
    assert pin.version.startswith("v")
    assert pin.package.endswith(tool) or tool == "etcd"


def test_the_version_is_that_of_the_module_that_holds_the_package(tmp_path: Path) -> None:
    module(tmp_path, "kubectl", "k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes", "v1.36.3")
    pin = read_pin("kubectl", tmp_path)
    assert (pin.version, pin.minor, pin.go) == ("v1.36.3", 36, "1.26.0")


def test_a_changed_checksum_file_changes_the_digest(tmp_path: Path) -> None:
    folder = module(tmp_path, "etcd", "go.etcd.io/etcd/v3", "go.etcd.io/etcd/v3", "v3.6.5")
    before = read_pin("etcd", tmp_path).digest
    (folder / "go.sum").write_text("other sums\n")
    assert read_pin("etcd", tmp_path).digest != before


def test_a_missing_module_says_to_run_from_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(PinUnreadableError, match="Run from a checkout"):
        read_pin("etcd", tmp_path)


def test_a_module_without_its_package_is_refused(tmp_path: Path) -> None:
    module(tmp_path, "kubectl", "k8s.io/kubernetes/cmd/kubectl", "example.test/other", "v1.0.0")
    with pytest.raises(PinUnreadableError, match="no required module provides"):
        read_pin("kubectl", tmp_path)


def test_platforms_have_the_names_that_go_uses() -> None:
    assert platform_name("Linux", "x86_64") == "linux-amd64"
    assert platform_name("Darwin", "arm64") == "darwin-arm64"
    assert platform_name("Linux", "aarch64") == "linux-arm64"
    assert platform_name("Linux", "riscv64") == "linux-riscv64"


def test_windows_is_told_about_wsl() -> None:
    with pytest.raises(UnsupportedPlatformError, match="WSL 2"):
        platform_name("Windows", "AMD64")
