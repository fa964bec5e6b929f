"""Which tests reach which lines: measured once, and again for the test files that change."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final

IMPORT: Final = "import"


@dataclass(frozen=True, slots=True)
class Reach:
    """Which tests pass on the unchanged code, how long each takes, and what it reaches."""

    seconds: dict[str, float]
    tests_by_line: dict[str, dict[int, list[str]]]
    """Module → line → tests."""

    import_lines: dict[str, list[int]]
    """Module → the lines that imports and the collection of tests run."""

    def at_import(self, module: str, first: int, last: int) -> bool:
        """Return whether an import runs one of the lines."""
        return any(first <= line <= last for line in self.import_lines.get(module, ()))

    def tests(self, module: str, first: int, last: int) -> list[str]:
        """Return the tests that reach one of the lines, the quickest first."""
        lines = self.tests_by_line.get(module, {})
        found = {test for line in range(first, last + 1) for test in lines.get(line, ())}
        return self.by_time(found)

    def tests_of_module(self, module: str) -> list[str]:
        """Return the tests that reach any line of the module, the quickest first."""
        lines = self.tests_by_line.get(module, {})
        return self.by_time({test for tests in lines.values() for test in tests})

    def by_time(self, tests: Iterable[str]) -> list[str]:
        """Return tests in the order of the time they take."""
        return sorted(tests, key=lambda test: (self.seconds[test], test))

    def breadths(self) -> Counter[str]:
        """Return how many modules each test reaches: the fewer, the nearer it is to each."""
        return Counter(
            test
            for by_line in self.tests_by_line.values()
            for test in {test for tests in by_line.values() for test in tests}
        )

    def within(self, tests: Iterable[str], most: float) -> list[tuple[str, float]]:
        """Return the tests that begin within so many seconds, each with its own."""
        timed = self.timed(tests)
        ends = accumulate(seconds for _, seconds in timed)
        return [one for one, end in zip(timed, ends, strict=True) if end - one[1] < most]

    def near_or_quick(
        self, tests: Sequence[str], breadths: Mapping[str, int], most: float
    ) -> list[str]:
        """Return those that begin within so many seconds, the quickest or the nearest first.

        Hundreds of quick tests reach what all jobs have in common, and few of them look at it.
        """
        nearest = sorted(tests, key=breadths.__getitem__)
        chosen = {test for order in (tests, nearest) for test, _ in self.within(order, most)}
        return [test for test in tests if test in chosen]

    def timed(self, tests: Iterable[str]) -> list[tuple[str, float]]:
        """Return tests, each with the seconds it takes."""
        return [(test, self.seconds[test]) for test in tests]

    def without(self, files: Iterable[str]) -> "Reach":
        """Return what is known without the tests of these files."""
        gone = set(files)
        seconds = {test: s for test, s in self.seconds.items() if file_of(test) not in gone}
        lines = {
            module: {
                line: [test for test in tests if test in seconds] for line, tests in by.items()
            }
            for module, by in self.tests_by_line.items()
        }
        return Reach(seconds, lines, self.import_lines)

    def joined(self, other: "Reach") -> "Reach":
        """Return what both know."""
        lines = {module: dict(by_line) for module, by_line in self.tests_by_line.items()}
        for module, by_line in other.tests_by_line.items():
            known = lines.setdefault(module, {})
            for line, tests in by_line.items():
                known[line] = known.get(line, []) + tests
        modules = {*self.import_lines, *other.import_lines}
        imported = {
            module: sorted(
                {*self.import_lines.get(module, ()), *other.import_lines.get(module, ())}
            )
            for module in modules
        }
        return Reach(self.seconds | other.seconds, lines, imported)


NOTHING: Final = Reach({}, {}, {})


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def digests(root: Path, files: Iterable[str]) -> dict[str, str]:
    """Return what changes whenever a file does."""
    return {file: hashlib.sha256((root / file).read_bytes()).hexdigest() for file in files}


def store_reach(reach: Reach, file: Path, state: Mapping[str, str]) -> None:
    """Keep what was measured, with the digests of the files it was measured on."""
    file.parent.mkdir(exist_ok=True)
    numbers = {test: number for number, test in enumerate(reach.seconds)}
    lines = {
        module: {line: [numbers[test] for test in tests] for line, tests in by_line.items()}
        for module, by_line in reach.tests_by_line.items()
    }
    content = {
        "state": dict(state),
        "seconds": reach.seconds,
        "lines": lines,
        "imported": reach.import_lines,
    }
    file.write_text(json.dumps(content), encoding="utf-8")


def load_reach(
    file: Path, state: Mapping[str, str], modules: Sequence[str]
) -> tuple[Reach, list[str]]:
    """Return what is still known, and which files are to be measured: those that have changed.

    Where a module has changed, these are also the files of the tests that reached it.
    """
    if not file.exists():
        return NOTHING, list(state)
    content = json.loads(file.read_text(encoding="utf-8"))
    known = content["state"]
    tests = list(content["seconds"])
    lines = {
        module: {int(line): [tests[number] for number in by] for line, by in by_line.items()}
        for module, by_line in content["lines"].items()
    }
    reach = Reach(content["seconds"], lines, content["imported"])
    changed = {name for name in {*known, *state} if known.get(name) != state.get(name)}
    for module in changed.intersection(modules):
        changed.update(file_of(test) for test in reach.tests_of_module(module))
        reach.tests_by_line.pop(module, None)
        reach.import_lines.pop(module, None)
    return reach.without(changed), [name for name in state if name in changed]
