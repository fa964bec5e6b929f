"""What is published: the list of distributions, and how their files are built."""

import hashlib
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncjob_dev.errors import DevError


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution: its name, its folder in the tree, and the programs that it brings."""

    name: str
    folder: str
    programs: tuple[str, ...] = ()

    def project(self, root: Path) -> dict[str, Any]:
        """Return the table [project]."""
        text = (root / self.folder / "pyproject.toml").read_text(encoding="utf-8")
        project: dict[str, Any] = tomllib.loads(text)["project"]
        return project

    def wheel(self, root: Path, folder: Path) -> Path:
        """Return where its wheel is once it is built."""
        return folder / f"{self._stem(root)}-py3-none-any.whl"

    def source(self, root: Path, folder: Path) -> Path:
        """Return where its source archive is once it is built."""
        return folder / f"{self._stem(root)}.tar.gz"

    def _stem(self, root: Path) -> str:
        return f"{self.name.replace('-', '_')}-{self.project(root)['version']}"


DISTRIBUTIONS: Final = (
    Distribution("asyncjob-sdk", "sdk", ("asyncjob", "kubectl-asyncjob")),
    Distribution("asyncjob-operator", "operator", ("asyncjob-operator", "asyncjob-gateway")),
    Distribution("asyncjob-worker", "worker-image", ("asyncjob-worker",)),
    Distribution("asyncjob-dev", "dev"),
)
"""In an order in which they can be published: each after those that it needs."""


def build(
    root: Path,
    out: Path,
    source_date_epoch: str,
    distributions: Sequence[Distribution] = DISTRIBUTIONS,
) -> None:
    """Build wheels and source archives; `source_date_epoch` is the time that is written in them."""
    for one in distributions:
        run(
            [sys.executable, "-m", "hatchling", "build", "-d", str(out.absolute())],
            cwd=root / one.folder,
            env={**os.environ, "SOURCE_DATE_EPOCH": source_date_epoch},
        )


def build_wheel(tree: Path, out: Path) -> None:
    """Build the wheel of an unpacked source archive."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], cwd=tree)


def file_names(wheel: Path) -> set[str]:
    """Return the names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def digests(folder: Path) -> dict[str, str]:
    """Return name → SHA-256 of the files of a folder."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != ".gitignore"
    }


class StepError(DevError):
    """A program that a step runs has failed."""


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    accept: tuple[int, ...] = (0,),
) -> str:
    """Run a program and return what it says; raises StepError with its last words."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in accept:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise StepError(f"{' '.join(command)} ended with {done.returncode}: {said}")
    return done.stdout + done.stderr


def commit_time(root: Path) -> str:
    """Return the time of the last commit in seconds, which all files of a release carry."""
    return run(["git", "log", "-1", "--format=%ct"], cwd=root).strip()
