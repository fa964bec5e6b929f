"""Generated blocks in hand-written pages, from `<!-- generated: name -->` to its end mark."""

import re
from collections.abc import Callable, Mapping, Sequence

from asyncjob_dev.errors import DevError

GENERATED = "generated"
"""The mark of what follows from the code alone; what was measured has another."""

Blocks = Mapping[str, Callable[[], str]]


class OpenBlockError(DevError):
    """A block has no end mark, so it would never be made again."""


def fill(page: str, blocks: Blocks, mark: str = GENERATED) -> str:
    """Return the page with every such block made again; raises KeyError on an unknown name."""
    return _block(mark).sub(
        lambda found: f"{found['open']}{blocks[found['name']]()}\n{found['close']}", page
    )


def names(page: str) -> list[str]:
    """Return the names of the page's generated blocks; raises OpenBlockError."""
    found = [block["name"] for block in _block(GENERATED).finditer(page)]
    begun = re.findall(rf"^<!-- {GENERATED}: (.+) -->$", page, re.MULTILINE)
    if found != begun:
        raise OpenBlockError(f"an end mark <!-- /{GENERATED} --> is missing: {', '.join(begun)}")
    return found


def _block(mark: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<open><!-- {mark}: (?P<name>[\w.-]+) -->\n).*?(?P<close><!-- /{mark} -->)", re.DOTALL
    )


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table; cells are escaped."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()
