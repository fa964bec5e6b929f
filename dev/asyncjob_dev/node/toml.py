"""Writes TOML: the standard library only reads it. Pure."""

import json
from typing import Any


def to_toml(document: dict[str, Any]) -> str:
    """Return a document of tables, lists of strings, strings, numbers and truth values as TOML."""
    return "\n".join(_table((), document)) + "\n"


def _table(path: tuple[str, ...], table: dict[str, Any]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    header = [f"[{'.'.join(map(json.dumps, path))}]"] if path and plain else []
    # JSON's way to write these is TOML's way, too.
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in plain.items()]
    below = [
        line
        for key, value in table.items()
        if isinstance(value, dict)
        for line in _table((*path, key), value)
    ]
    return [*header, *lines, *below]
