"""Downloaded programs.

The official archive of Kubernetes' test binaries, checked against a pinned sum, and Prometheus out
of Debian's package, unpacked but not installed. A machine without network has to fail within
seconds, because a build is the next step.
"""

import hashlib
import http.client
import json
import queue
import shutil
import subprocess
import tarfile
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.errors import ChecksumMismatchError, DownloadError
from asyncjob_dev.progress import ProgressLine

CONNECT_TIMEOUT = 5.0
CHUNK = 1 << 20

Opener = Callable[[str], BinaryIO]


@dataclass(frozen=True)
class PinnedArchive:
    """The pinned archives."""

    version: str
    tools: tuple[str, ...]
    url: str
    member: str
    sha512: Mapping[str, str]


def read_pinned_archive() -> PinnedArchive:
    """Read the pins shipped with this package."""
    text = files("asyncjob_dev.binaries").joinpath("envtest.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    del data["comment"]
    return PinnedArchive(**{**data, "tools": tuple(data["tools"])})


def open_url(url: str) -> BinaryIO:
    """Open for reading, or raise `DownloadError` after a few seconds.

    The time-out of a socket does not cover name resolution, which may hang without a network:
    hence the thread.
    """
    answers: queue.SimpleQueue[BinaryIO | Exception] = queue.SimpleQueue()

    def open_it() -> None:
        try:
            answers.put(urllib.request.urlopen(url, timeout=CONNECT_TIMEOUT))  # noqa: S310
        except (OSError, http.client.HTTPException) as error:
            answers.put(error)

    threading.Thread(target=open_it, name="download", daemon=True).start()
    with suppress(queue.Empty):
        answer = answers.get(timeout=2 * CONNECT_TIMEOUT)
        if not isinstance(answer, Exception):
            return answer
        raise DownloadError(f"{url} cannot be fetched: {getattr(answer, 'reason', answer)}")
    raise DownloadError(f"{url} did not answer within {2 * CONNECT_TIMEOUT:g} s")


class ArchiveDownload:
    """Puts all tools of the release into the cache at once."""

    def __init__(
        self, cache: BinaryCache, target: str, release: PinnedArchive, opener: Opener = open_url
    ) -> None:
        self.release = release
        self._cache = cache
        self._target = target
        self._open = opener

    def path(self, tool: str) -> Path | None:
        """Return where the tool belongs in the cache; None when the release has none for us."""
        checksum = self.release.sha512.get(self._target)
        if checksum is None or tool not in self.release.tools:
            return None
        return self._cache.path(tool, self.release.version, self._target, checksum[:12])

    def install(self) -> None:
        """Download, check, unpack; raises `DownloadError` or `ChecksumMismatchError`."""
        release = self.release
        url = release.url.format(version=release.version, platform=self._target)
        packed = self._cache.draft(self._cache.root / "downloads" / "envtest.tar.gz")
        try:
            with ProgressLine(f"downloading etcd, kube-apiserver, kubectl {release.version}"):
                actual = self._download(url, packed)
            if actual != release.sha512[self._target]:
                raise ChecksumMismatchError(url, release.sha512[self._target], actual)
            self._unpack(packed)
        finally:
            packed.unlink(missing_ok=True)

    def _download(self, url: str, packed: Path) -> str:
        digest = hashlib.sha512()
        with self._open(url) as source, self._cache.translate_errors(), packed.open("wb") as copy:
            while chunk := _read_chunk(source, url):
                digest.update(chunk)
                copy.write(chunk)
        return digest.hexdigest()

    def _unpack(self, packed: Path) -> None:
        with tarfile.open(packed) as archive, self._cache.translate_errors():
            for tool in self.release.tools:
                final = self.path(tool)
                source = archive.extractfile(self.release.member.format(tool=tool))
                assert final is not None
                assert source is not None
                draft = self._cache.draft(final)
                draft.write_bytes(source.read())
                self._cache.install(draft, final)


def _read_chunk(source: BinaryIO, url: str) -> bytes:
    try:
        return source.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"{url} broke off: {error}") from error


PACKAGE = "prometheus"
DEBIAN_TOOLS = ("prometheus", "promtool")
APT_TIMEOUT = 120.0


class DebianPackage:
    """The package as this machine's apt knows it, verified by apt."""

    def __init__(self, cache: BinaryCache, target: str, environ: Mapping[str, str]) -> None:
        self._cache = cache
        self._target = target
        self._environ = environ

    def version(self) -> str | None:
        """Return the version that apt would download, None where it knows none."""
        if not all(shutil.which(one, path=self._environ.get("PATH")) for one in _NEEDED):
            return None
        said = self._run("apt-cache", "show", "--no-all-versions", PACKAGE) or ""
        found = [line.partition(": ")[2] for line in said.splitlines() if line[:9] == "Version: "]
        return found[0] if found else None

    def path(self, tool: str, version: str) -> Path:
        """Return where the tool belongs in the cache."""
        return self._cache.path(tool, version.replace(":", "-"), self._target, "debian")

    def install(self, version: str) -> bool:
        """Put the tools into the cache; returns whether that went well."""
        with (
            tempfile.TemporaryDirectory() as name,
            ProgressLine(f"downloading {PACKAGE} {version}"),
        ):
            folder = Path(name)
            self._run("apt-get", "download", f"{PACKAGE}={version}", cwd=folder)
            for package in folder.glob("*.deb"):
                self._run("dpkg-deb", "--extract", str(package), str(folder))
                return all(
                    self._install_tool(folder / "usr" / "bin" / tool, version)
                    for tool in DEBIAN_TOOLS
                )
        return False

    def _install_tool(self, unpacked: Path, version: str) -> bool:
        if not unpacked.is_file():
            return False
        final = self.path(unpacked.name, version)
        draft = self._cache.draft(final)
        with self._cache.translate_errors():
            shutil.copyfile(unpacked, draft)
        self._cache.install(draft, final)
        return True

    def _run(self, *argv: str, cwd: Path | None = None) -> str | None:
        try:
            done = subprocess.run(
                argv,
                cwd=cwd,
                env=dict(self._environ),
                capture_output=True,
                text=True,
                timeout=APT_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None


_NEEDED = ("apt-cache", "apt-get", "dpkg-deb")
