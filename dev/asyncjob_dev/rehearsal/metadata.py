"""What a wheel and a source archive say of themselves: project page, classifiers, licence, size."""

import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

LARGEST_BYTES: Final = 2_000_000
"""Of a wheel or source archive; they have no more than Python and data of the catalogue."""

WANTED_CLASSIFIERS: Final = ("Development Status :: ", "Programming Language :: Python :: 3.")
_ABSOLUTE: Final = ("https://", "http://", "#", "mailto:")


def wheel_problems(path: Path) -> Iterator[str]:
    """Yield what is wrong with a wheel, in words."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        yield from metadata_problems(Parser().parsestr(wheel.read(metadata).decode()))
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        yield "no licence file"
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    yield from (f"{one}/py.typed is missing" for one in packages if f"{one}/py.typed" not in names)
    yield from _size_problem(path)


def source_problems(path: Path) -> Iterator[str]:
    """Yield what is wrong with a source archive."""
    with tarfile.open(path) as source:
        names = [name.partition("/")[2] for name in source.getnames()]
    yield from (f"no {one}" for one in ("LICENSE", "README.md", "PKG-INFO") if one not in names)
    yield from (f"{name} is no source" for name in names if name.endswith((".pyc", ".so")))
    yield from _size_problem(path)


def metadata_problems(metadata: Message) -> Iterator[str]:
    """Yield what the metadata lack, or have that a project page cannot show."""
    if metadata["License-Expression"] != "Apache-2.0":
        yield f"License-Expression is {metadata['License-Expression']}"
    classifiers = metadata.get_all("Classifier", [])
    for wanted in WANTED_CLASSIFIERS:
        if not any(one.startswith(wanted) for one in classifiers):
            yield f"no classifier {wanted}…"
    for needed in ("Summary", "Requires-Python", "Keywords"):
        if not metadata[needed]:
            yield f"no {needed}"
    if metadata["Description-Content-Type"] != "text/markdown":
        yield "no project page in Markdown"
    yield from (
        f"the link {one} leads nowhere on a project page"
        for one in relative_links(str(metadata.get_payload()))
    )


def relative_links(page: str) -> list[str]:
    """Return the links and pictures of a page that are good in the repository alone."""
    found: list[str] = []
    for block in MarkdownIt().parse(page):
        for token in block.children or ():
            target = token.attrGet("href") or token.attrGet("src")
            if target and not str(target).startswith(_ABSOLUTE):
                found.append(str(target))
    return found


def unconditional_needs(path: Path) -> list[str]:
    """Return what a wheel needs without any extra, by name."""
    with zipfile.ZipFile(path) as wheel:
        name = next(one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(name).decode())
    lines: Sequence[str] = metadata.get_all("Requires-Dist", [])
    plain = (line for line in lines if "extra ==" not in line)
    return sorted(line.partition(">")[0].partition("=")[0].strip() for line in plain)


def _size_problem(path: Path) -> Iterator[str]:
    size = path.stat().st_size
    if size > LARGEST_BYTES:
        yield f"{size:,} bytes, more than {LARGEST_BYTES:,}"
