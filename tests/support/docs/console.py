"""The commands of a page: what follows `$ ` in its `console` blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands(page: Path) -> Iterator[str]:
    """Yield the commands, in order."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                yield line[2:]
