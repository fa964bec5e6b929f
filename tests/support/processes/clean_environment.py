"""An environment with what a distribution asks for and nothing else, made without a package index.

It has links to the files of the distributions that are installed here, and of ours the sources.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.processes.workers import ROOT

OURS = {"asyncjob-sdk": "sdk", "asyncjob-worker": "worker-image", "asyncjob-operator": "operator"}


@dataclass(frozen=True)
class CleanEnvironment:
    """Where its packages are, and the names of what was installed besides ours."""

    packages: Path
    sources: tuple[Path, ...]
    names: frozenset[str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in it."""
        paths = os.pathsep.join(map(str, [*self.sources, self.packages]))
        kept = {
            name: os.environ[name]
            for name in ("PATH", "PYTHONDONTWRITEBYTECODE")
            if name in os.environ
        }
        return subprocess.run(
            [sys.executable, "-S", *arguments],
            env={**kept, "PYTHONPATH": paths, "HOME": str(self.packages)},
            cwd=self.packages,
            capture_output=True,
            text=True,
            check=False,
        )


def environment_with(folder: Path, *requirements: str) -> CleanEnvironment:
    """Lay out an environment that has these requirements and what they need."""
    chosen = dict(needed(requirements))
    for name, found in chosen.items():
        if name not in OURS:
            _link(found, folder)
    sources = tuple(ROOT / part / "src" for name, part in OURS.items() if name in chosen)
    return CleanEnvironment(folder, sources, frozenset(chosen) - set(OURS))


def needed(requirements: tuple[str, ...]) -> Iterator[tuple[str, Distribution]]:
    """Yield each distribution that is needed, some more than once."""
    pending, seen = list(requirements), set[str]()
    while pending:
        line = pending.pop()
        if line in seen:
            continue
        seen.add(line)
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        found = distribution(name)
        yield name, found
        extras = requirement.extras or {""}
        for need in map(Requirement, _requirements_of(name, found, extras)):
            if any(not need.marker or need.marker.evaluate({"extra": one}) for one in extras):
                need.marker = None
                pending.append(str(need))


def _requirements_of(name: str, found: Distribution, extras: set[str]) -> list[str]:
    """Return what it asks for; ours by the tree, which may be newer than what is installed."""
    if name not in OURS:
        return found.requires or []
    project: dict[str, Any] = tomllib.loads(
        (ROOT / OURS[name] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    by_extra = project.get("optional-dependencies", {})
    return [*project["dependencies"], *(need for one in extras for need in by_extra.get(one, ()))]


def _link(found: Distribution, folder: Path) -> None:
    for file in found.files or ():
        if ".." in file.parts or file.suffix == ".pyc":
            continue
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(str(file.locate()))
