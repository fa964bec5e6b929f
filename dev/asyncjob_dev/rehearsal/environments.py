"""Clean environments: which Pythons there are, and one with our wheels and what they need."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from asyncjob_dev.rehearsal.distributions import run

SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
PROGRAMS: Final = Path(sys.executable).parent


def find_python(version: str, environ: Mapping[str, str]) -> Path | None:
    """Return a Python of that minor version that starts: on PATH, pyenv's, or uv's."""
    pyenv = Path(environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [
        shutil.which(f"python{version}", path=environ.get("PATH")),
        *(str(one) for one in sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True)),
        _known_to_uv(version),
    ]
    return next((Path(one) for one in candidates if one and _is_version(one, version)), None)


def _known_to_uv(version: str) -> str:
    command = [str(PROGRAMS / "uv"), "python", "find", "--no-python-downloads", version]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _is_version(python: str, version: str) -> bool:
    script = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


@dataclass(frozen=True, slots=True)
class CleanEnvironment:
    """A virtual environment without the clone: nothing in it but what was installed."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.program("python")

    @property
    def site_packages(self) -> Path:
        """Where its packages are."""
        (found,) = (self.folder / "lib").glob("python3*/site-packages")
        return found

    def program(self, name: str) -> Path:
        """Return the path of a program of it."""
        return self.folder / "bin" / name

    def run(self, name: str, *arguments: str, accept: tuple[int, ...] = (0,)) -> str:
        """Run a program of it, where nothing of the clone is."""
        command = [str(self.program(name)), *arguments]
        return run(command, cwd=self.folder, env=self.variables, accept=accept)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its programs: no other Python's, and no kubeconfig."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        path = f"{self.folder / 'bin'}{os.pathsep}{kept.get('PATH', '')}"
        return {**kept, "PATH": path, "KUBECONFIG": os.devnull, "HOME": str(self.folder)}

    def install(self, *what: str) -> None:
        """Install with what is needed."""
        self._pip("install", "--quiet", *what)

    def uninstall(self, names: Iterable[str]) -> None:
        """Uninstall by pip itself, which is what people use."""
        run([str(PROGRAMS / "pip"), f"--python={self.python}", "uninstall", "--yes", *names])

    def check(self) -> None:
        """Raise StepError where two packages do not go together."""
        self._pip("check")

    def names(self) -> set[str]:
        """Return what is installed, by name."""
        found = distributions(path=[str(self.site_packages)])
        return {one.name.lower().replace("_", "-") for one in found}

    def _pip(self, command: str, *arguments: str) -> None:
        run([str(PROGRAMS / "uv"), "pip", command, f"--python={self.python}", *arguments])


def new_environment(folder: Path, python: Path) -> CleanEnvironment:
    """Make an empty environment."""
    run([str(PROGRAMS / "uv"), "venv", "--quiet", f"--python={python}", str(folder)])
    return CleanEnvironment(folder)


def left_behind(environment: CleanEnvironment) -> list[str]:
    """Return the files of ours that are still there."""
    return sorted(
        str(one.relative_to(environment.folder)) for one in environment.folder.rglob("*asyncjob*")
    )
