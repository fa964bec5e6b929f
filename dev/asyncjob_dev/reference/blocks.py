"""Generated blocks in hand-written pages, from `<!-- generated: name -->` to its end mark."""

import re
from collections.abc import Callable, Mapping, Sequence

_BLOCK = re.compile(
    r"(?P<open><!-- generated: (?P<name>[\w.-]+) -->\n).*?(?P<close><!-- /generated -->)", re.DOTALL
)

Blocks = Mapping[str, Callable[[], str]]


def fill(page: str, blocks: Blocks) -> str:
    """Return the page with every generated block made anew; raises KeyError on an unknown name."""
    return _BLOCK.sub(
        lambda found: f"{found['open']}{blocks[found['name']]()}\n{found['close']}", page
    )


def names(page: str) -> list[str]:
    """Return the names of the page's generated blocks."""
    return [found["name"] for found in _BLOCK.finditer(page)]


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table; cells are escaped."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()
