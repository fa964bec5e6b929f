"""The texts of the catalogue, as the files in `data` have them.

A file is a page: its `title`, `intro` and `kind`, then a table for each code. What a rule requires
stands beside its CEL, or in the audit's list, and not here, so its `means` is empty until the
catalogue adds it. A code that
ends in `.*` stands for all codes of rules that begin so and have no text of their own; `<rest>` in
its texts is the part that differs.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final

_DATA: Final = "data"
_FAMILY: Final = ".*"
_REST: Final = "<rest>"


class Kind(StrEnum):
    """What a code is; the value is how it is called."""

    JOB_REASON = "reason of a job"
    CRON_REASON = "reason of a cron job"
    ARRAY_REASON = "reason of an array"
    CONDITION_REASON = "reason of a condition"
    EVENT_REASON = "reason of an Event"
    ERROR = "error"
    FINDING = "finding of the doctor"
    PROBLEM = "problem type"
    EXIT_CODE = "exit code"
    RULE = "rule"
    AUDIT_RULE = "rule of the audit"
    CHART = "refusal of the chart"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One entry of the catalogue, in Markdown; links are relative to `docs`."""

    code: str
    kind: Kind
    page: str
    """Name of the page in `docs/reference/errors`, without its suffix."""

    means: str
    why: str
    """Why it exists."""

    do: str
    """What to do."""

    example: str
    title: str = ""
    """A problem type's title."""

    status: int = 0
    """A problem type's HTTP status, and that of a rule's refusal."""

    @property
    def address(self) -> str:
        """Where the documentation has it."""
        return f"docs/reference/errors/{self.page}.md#{self.code}"

    @property
    def page_title(self) -> str:
        """How the documentation calls that page."""
        return next(page.title for page in pages() if page.name == self.page)

    @property
    def is_family(self) -> bool:
        """Return whether it stands for several rules."""
        return self.code.endswith(_FAMILY)

    def covers(self, code: str) -> bool:
        """Return whether a family has this code in it."""
        return self.is_family and code.startswith(self.code.removesuffix("*"))

    def of_family(self, code: str) -> "Explanation":
        """Return the family's text for one of its codes."""
        rest = code.removeprefix(self.code.removesuffix("*"))
        return replace(
            self,
            code=code,
            why=self.why.replace(_REST, rest),
            do=self.do.replace(_REST, rest),
            example=self.example.replace(_REST, rest),
        )


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """One file: what the page says before its entries, and the entries."""

    name: str
    title: str
    intro: str
    kind: Kind
    entries: tuple[Explanation, ...]


@cache
def pages() -> tuple[ErrorPage, ...]:
    """Return all pages, in the order of their kinds."""
    order = list(Kind)
    return tuple(sorted(_read_pages(), key=lambda page: (order.index(page.kind), page.name)))


def _read_pages() -> Iterator[ErrorPage]:
    for file in (files(__package__) / _DATA).iterdir():
        if file.name.endswith(".toml"):
            yield read_page(file.name.removesuffix(".toml"), file.read_text(encoding="utf-8"))


def read_page(name: str, text: str) -> ErrorPage:
    """Return the page that a file holds; raises TypeError on a field that is none."""
    content: dict[str, Any] = tomllib.loads(text)
    kind = Kind(content.pop("kind"))
    title, intro = content.pop("title"), content.pop("intro").strip()
    entries = tuple(_entry(code, kind, name, fields) for code, fields in content.items())
    return ErrorPage(name, title, intro, kind, entries)


def _entry(code: str, kind: Kind, page: str, fields: Mapping[str, Any]) -> Explanation:
    texts: dict[str, Any] = {"means": "", **fields}
    for key, value in texts.items():
        texts[key] = value.strip() if isinstance(value, str) else value
    return Explanation(code=code, kind=kind, page=page, **texts)


@cache
def by_code(kind: Kind) -> Mapping[str, Explanation]:
    """Return the entries of a kind, in the order of their files; families as they are."""
    return {entry.code: entry for page in pages() if page.kind is kind for entry in page.entries}


def meaning(kind: Kind, code: str) -> str:
    """Return what a code means; empty if the catalogue does not know it."""
    found = by_code(kind).get(code)
    return found.means if found else ""
