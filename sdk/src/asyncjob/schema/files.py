"""A folder of generated files: written, or checked for drift."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folder:
    """The text of each file; of what is there `owns` says which files are generated."""

    texts: Mapping[str, str]
    owns: str

    def stale(self, at: Path) -> list[str]:
        """Return the files that differ, are missing, or should not be there."""
        there = {path.name: path.read_text(encoding="utf-8") for path in at.glob(self.owns)}
        names = sorted({*there, *self.texts})
        return [name for name in names if there.get(name) != self.texts.get(name)]

    def write(self, at: Path) -> None:
        """Bring the folder into line."""
        at.mkdir(parents=True, exist_ok=True)
        for name in self.stale(at):
            if name in self.texts:
                (at / name).write_text(self.texts[name], encoding="utf-8")
            else:
                (at / name).unlink()
