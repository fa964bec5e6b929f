"""Entries of the catalogue as text for people. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Final

from asyncjob.cli.output.tables import Cell, Table, row, styled
from asyncjob.explanations.texts import Explanation
from asyncjob.json_types import Json

MAX_WIDTH: Final = 100
"""Columns of a paragraph; longer lines are hard to read."""

_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)]+?)(?:\.md)?(?:#[^)]*)?\)")
"""A link to a page, which is called as in the documentation: not everybody has its files."""


def explanation_lines(entry: Explanation, *, colour: bool, width: int | None) -> Iterator[str]:
    """Return an entry line by line: what it means, why it exists, what to do, an example."""
    heading = "heading" if colour else ""
    name = f"{entry.code}: {entry.title}" if entry.title else entry.code
    status = f", HTTP {entry.status}" if entry.status else ""
    yield f"{_painted(name, heading)} ({entry.kind}{status})"
    columns = min(width or MAX_WIDTH, MAX_WIDTH)
    for title, text in (("", entry.means), ("Why", entry.why), ("What to do", entry.do)):
        yield ""
        if title:
            yield _painted(title, heading)
        yield from _paragraphs(text, columns)
    yield ""
    yield _painted("Example", heading)
    yield from (f"  {line}".rstrip() for line in entry.example.splitlines())
    yield ""
    yield f"In the documentation: {entry.page_title}. All codes: asyncjob explain"


def _painted(text: str, colour: str) -> str:
    return styled(text, colour) if colour else text


def _paragraphs(text: str, columns: int) -> Iterator[str]:
    plain = _LINK.sub(r"\1 (page \2)", text).replace("`", "")
    for line in plain.splitlines():
        indent = "    " if line.startswith("- ") else "  "
        yield from wrap(
            line,
            columns,
            initial_indent="  ",
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]


def summary(entry: Explanation) -> str:
    """Return what it means in one line of plain text."""
    return " ".join(_LINK.sub(r"\1", entry.means).replace("`", "").split())


def summary_tables(entries: Sequence[Explanation]) -> Iterator[tuple[str, Table]]:
    """Return a table of codes for each kind, with its name."""
    longest = max((len(one.code) for one in entries), default=0)
    for kind, group in groupby(entries, key=lambda one: one.kind):
        rows = [row(Cell(one.code), summary(one)) for one in group]
        yield kind.value, Table((kind.value.upper(), "MEANS"), rows, (longest,))


def to_object(entry: Explanation) -> dict[str, Json]:
    """Return the entry as JSON; Markdown stays as it is."""
    return {
        "code": entry.code,
        "kind": entry.kind.value,
        **({"title": entry.title} if entry.title else {}),
        **({"status": entry.status} if entry.status else {}),
        "means": entry.means,
        "why": entry.why,
        "do": entry.do,
        "example": entry.example,
        "documented": entry.address,
    }
