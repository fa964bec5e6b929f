"""What became of each mutant, written down at once: a run that is cut off has not been in vain."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from asyncjob_dev.mutants.forks import Verdict
from asyncjob_dev.mutants.mutations import Mutant
from asyncjob_dev.mutants.reach import digests

FILE: Final = Path(".mutants/verdicts.jsonl")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a mutant was noticed, and by which test where that is known."""

    verdict: Verdict
    killer: str = ""


class Record:
    """The last outcome of each mutant of the modules as they are now."""

    def __init__(self, root: Path, known: Iterable[Mutant]) -> None:
        mutants = {mutant.key: mutant for mutant in known}
        self._state = digests(root, {mutant.module for mutant in mutants.values()})
        self._file = root / FILE
        self.outcomes: dict[Mutant, Outcome] = {}
        for key, digest, verdict, killer in self._lines():
            mutant = mutants.get(key)
            if mutant is not None and digest == self._state[mutant.module]:
                self.outcomes[mutant] = Outcome(Verdict(verdict), killer)

    def _lines(self) -> Iterable[tuple[tuple[str, str, str, str, int], str, int, str]]:
        if self._file.exists():
            for line in self._file.read_text(encoding="utf-8").splitlines():
                key, digest, verdict, killer = json.loads(line)
                yield tuple(key), digest, verdict, killer

    def note(self, mutant: Mutant, outcome: Outcome) -> None:
        """Write down what became of one."""
        self.outcomes[mutant] = outcome
        digest = self._state[mutant.module]
        line = json.dumps([mutant.key, digest, int(outcome.verdict), outcome.killer])
        self._file.parent.mkdir(exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
