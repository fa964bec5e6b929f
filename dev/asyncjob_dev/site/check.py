"""What a built site must not have: links to nothing, lost pages, or what other hosts send."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote, urlsplit

INDEX: Final = "index.html"
_LOADED: Final = {("img", "src"), ("script", "src"), ("iframe", "src"), ("source", "srcset")}
_LOADED_BY_LINK: Final = {"stylesheet", "icon", "preconnect", "preload", "dns-prefetch", "manifest"}


@dataclass
class Html:
    """What a page refers to: links, what it loads, and the anchors it has."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.html = Html()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attrs}
        self.html.anchors |= {have[name] for name in ("id", "name") if name in have}
        for name, value in have.items():
            if (tag, name) in _LOADED:
                self.html.loaded.append(value)
        if tag == "a" and "href" in have:
            self.html.links.append(have["href"])
        elif tag == "link" and _LOADED_BY_LINK & set(have.get("rel", "").split()):
            self.html.loaded.append(have["href"])


def read(text: str) -> Html:
    """Return what the text of a page refers to."""
    reader = _Reader()
    reader.feed(text)
    return reader.html


def faults(pages: Mapping[str, str], files: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each fault; `pages` has HTML by path, `files` every path of the site."""
    read_pages = {path: read(text) for path, text in pages.items()}
    for path in sorted(set(pages) - reached(read_pages, files)):
        yield f"{path}: no way leads there from the landing page"
    for path, page in read_pages.items():
        for url in page.loaded:
            if urlsplit(url).netloc:
                yield f"{path}: loads {url} from another host"
        for url in dict.fromkeys(page.links + page.loaded):
            if not urlsplit(url).scheme and not urlsplit(url).netloc:
                yield from _astray(path, url, read_pages, files)


def _astray(path: str, url: str, pages: Mapping[str, Html], files: frozenset[str]) -> Iterator[str]:
    where = _file(path, url, files)
    anchor = unquote(urlsplit(url).fragment)
    if where is None:
        yield f"{path}: {url} leads to nothing"
    elif anchor and where in pages and anchor not in pages[where].anchors:
        yield f"{path}: {url} leads to an anchor that is not there"


def reached(pages: Mapping[str, Html], files: frozenset[str]) -> set[str]:
    """Return the pages to which links lead from the landing page, one or several."""
    there: set[str] = set()
    ahead = {INDEX} & set(pages)
    while ahead:
        page = ahead.pop()
        there.add(page)
        for url in pages[page].links:
            found = None if urlsplit(url).netloc else _file(page, url, files)
            if found and found in pages and found not in there:
                ahead.add(found)
    return there


def _file(path: str, url: str, files: frozenset[str]) -> str | None:
    """Return the file of the site that a link means, or None."""
    parts = urlsplit(url)
    if not parts.path:
        return path
    joined = posixpath.normpath(posixpath.join("/", posixpath.dirname(path), unquote(parts.path)))
    for file in (joined.lstrip("/"), posixpath.join(joined, "index.html").lstrip("/")):
        if file in files:
            return file
    return None
