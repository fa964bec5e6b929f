"""Programs out of a Debian package that is downloaded and unpacked, but not installed.

So it needs no root, and nothing is started: the package of Prometheus would run it as a service.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.progress import Progress

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
        with tempfile.TemporaryDirectory() as name, Progress(f"downloading {PACKAGE} {version}"):
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
