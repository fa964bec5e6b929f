"""YAML from anybody: what its aliases make of it is bounded before any of it is built.

An alias stands for all that its anchor holds, so a page of text can stand for more than any memory
has. The parser keeps one copy; whoever walks through the values sees each.
"""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from asyncjob.json_types import Json

MOST: Final = 4 * 2**20
"""Characters of a text, and of what it says with its aliases written out. The parser is written in
Python and takes ten seconds for them; JSON has no such bound."""

DEEPEST: Final = 300
"""Levels. Aliases of aliases can go deeper than any text."""

LONGEST_NUMBER: Final = 100
"""Characters. Base 60, which YAML has, would keep the parser busy for minutes with one number."""

_TIMES: Final = "tag:yaml.org,2002:timestamp"
_NOT_IN_JSON: Final = frozenset(
    {_TIMES, *(f"tag:yaml.org,2002:{kind}" for kind in ("binary", "omap", "pairs", "set"))}
)
_NUMBERS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


class TooLargeError(ValueError):
    """The text, or what it says, is beyond what is read."""


class _Loader(yaml.SafeLoader):
    """Leaves times as text, as JSON and kubectl have them, and weighs each node as it comes."""

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 - as its base has it
        first: [(tag, test) for tag, test in tests if tag != _TIMES]
        for first, tests in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._weights: dict[yaml.Node, tuple[int, int]] = {}
        self._total = 0

    def documents(self) -> Iterator[Json]:
        """Yield one document after the other."""
        while self.check_node():
            node = self.get_node()
            assert node is not None  # or there was nothing to check
            self._total += self._weights[node][0]
            self._check(self._total, 0)
            self._weights.clear()
            yield self._built(node)

    def _built(self, node: yaml.Node) -> Json:
        try:
            value: Json = self.construct_document(node)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError("a tag (!!…) stands before what it does not fit") from error
        return value

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, and weigh it: its parts have been composed, and weighed, before."""
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if node is None:
            return None
        if not is_alias:
            self._weights[node] = self._weighed(node)
        elif node not in self._weights:
            raise TooLargeError("an alias stands for what it is a part of")
        return node

    def _weighed(self, node: yaml.Node) -> tuple[int, int]:
        """Return how many characters it stands for, and how many levels."""
        if node.tag in _NOT_IN_JSON:
            raise ValueError(f"JSON has no !!{node.tag.rpartition(':')[2]}; write it as text")
        if isinstance(node, yaml.ScalarNode):
            if node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
                raise TooLargeError(f"a number of more than {LONGEST_NUMBER} characters")
            return 1 + len(node.value), 0
        parts = [self._weights[part] for part in _parts(node)]
        weight = 1 + sum(weight for weight, _ in parts)
        depth = 1 + max((depth for _, depth in parts), default=0)
        self._check(weight, depth)
        return weight, depth

    def _check(self, weight: int, depth: int) -> None:
        if weight > MOST:
            raise TooLargeError(
                f"more than {MOST >> 20} MiB once its aliases are written out; "
                "submit it in parts, or as JSON lines"
            )
        if depth > DEEPEST:
            raise TooLargeError(f"nested more than {DEEPEST} levels deep")


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    parts: list[yaml.Node] = node.value
    return parts


def values(text: str) -> Iterator[Json]:
    """Yield the documents of a text; raises yaml.YAMLError, ValueError or RecursionError."""
    if len(text) > MOST:
        raise TooLargeError(
            f"more than {MOST >> 20} MiB of YAML; submit it in parts, or as JSON lines"
        )
    loader = _Loader(text)
    try:
        yield from loader.documents()
    finally:
        loader.dispose()
