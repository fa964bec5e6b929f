"""Programs that a wheel has brought: `pip install 'asyncjob-dev[controlplane]'`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from asyncjob_dev.binaries.cache import is_executable

PROGRAMS_DISTRIBUTION = "asyncjob-dev-controlplane"
PROGRAMS_PACKAGE = PROGRAMS_DISTRIBUTION.replace("-", "_")
PROGRAMS_EXTRA = "asyncjob-dev[controlplane]"
VERSIONS = "versions.json"
"""Which version of each program the package has."""


@dataclass(frozen=True)
class Binary:
    """A program that can be run, and where it came from."""

    tool: str
    path: Path
    version: str
    source: str


class ProgramsWheel:
    """The installed package of programs; `folder` is another than the installed one's."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def find(self, tool: str) -> Binary | None:
        """Return the program, if the wheel is installed and has it."""
        folder = self._folder or _installed_folder()
        if folder is None or not is_executable(folder / "bin" / tool):
            return None
        versions: Mapping[str, str] = json.loads((folder / VERSIONS).read_text(encoding="utf-8"))
        return Binary(tool, folder / "bin" / tool, versions[tool], PROGRAMS_DISTRIBUTION)


def _installed_folder() -> Path | None:
    found = find_spec(PROGRAMS_PACKAGE)
    return Path(found.origin).parent if found and found.origin else None
