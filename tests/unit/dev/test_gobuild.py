"""Building: what is passed to the compiler, and what its failures say."""

import os
import re
from pathlib import Path

import pytest

from asyncjob_dev.binaries.gobuild import arguments, build, check_compiler, progress_text
from asyncjob_dev.binaries.pins import Pin
from asyncjob_dev.errors import BuildError, DiskFullError, GoMissingError, GoTooOldError


def pin(tmp_path: Path, tool: str = "kubectl", version: str = "v1.36.3") -> Pin:
    owner = "go.etcd.io" if tool == "etcd" else "k8s.io/kubernetes"
    return Pin(tool, f"{owner}/cmd/{tool}", version, "1.26.0", tmp_path, "0123456789ab")


def fake_go(tmp_path: Path, *, version: str = "go1.26.8", toolchain: str = "local",
            builds: str = "exit 0") -> dict[str, str]:  # fmt: skip
    folder = tmp_path / "fake-path"
    folder.mkdir()
    script = folder / "go"
    script.write_text(
        "#!/bin/sh\n"
        'case "$1 $2" in\n'
        f'"env GOVERSION") echo {version};;\n'
        f'"env GOTOOLCHAIN") echo {toolchain};;\n'
        f"*) {builds};;\n"
        "esac\n"
    )
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:/bin:/usr/bin"}


def test_kubernetes_is_stamped_with_its_version_and_etcd_is_not(tmp_path: Path) -> None:
    stamped = " ".join(arguments(pin(tmp_path), tmp_path / "out"))
    assert "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3" in stamped
    assert "gitMajor=1" in stamped
    assert "gitMinor=36" in stamped
    assert "-X" not in " ".join(arguments(pin(tmp_path, "etcd", "v3.6.5"), tmp_path / "out"))


def test_only_what_the_checksum_file_lists_may_be_compiled(tmp_path: Path) -> None:
    assert "-mod=readonly" in arguments(pin(tmp_path), tmp_path / "out")


def test_the_announcement_says_how_long_it_takes(tmp_path: Path) -> None:
    assert progress_text(pin(tmp_path, "kube-apiserver")) == (
        "building kube-apiserver v1.36.3 from source, about 4 minutes the first time"
    )
    assert "about 1 minute the" in progress_text(pin(tmp_path, "etcd"))


def test_no_go_and_no_download_says_what_to_install_or_set(tmp_path: Path) -> None:
    with pytest.raises(GoMissingError) as caught:
        build(pin(tmp_path), tmp_path / "out", {"PATH": ""}, ["no network", "not in the cache"])
    text = str(caught.value)
    assert "Install Go 1.26 or newer" in text
    assert "KUBEBUILDER_ASSETS" in text
    assert "no network" in text


def test_a_go_that_is_too_old_and_may_not_switch_is_named(tmp_path: Path) -> None:
    environ = fake_go(tmp_path, version="go1.22.5", toolchain="local")
    with pytest.raises(
        GoTooOldError, match=r"needs Go 1\.26, this is Go 1\.22\.5.*GOTOOLCHAIN=auto"
    ):
        build(pin(tmp_path), tmp_path / "out", environ, [])


@pytest.mark.parametrize(
    ("version", "toolchain"), [("go1.22.5", "auto"), ("go1.26.0", "local"), ("go1.27rc1", "local")]
)
def test_a_new_enough_go_or_one_that_switches_is_accepted(
    tmp_path: Path, version: str, toolchain: str
) -> None:
    environ = fake_go(tmp_path, version=version, toolchain=toolchain)
    check_compiler(pin(tmp_path), str(tmp_path / "fake-path" / "go"), environ)


def test_a_failed_build_shows_the_end_of_the_compilers_output(tmp_path: Path) -> None:
    environ = fake_go(tmp_path, builds="seq 100; echo undefined: Foo >&2; exit 3")
    with pytest.raises(BuildError) as caught:
        build(pin(tmp_path), tmp_path / "out", environ, [])
    text = str(caught.value)
    assert "go build ended with 3" in text
    assert "undefined: Foo" in text
    assert "  100" in text
    assert "  50\n" not in text


def test_a_full_disk_during_the_build_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = fake_go(tmp_path, builds="echo write x: no space left on device >&2; exit 1")
    with pytest.raises(DiskFullError, match="GOCACHE"):
        build(pin(tmp_path), tmp_path / "out", environ, [])
    assert "failed after" in capsys.readouterr().err


def test_progress_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(pin(tmp_path), tmp_path / "out", fake_go(tmp_path), [])
    output = capsys.readouterr()
    assert output.out == ""
    assert "building kubectl v1.36.3 from source" in output.err
    assert re.search(r"done after \d+ s\n$", output.err)
