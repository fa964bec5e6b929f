"""The keys of a values.yaml with the comments above them, by their place in the text.

Knows YAML's nodes and nothing of what the values mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommentedKey:
    """One key: its path, its value, and the comment directly above it as one line."""

    path: KeyPath
    value: Any
    comment: str


def commented_keys(text: str) -> list[CommentedKey]:
    """Return every key of every block mapping, outer ones first; flow mappings are values."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.splitlines()
    return list(_walk(node, (), lines)) if isinstance(node, yaml.MappingNode) else []


def _walk(node: yaml.MappingNode, at: KeyPath, lines: Sequence[str]) -> Iterator[CommentedKey]:
    for key, value in node.value:
        path = (*at, str(key.value))
        yield CommentedKey(path, _plain(value), _above(lines, key.start_mark.line))
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _walk(value, path, lines)


def _plain(node: yaml.Node) -> Any:
    return yaml.SafeLoader("").construct_object(node, deep=True)


def _above(lines: Sequence[str], line: int) -> str:
    found: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("#").strip())
    return " ".join(found)
