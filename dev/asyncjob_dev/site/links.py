"""Where each file of the repository is on the site, and links as they have to read there.

Pages are written for GitHub: links are relative, and lead to code, manifests and pages outside of
`docs/` as well. What a page links to becomes part of the site, so that it is there without the
repository, in the version that the page speaks of.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

DOCS: Final = "docs/"
PAGE: Final = ".md"
PICTURES: Final = (".svg", ".png")

_FENCE: Final = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
_CODE_OR_TARGET: Final = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))|(?P<before>\]\()(?P<target>[^)\s]+)"
)
_ELSEWHERE: Final = re.compile(r"^([a-z][a-z0-9+.-]*:|//|#)", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """A file or folder of the repository, and the anchor in it."""

    path: str
    anchor: str


def place(path: str) -> str:
    """Return where a page, a picture, or another file or folder of the repository is on the site.

    A folder's README.md is its index; files other than pages and pictures get a page each.
    """
    if not path.startswith(DOCS):
        folder, name = posixpath.split(path)
        if not name.endswith(PAGE):
            return f"source/{path}{PAGE}"
        path = posixpath.join("project", folder, name.lower() if name != "README.md" else name)
    elif not path.endswith((PAGE, *PICTURES)):
        return f"source/{path}{PAGE}"
    folder, name = posixpath.split(path.removeprefix(DOCS))
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


def targets(page: str, text: str) -> Iterator[Target]:
    """Yield what a page links to in the repository."""
    for line in _prose(text):
        for found in _CODE_OR_TARGET.finditer(line):
            if found["target"] and not _ELSEWHERE.match(found["target"]):
                yield _target(page, found["target"])


def relinked(page: str, text: str, path_of: Callable[[str], str]) -> str:
    """Return the text with its links as they have to read where the page is on the site.

    `path_of` says which path of the repository a link to a path means: a folder's is its README.md.
    """
    here = posixpath.dirname(place(page))

    def rewrite(found: re.Match[str]) -> str:
        if not found["target"] or _ELSEWHERE.match(found["target"]):
            return found[0]
        target = _target(page, found["target"])
        there = posixpath.relpath(place(path_of(target.path)), here)
        return f"{found['before']}{there}{target.anchor}"

    return "".join(
        _CODE_OR_TARGET.sub(rewrite, line) if prose else line for prose, line in _lines(text)
    )


def _target(page: str, link: str) -> Target:
    path, hash_, anchor = link.partition("#")
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    return Target(joined, hash_ + anchor)


def _prose(text: str) -> Iterator[str]:
    return (line for prose, line in _lines(text) if prose)


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """Yield each line, and whether it is prose; the lines of code blocks are not."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line.rstrip("\n"))
        if found and not fence:
            fence = found[1]
            yield False, line
        elif found and found[1].startswith(fence) and not found[2].strip():
            fence = ""
            yield False, line
        else:
            yield not fence, line
