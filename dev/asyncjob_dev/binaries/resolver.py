"""Finds each program, or makes it, in a fixed order.

KUBEBUILDER_ASSETS; for kubectl and Prometheus the one on PATH; the cache; the wheel of programs, if
it is installed: whoever asked for it is not to wait for a download; the official archive, or for
Prometheus Debian's package; a build.
"""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from asyncjob_dev.binaries.cache import BinaryCache, is_executable
from asyncjob_dev.binaries.downloads import ArchiveDownload, DebianPackage, read_pinned_archive
from asyncjob_dev.binaries.gobuild import Finished, Target, build_all
from asyncjob_dev.binaries.installed import PROGRAMS_EXTRA, Binary, ProgramsWheel
from asyncjob_dev.binaries.pins import (
    MONITORING_TOOLS,
    SERVER_TOOLS,
    TOOLS,
    TOOLS_DIR,
    VERSIONS_DIR,
    Pin,
    read_pin,
)
from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.errors import AssetsFolderMissingError, DownloadError
from asyncjob_dev.platforms import platform_name
from asyncjob_dev.progress import note

MINOR_VERSION_SKEW = 1
KUBECTL_TIMEOUT = 10.0


def kubectl_on_path(server_minor: int, environ: Mapping[str, str]) -> tuple[Path, str] | None:
    """Return a suitable kubectl and its version, or None."""
    found = shutil.which("kubectl", path=environ.get("PATH"))
    if found is None:
        return None
    version = _client_version(found, environ)
    minor = minor_of(version)
    if minor is None or abs(minor - server_minor) > MINOR_VERSION_SKEW:
        return None
    return Path(found), version


def minor_of(version: str) -> int | None:
    """Return the 32 of `v1.32.4-vendor`; None for what is no version."""
    parts = version.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None


def _client_version(kubectl: str, environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [kubectl, "version", "--client", "-o", "json"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=KUBECTL_TIMEOUT,
        )
        return str(json.loads(done.stdout)["clientVersion"]["gitVersion"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return ""


Builder = Callable[[Sequence[Target], Mapping[str, str], BinaryCache, Finished], None]


class Resolver:
    """Resolves tools; remembers a failed download, so that it is tried once only.

    `target` is the platform, such as `linux-arm64`; this machine's by default.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        tools_dir: Path = TOOLS_DIR,
        target: str = "",
        archive: ArchiveDownload | None = None,
        wheel: ProgramsWheel | None = None,
        builder: Builder = build_all,
    ) -> None:
        self._environ = environ
        self._tools_dir = tools_dir
        self._target = target or platform_name()
        self._cache = BinaryCache(cache_dir(environ))
        self._archive = archive or ArchiveDownload(self._cache, self._target, read_pinned_archive())
        self._wheel = wheel or ProgramsWheel()
        self._package = DebianPackage(self._cache, self._target, environ)
        self._builder = builder
        self._offline = ""

    def resolve(self, tool: str) -> Binary:
        """Return the program, making it if need be; raises a `BinaryError` that says what helps."""
        return self.resolve_all([tool])[0]

    def resolve_all(self, tools: Sequence[str] = SERVER_TOOLS) -> list[Binary]:
        """Return all of these, by default those of a control plane without controllers.

        What has to be built is built together, as that takes less time.
        """
        pins = [read_pin(tool, self._tools_dir) for tool in tools]
        found = {pin.tool: it for pin in pins if (it := self._find(pin))}
        found |= self._from_build([pin for pin in pins if pin.tool not in found])
        return [found[tool] for tool in tools]

    def build(self, tools: Sequence[str]) -> list[Binary]:
        """Return these as they are built from their pins, whatever else there is."""
        built = self._from_build([read_pin(tool, self._tools_dir) for tool in tools])
        return [built[tool] for tool in tools]

    def _find(self, pin: Pin) -> Binary | None:
        return (
            self._from_assets(pin.tool)
            or self._from_path(pin)
            or self._from_cache(pin)
            or self._wheel.find(pin.tool)
            or self._from_archive(pin)
            or self._from_package(pin)
        )

    def _from_assets(self, tool: str) -> Binary | None:
        named = self._environ.get("KUBEBUILDER_ASSETS")
        if not named:
            return None
        folder = Path(named).absolute()
        path = folder / tool
        try:
            if not folder.is_dir():
                raise AssetsFolderMissingError(folder)
            return Binary(tool, path, "", "KUBEBUILDER_ASSETS") if is_executable(path) else None
        except OSError as error:
            raise AssetsFolderMissingError(folder, f"cannot be read: {error.strerror}") from error

    def _from_path(self, pin: Pin) -> Binary | None:
        if pin.tool in MONITORING_TOOLS:
            path = shutil.which(pin.tool, path=self._environ.get("PATH"))
            return Binary(pin.tool, Path(path), "", "PATH") if path else None
        found = kubectl_on_path(pin.minor, self._environ) if pin.tool == "kubectl" else None
        return Binary(pin.tool, found[0], found[1], "PATH") if found else None

    def _from_cache(self, pin: Pin) -> Binary | None:
        built = self._built_path(pin)
        if self._cache.has(built):
            return Binary(pin.tool, built, pin.version, "cache (built)")
        unpacked = self._archive.path(pin.tool)
        if unpacked and self._cache.has(unpacked):
            return Binary(pin.tool, unpacked, self._archive.release.version, "cache (downloaded)")
        return None

    def _from_archive(self, pin: Pin) -> Binary | None:
        if self._offline or self._archive.path(pin.tool) is None:
            return None
        with self._cache.lock("envtest"):
            if self._from_cache(pin) is None:
                try:
                    self._archive.install()
                except DownloadError as error:
                    self._offline = str(error)
                    note(f"{error}; building from source instead")
        return self._from_cache(pin)

    def _from_package(self, pin: Pin) -> Binary | None:
        version = self._package.version() if pin.tool in MONITORING_TOOLS else None
        if version is None:
            return None
        path = self._package.path(pin.tool, version)
        with self._cache.lock("debian"):
            if not self._cache.has(path) and not self._package.install(version):
                note(f"{pin.tool} {version} cannot be downloaded; building from source instead")
                return None
        return Binary(pin.tool, path, version, "Debian's package")

    def _from_build(self, pins: Sequence[Pin]) -> dict[str, Binary]:
        with contextlib.ExitStack() as locks:
            # In one order, so that no two processes wait for each other.
            for tool in sorted({pin.tool for pin in pins}):
                locks.enter_context(self._cache.lock(tool))
            final = {pin.tool: self._built_path(pin) for pin in pins}
            targets = [
                Target(
                    pin,
                    self._cache.draft(final[pin.tool]),
                    self._tried(pin.tool),
                    self._ways(pin.tool),
                )
                for pin in pins
                if not self._cache.has(final[pin.tool])
            ]

            def install(target: Target) -> None:
                self._cache.install(target.output, final[target.pin.tool])

            if targets:
                self._builder(targets, self._environ, self._cache, install)
        built = {target.pin.tool for target in targets}
        return {
            pin.tool: Binary(
                pin.tool,
                final[pin.tool],
                pin.version,
                "built" if pin.tool in built else "cache (built)",
            )
            for pin in pins
        }

    def _built_path(self, pin: Pin) -> Path:
        return self._cache.path(pin.tool, pin.version, self._target, pin.digest)

    def _tried(self, tool: str) -> list[str]:
        assets = self._environ.get("KUBEBUILDER_ASSETS")
        return [
            f"not in KUBEBUILDER_ASSETS={assets}" if assets else "KUBEBUILDER_ASSETS is not set",
            f"not in the cache {self._cache.root}",
            self._not_in_the_archive(tool),
        ]

    def _ways(self, tool: str) -> list[str]:
        release = self._archive.release
        if self._archive.path(tool) is None:
            return []
        url = release.url.format(version=release.version, platform=self._target)
        return [f"let {url} be reached", f"`pip install '{PROGRAMS_EXTRA}'`"]

    def _not_in_the_archive(self, tool: str) -> str:
        held = self._archive.release.tools
        if tool not in held:
            return f"the official archive holds only {', '.join(held)}"
        return self._offline or "there is no official archive for this platform"


@functools.cache
def default_resolver() -> Resolver:
    """Return the resolver of this process, for its environment."""
    return Resolver(os.environ)


# ---- other Kubernetes versions than the one that all tests run on


def other_versions(versions_dir: Path = VERSIONS_DIR) -> list[str]:
    """Return the minor versions that have modules, such as `1.32`; none outside of a checkout."""
    return sorted(path.name for path in versions_dir.glob("*.*") if path.is_dir())


def programs_of(version: str, environ: Mapping[str, str]) -> list[Binary]:
    """Return a control plane of that version, building what is missing; raises a `BinaryError`.

    What the version has no module of, such as etcd, is the one of `dev/tools`. KUBEBUILDER_ASSETS
    means nothing here: whoever set it meant another version.
    """
    folder = VERSIONS_DIR / version
    own = [tool for tool in TOOLS if (folder / tool).is_dir()]
    unset = {name: value for name, value in environ.items() if name != "KUBEBUILDER_ASSETS"}
    others = [tool for tool in TOOLS if tool not in own]
    return [*Resolver(unset, tools_dir=folder).build(own), *Resolver(unset).resolve_all(others)]


def assets_folder(programs: Sequence[Binary], environ: Mapping[str, str]) -> Path:
    """Return a folder with links to the programs, as KUBEBUILDER_ASSETS names one."""
    paths = "\0".join(f"{one.tool}\0{one.path}" for one in programs)
    cache = BinaryCache(cache_dir(environ))
    folder = cache.root / "kubernetes" / hashlib.sha256(paths.encode()).hexdigest()[:12]
    with cache.translate_errors():
        folder.mkdir(parents=True, exist_ok=True)
        for one in programs:
            draft = cache.draft(folder / one.tool)
            draft.unlink(missing_ok=True)
            draft.symlink_to(one.path)
            draft.replace(folder / one.tool)
    return folder
