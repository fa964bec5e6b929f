"""The list of mutants that no test can notice, each with the reason."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from asyncjob_dev.mutants.mutations import Mutant

LIST: Final = Path("tests/mutants.toml")


@dataclass(frozen=True, slots=True)
class Survivor:
    """An entry of the list."""

    module: str
    function: str
    line: str
    change: str
    number: int
    reason: str

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """Return the key of the mutant it is about."""
        return self.module, self.function, self.line, self.change, self.number


def read_survivors(file: Path) -> list[Survivor]:
    """Read the list."""
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("survivor", [])
    return [Survivor(**{"function": "", "number": 0} | entry) for entry in entries]


def read_tested_from_afar(file: Path) -> set[str]:
    """Return the modules whose mutants are mostly noticed by tests of other modules."""
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("tested_from_afar", [])
    return {entry["module"] for entry in entries}


def entry_for(mutant: Mutant) -> str:
    """Return the entry to write for a mutant, but for its reason."""
    fields = {"module": mutant.module, "function": mutant.function, "line": mutant.line}
    lines = ["[[survivor]]", *(f"{name} = {_quoted(value)}" for name, value in fields.items())]
    lines.append(f"change = {_quoted(mutant.change)}")
    if mutant.number:
        lines.append(f"number = {mutant.number}")
    return "\n".join([*lines, 'reason = ""'])


def _quoted(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def outdated(survivors: Iterable[Survivor], known: Iterable[Mutant]) -> list[Survivor]:
    """Return the entries whose mutant there is no longer."""
    keys = {mutant.key for mutant in known}
    return [entry for entry in survivors if entry.key not in keys]
