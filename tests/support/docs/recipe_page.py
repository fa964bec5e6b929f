"""The console blocks of a recipe: what is typed, and what a reader is told to see."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = DOCS / "recipes"
NOT_RUN = "<!-- not run: "
"""Stands above a block that no test runs, with the reason."""

_BLOCK = re.compile(r"(?P<before>[^\n]*)\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block; `not_run` is why no test runs it, or nothing."""

    language: str
    text: str
    not_run: str = ""


@dataclass
class Step:
    """A command, and the lines that it is said to print; `…` stands for anything."""

    command: str
    printed: list[str] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        """Whether the reader is told to see an error."""
        return any(line.startswith("Error ") for line in self.printed)

    @property
    def starts_environment(self) -> bool:
        """Whether it is what starts control plane, operator and workers."""
        return self.command.startswith("make up")

    @property
    def is_setup(self) -> bool:
        """Whether tests have done it already."""
        return self.starts_environment or self.command.startswith("export ")

    def options(self) -> Mapping[str, str]:
        """Return the variables that `make up` is given."""
        return dict(word.split("=", 1) for word in self.command.split()[2:])


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        before = found["before"]
        reason = before.removeprefix(NOT_RUN).removesuffix(" -->")
        yield Block(found["language"], found["text"], reason if reason != before else "")


def steps(page: Path) -> list[Step]:
    """Return the commands of a page in order, but for blocks that are not run."""
    found: list[Step] = []
    for block in blocks(page):
        if block.language == "console" and not block.not_run:
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    found.append(Step(line[2:]))
                else:
                    found[-1].printed.append(line)
    return found


def missing_lines(wanted: list[str], printed: str) -> list[str]:
    """Return the lines that were not printed, in this order; what else was printed is fine."""
    rest = iter(printed.splitlines())
    return [line for line in wanted if not _comes_in(line, rest)]


def _comes_in(line: str, rest: Iterator[str]) -> bool:
    parts = [re.sub(r"(\\ )+", r"\\s+", re.escape(part.strip())) for part in line.split("…")]
    wanted = re.compile(r".*".join(parts))
    return any(wanted.fullmatch(one.strip()) for one in rest)
