"""A folder of generated files: written, or checked for drift."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class GeneratedFolder:
    """The text of each file; of what is there `pattern` says which files are generated."""

    texts: Mapping[str, str]
    pattern: str

    def outdated(self, folder: Path) -> list[str]:
        """Return the files that differ, are missing, or should not be there."""
        there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob(self.pattern)}
        names = sorted({*there, *self.texts})
        return [name for name in names if there.get(name) != self.texts.get(name)]

    def write(self, folder: Path) -> None:
        """Bring the folder into line."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.outdated(folder):
            if name in self.texts:
                (folder / name).write_text(self.texts[name], encoding="utf-8")
            else:
                (folder / name).unlink()
