"""Building: what is passed to the compiler, and what its failures say."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.binaries.gobuild import (
    COMPILE_FLAGS,
    SWITCHES_SINCE,
    Target,
    build_all,
    build_arguments,
    check_compiler,
    go_environment,
    list_arguments,
)
from asyncjob_dev.binaries.packages import BuildCounts
from asyncjob_dev.binaries.pins import Pin
from asyncjob_dev.errors import (
    BinaryError,
    BuildError,
    DiskFullError,
    GoMissingError,
    GoTooOldError,
    SourcesUnreachableError,
)

ROOT = Path(__file__).parents[3]


def pin(tmp_path: Path, tool: str = "kubectl", version: str = "v1.36.3") -> Pin:
    owner = "go.etcd.io" if tool == "etcd" else "k8s.io/kubernetes"
    return Pin(tool, f"{owner}/cmd/{tool}", version, "1.26.0", tmp_path, "0123456789ab")


def fake_go(tmp_path: Path, *, version: str = "go1.26.8", toolchain: str = "local",
            lists: str = "printf 'fmt\\t\\ttrue\\t\\t\\n'",
            builds: str = "echo program >$out") -> dict[str, str]:  # fmt: skip
    folder = tmp_path / "fake-path"
    folder.mkdir()
    script = folder / "go"
    script.write_text(
        "#!/bin/sh\n"
        'for out do [ "$last" = -o ] && break; last=$out; done\n'
        'case "$1 $2" in\n'
        f'"env GOVERSION") echo {version};;\n'
        f'"env GOTOOLCHAIN") echo {toolchain};;\n'
        '"env GOPROXY") echo https://proxy.example.test;;\n'
        f'"list "*) {lists};;\n'
        '"build "*) case "$*" in *" -o "*) ;; *) echo bytes >&2; touch standard; exit 0;; esac\n'
        f"{builds};;\n"
        "esac\n"
    )
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:/bin:/usr/bin"}


def build(tmp_path: Path, environ: dict[str, str], *tools: str) -> list[str]:
    """Build them and return those that were finished."""
    done: list[str] = []
    targets = [
        Target(pin(tmp_path, tool), tmp_path / f"out-{tool}", ["no network", "not in the cache"])
        for tool in tools or ["kubectl"]
    ]
    try:
        build_all(
            targets,
            environ,
            BinaryCache(tmp_path / "cache"),
            lambda target: done.append(target.pin.tool),
        )
    except BinaryError as error:
        error.add_note(" ".join(done))
        raise
    return done


def test_kubernetes_is_stamped_with_its_version_and_etcd_is_not(tmp_path: Path) -> None:
    stamped = " ".join(build_arguments(pin(tmp_path), tmp_path / "out"))
    assert "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3" in stamped
    assert "gitMajor=1" in stamped
    assert "gitMinor=36" in stamped
    etcd = build_arguments(pin(tmp_path, "etcd", "v3.6.5"), tmp_path / "out")
    assert "-X" not in " ".join(etcd)


def test_only_what_the_checksum_file_lists_may_be_compiled(tmp_path: Path) -> None:
    assert "-mod=readonly" in COMPILE_FLAGS
    assert set(COMPILE_FLAGS) < set(build_arguments(pin(tmp_path), tmp_path / "out"))


def test_what_is_compiled_is_asked_with_the_flags_it_is_compiled_with(tmp_path: Path) -> None:
    assert set(COMPILE_FLAGS) < set(list_arguments(pin(tmp_path)))


def test_sources_and_packages_are_kept_in_our_cache_unless_go_has_been_told_where() -> None:
    environ = {"GOMODCACHE": "/modules", "GOCACHE": "", "GOGC": "50"}
    found = go_environment(environ, Path("/cache/go"), Path("/cache/go/tmp/etcd"))
    assert found["GOCACHE"] == "/cache/go/build"
    assert found["GOTMPDIR"] == "/cache/go/tmp/etcd"
    assert found["GOMODCACHE"] == "/modules"
    assert found["GOGC"] == "50"


def test_no_go_and_no_download_says_what_to_install_or_set(tmp_path: Path) -> None:
    with pytest.raises(GoMissingError) as caught:
        build(tmp_path, {"PATH": ""})
    text = str(caught.value)
    first = ".".join(map(str, SWITCHES_SINCE))
    needed = f"Go 1.26, or {first} and newer where Go may fetch its own toolchain"
    assert f"install {needed}." in text
    for page in ("README.md", "docs/tutorial/first-job.md"):
        assert needed in " ".join((ROOT / page).read_text(encoding="utf-8").split()), page
    assert "KUBEBUILDER_ASSETS" in text
    assert "no network" in text


def test_a_go_that_is_too_old_and_may_not_switch_is_named(tmp_path: Path) -> None:
    environ = fake_go(tmp_path, version="go1.22.5", toolchain="local")
    with pytest.raises(
        GoTooOldError, match=r"needs Go 1\.26, this is Go 1\.22\.5.*GOTOOLCHAIN=auto"
    ):
        build(tmp_path, environ)


@pytest.mark.parametrize(
    ("version", "toolchain"), [("go1.22.5", "auto"), ("go1.26.0", "local"), ("go1.27rc1", "local")]
)
def test_a_new_enough_go_or_one_that_switches_is_accepted(
    tmp_path: Path, version: str, toolchain: str
) -> None:
    environ = fake_go(tmp_path, version=version, toolchain=toolchain)
    check_compiler(pin(tmp_path), str(tmp_path / "fake-path" / "go"), environ)


def test_a_failed_build_shows_the_end_of_the_compilers_output(tmp_path: Path) -> None:
    environ = fake_go(tmp_path, builds="seq 100 >&2; echo undefined: Foo >&2; exit 3")
    with pytest.raises(BuildError) as caught:
        build(tmp_path, environ)
    text = str(caught.value)
    assert "go ended with 3" in text
    assert "undefined: Foo" in text
    assert "  100" in text
    assert "  50\n" not in text


def test_what_tells_of_progress_is_no_part_of_a_complaint(tmp_path: Path) -> None:
    environ = fake_go(tmp_path, builds="echo fmt >&2; echo undefined: Foo >&2; exit 3")
    with pytest.raises(BuildError) as caught:
        build(tmp_path, environ)
    assert "  fmt" not in str(caught.value)


def test_a_full_disk_during_the_build_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = fake_go(tmp_path, builds="echo write x: no space left on device >&2; exit 1")
    with pytest.raises(DiskFullError, match=r"GOCACHE.*set ASYNCJOB_CACHE.*goes on from there"):
        build(tmp_path, environ)
    assert "failed after" in capsys.readouterr().err


def test_a_network_that_fails_while_sources_are_fetched_is_named(tmp_path: Path) -> None:
    lost = "dial tcp: lookup proxy.example.test: no such host"
    environ = fake_go(tmp_path, lists=f"echo '{lost}' >&2; exit 1")
    with pytest.raises(
        SourcesUnreachableError, match=r"GOPROXY \(now https://proxy.example.test\)"
    ):
        build(tmp_path, environ)


def test_what_is_linked_when_another_fails_is_finished(tmp_path: Path) -> None:
    environ = fake_go(
        tmp_path,
        builds="case $out in *kubectl) echo undefined: Foo >&2; exit 3;; esac; echo program >$out",
    )
    with pytest.raises(BuildError, match=r"building kubectl .* failed") as caught:
        build(tmp_path, environ, "etcd", "kubectl", "kube-apiserver")
    assert caught.value.__notes__ == ["etcd"]
    assert not (tmp_path / "out-kube-apiserver").exists()


def test_what_is_compiled_when_the_network_is_lost_is_finished(tmp_path: Path) -> None:
    lost = "case $last in *kubectl) echo dial tcp: no such host >&2; exit 1;; esac"
    environ = fake_go(tmp_path, lists=lost)
    with pytest.raises(SourcesUnreachableError, match="sources of kubectl") as caught:
        build(tmp_path, environ, "etcd", "kubectl")
    assert caught.value.__notes__ == ["etcd"]


def test_the_next_begins_while_one_is_linked(tmp_path: Path) -> None:
    """The first says that it compiles its last package, and ends only once the second has begun."""
    waits = "i=0; until [ -e begun ] || [ $i = 600 ]; do i=$((i+1)); sleep 0.1; done; [ -e begun ]"
    environ = fake_go(
        tmp_path,
        builds=f"case $out in *etcd) echo go.etcd.io/cmd/etcd >&2; {waits};; *) touch begun;; esac",
    )
    assert build(tmp_path, environ, "etcd", "kubectl") == ["etcd", "kubectl"]


def test_the_whole_is_counted_as_soon_as_all_lists_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first program is compiled only once the lists of all have been read and shown."""
    monkeypatch.setattr("asyncjob_dev.progress.LOG_INTERVAL", 0.01)
    monkeypatch.setattr(BuildCounts, "text", _telling(tmp_path / "told"))
    waits = (
        "i=0; until grep -qs 'of 2 packages' told || [ $i = 600 ]; do i=$((i+1)); sleep 0.1; done"
    )
    environ = fake_go(
        tmp_path,
        lists="printf '%s\\t\\ttrue\\t\\t\\n' $last",
        builds=f"{waits}; grep -q 'of 2 packages' told || exit 1; echo >$out",
    )
    assert build(tmp_path, environ, "etcd", "kubectl") == ["etcd", "kubectl"]
    assert "of 2 packages" in capsys.readouterr().err


def _telling(told: Path) -> Callable[[BuildCounts], str]:
    text = BuildCounts.text

    def tell(counts: BuildCounts) -> str:
        said = text(counts)
        with told.open("a") as file:
            file.write(f"{said}\n")
        return said

    return tell


def test_the_standard_library_is_compiled_while_sources_are_fetched(tmp_path: Path) -> None:
    """The list, which fetches, ends only once that has begun; a program begins after its end."""
    waits = "i=0; until [ -e standard ] || [ $i = 600 ]; do i=$((i+1)); sleep 0.1; done"
    environ = fake_go(tmp_path, lists=waits, builds="[ -e standard ] && echo program >$out")
    assert build(tmp_path, environ) == ["kubectl"]


def test_nothing_is_left_among_temporary_files(tmp_path: Path) -> None:
    environ = fake_go(tmp_path, builds='touch "$GOTMPDIR/x"; ls "$GOTMPDIR" >&2; exit 1')
    left = tmp_path / "cache" / "go" / "tmp" / "kubectl" / "of-one-that-was-killed"
    left.mkdir(parents=True)
    with pytest.raises(BuildError) as caught:
        build(tmp_path, environ)
    assert "  x" in str(caught.value)
    assert left.name not in str(caught.value)
    assert not left.parent.exists()


def test_progress_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path, fake_go(tmp_path))
    output = capsys.readouterr()
    assert output.out == ""
    assert "building from source: kubectl v1.36.3" in output.err
    assert re.search(r"done after \d+ s\n$", output.err)
