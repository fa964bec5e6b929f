"""The site's navigation, read from the index of the documentation.

`docs/README.md` lists all pages for readers on GitHub; the site shows that list beside each page.
A link to the README.md of a folder brings the pages that this README lists.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob_dev.site.links import PAGE, targets

INDEX: Final = "docs/README.md"
ALL_PAGES: Final = "## All pages\n"
"""The heading in the index from which on it lists pages."""

_LINK: Final = re.compile(r"\[((?:[^\[\]`]|`[^`]*`)+)\]\(([^)\s]+)\)")
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A title with pages and sections below it; a page is its path in the repository."""

    title: str
    entries: "tuple[Entry, ...]"


@dataclass(frozen=True)
class Leaf:
    """A page, by what the navigation calls it."""

    title: str
    path: str


Entry = Leaf | Section


def navigation(pages: Mapping[str, str]) -> tuple[Entry, ...]:
    """Return the navigation; `pages` has the text of each page by its path in the repository."""
    text = pages[INDEX].partition(ALL_PAGES)[2]
    sections = [
        Section(head.strip(), tuple(_entries(body, pages)))
        for head, _, body in (part.partition("\n") for part in text.split("\n### ")[1:])
    ]
    return (Leaf("Home", INDEX), *sections)


def missing(entries: tuple[Entry, ...], pages: Mapping[str, str]) -> list[str]:
    """Return the pages that are in no navigation."""
    return sorted(set(pages) - {leaf.path for leaf in leaves(entries)})


def leaves(entries: tuple[Entry, ...]) -> Iterator[Leaf]:
    """Yield every page of the navigation."""
    for entry in entries:
        if isinstance(entry, Section):
            yield from leaves(entry.entries)
        else:
            yield entry


def title_of(text: str) -> str:
    """Return the first heading of a page, without marks."""
    found = _TITLE.search(text)
    return re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", found[1]).strip() if found else ""


def _entries(body: str, pages: Mapping[str, str]) -> Iterator[Entry]:
    """Yield what a part of the index lists: items, in groups if a line `Group:` is above them."""
    label, group = "", list[Entry]()
    for block in re.split(r"\n(?=- |\s*\n)", body):
        item = " ".join(block.split())
        if not item.startswith("- "):
            if item:
                yield from _grouped(label, group)
                label, group = (item[:-1] if item.endswith(":") else ""), []
            continue
        found = [entry for entry in _links(item, pages) if entry]
        head = item[2:].partition("[")[0].strip()
        if head.endswith(":") and len(found) > 1:
            group.append(Section(head[:-1], tuple(found)))
        else:
            group += found
    yield from _grouped(label, group)


def _grouped(label: str, entries: list[Entry]) -> Iterator[Entry]:
    if label and entries:
        yield Section(label, tuple(entries))
    else:
        yield from entries


def _links(item: str, pages: Mapping[str, str]) -> Iterator[Entry | None]:
    for text, target in _LINK.findall(item):
        if "://" in target or not target.partition("#")[0].endswith(PAGE):
            continue
        path = posixpath.normpath(posixpath.join("docs", target.partition("#")[0]))
        title = _spoken(text)
        folder = posixpath.dirname(path)
        if posixpath.basename(path) == "README.md" and path in pages:
            below = dict.fromkeys(
                one.path
                for one in targets(path, pages[path])
                if posixpath.dirname(one.path) == folder and one.path in pages
            )
            below.pop(path, None)
            if below:
                children = (Leaf(title_of(pages[one]), one) for one in below)
                yield Section(title, (Leaf(title, path), *children))
                continue
        yield Leaf(title, path)


def _spoken(text: str) -> str:
    """Return a link's text as a title: without article or marks, with a capital letter."""
    plain = re.sub(r"^(the|a|an) ", "", text.replace("`", ""))
    return plain[:1].upper() + plain[1:]
