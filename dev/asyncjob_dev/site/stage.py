"""What the renderer gets: pages with the links of the site, and one for each file linked to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncjob_dev.errors import SiteError
from asyncjob_dev.site.links import DOCS, PAGE, PICTURES, place, relinked, targets
from asyncjob_dev.site.navigation import Entry, Section, missing, navigation

_LANGUAGES: Final = {
    ".py": "python",
    ".yaml": "yaml",
    ".toml": "toml",
    ".json": "json",
    ".sh": "bash",
    ".go": "go",
}
_MOST_SHOWN: Final = 2_000
"""Lines of a file; nobody reads a longer one on a page."""


@dataclass(frozen=True)
class Staged:
    """The files of the site by their place, and the navigation for the renderer."""

    texts: dict[str, str]
    copies: dict[str, Path]
    navigation: list[dict[str, Any]]


def stage(root: Path) -> Staged:
    """Read the documentation of the repository; raises `SiteError` for links and pages astray."""
    pages, others = _collect(root)
    entries = navigation(pages)
    if left_out := missing(entries, pages):
        raise SiteError("no navigation leads to", left_out)

    def path_of(path: str) -> str:
        return f"{path}/README.md" if f"{path}/README.md" in pages else path

    texts = {place(path): relinked(path, text, path_of) for path, text in pages.items()}
    copies = {}
    for path in sorted(others):
        if path.endswith(PICTURES):
            copies[place(path)] = root / path
        else:
            texts[place(path)] = _shown(root, path)
    return Staged(texts, copies, [_for_renderer(entry) for entry in entries])


def _collect(root: Path) -> tuple[dict[str, str], set[str]]:
    """Return all pages with their texts, and the other files and folders that they link to."""
    found = [file.relative_to(root).as_posix() for file in sorted((root / DOCS).rglob(f"*{PAGE}"))]
    pages: dict[str, str] = {}
    others: set[str] = set()
    astray = []
    while found:
        page = found.pop()
        if page in pages:
            continue
        pages[page] = (root / page).read_text(encoding="utf-8")
        for target in targets(page, pages[page]):
            path = f"{target.path}/README.md"
            path = path if (root / path).is_file() else target.path
            if path.startswith("..") or not (root / path).exists():
                astray.append(f"{page}: {target.path} is not there")
            elif path.endswith(PAGE):
                found.append(path)
            else:
                others.add(path)
    if astray:
        raise SiteError("links lead to nothing", astray)
    return pages, others


def _shown(root: Path, path: str) -> str:
    """Return a page that shows a file, or the names in a folder; the search leaves it out."""
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n# `{path}`\n\n"
    if (root / path).is_dir():
        names = sorted(one.name for one in (root / path).iterdir() if one.name[0] not in "._")
        return head + "".join(f"- `{name}`\n" for name in names)
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if len(lines) > _MOST_SHOWN:
        return f"{head}The file has {len(lines)} lines; it is in the repository.\n"
    ticks = max((len(run) for run in re.findall(r"`{3,}", "\n".join(lines))), default=2) + 1
    fence = "`" * max(ticks, 3)
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return "\n".join([f"{head}{fence}{language}", *lines, fence, ""])


def _for_renderer(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, Section):
        return {entry.title: [_for_renderer(one) for one in entry.entries]}
    return {entry.title: place(entry.path)}


def settings(staged: Staged, base: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the renderer's configuration."""
    extra = {**base.get("extra", {}), "version": {"provider": "mike", "default": version}}
    return {**base, "nav": staged.navigation, "extra": extra}
