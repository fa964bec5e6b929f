"""YAML from untrusted files.

An alias stands for all that its anchor holds, so a page of text can expand beyond any memory: size
and depth with all aliases written out are checked before a value is built.
"""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from asyncjob.json_types import Json

MAX_CHARACTERS: Final = 4 * 2**20
"""Characters of a text, and of what it says with its aliases written out. The parser is written in
Python and takes ten seconds for them; JSON has no such bound."""

MAX_DEPTH: Final = 300
"""Levels. Aliases of aliases can go deeper than any text."""

MAX_NUMBER_LENGTH: Final = 100
"""Characters. Base 60, which YAML has, would keep the parser busy for minutes with one number."""

MAX_SHOWN_KEY: Final = 63
"""Characters of a key that a message repeats."""

_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_TIMESTAMP_TAG: Final = "tag:yaml.org,2002:timestamp"
_NON_JSON_TAGS: Final = frozenset(
    {_TIMESTAMP_TAG, *(f"tag:yaml.org,2002:{kind}" for kind in ("binary", "omap", "pairs", "set"))}
)
_KEYS_IN_OTHER_WORDS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "null")
)
"""Types of which one value can be written in several ways."""

_NUMBER_TAGS: Final = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


class YamlTooLargeError(ValueError):
    """The text, or what it says, is beyond what is read."""


class _BoundedLoader(yaml.SafeLoader):
    """Leaves times as text, as JSON and kubectl have them, and weighs each node as it comes."""

    yaml_implicit_resolvers: dict[str, Any] = {  # noqa: RUF012 - as its base has it
        first: [(tag, test) for tag, test in tests if tag != _TIMESTAMP_TAG]
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
            self._check_limits(self._total, 0)
            self._weights.clear()
            yield self.construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - as its base has it
        """Build one value; raises ValueError where its tag and what stands after it do not fit."""
        try:
            return super().construct_object(node, deep=deep)
        except (LookupError, TypeError, AttributeError) as error:
            tag = node.tag.removeprefix(_TAG_PREFIX)[:MAX_SHOWN_KEY]
            line = node.start_mark.line + 1
            raise ValueError(
                f"the tag !!{tag} does not fit the value after it (line {line})"
            ) from error

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node, and weigh it: its parts have been composed, and weighed, before."""
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if node is None:
            return None
        if not is_alias:
            self._weights[node] = self._measure(node)
        elif node not in self._weights:
            raise YamlTooLargeError("an alias refers to a value that contains it")
        return node

    def _measure(self, node: yaml.Node) -> tuple[int, int]:
        """Return how many characters it stands for, and how many levels."""
        if node.tag in _NON_JSON_TAGS:
            raise ValueError(f"JSON has no !!{node.tag.rpartition(':')[2]}; write it as text")
        if isinstance(node, yaml.ScalarNode):
            if node.tag in _NUMBER_TAGS and len(node.value) > MAX_NUMBER_LENGTH:
                raise YamlTooLargeError(f"a number of more than {MAX_NUMBER_LENGTH} characters")
            return 1 + len(node.value), 0
        if isinstance(node, yaml.MappingNode):
            self._check_unique_keys(node)
        parts = [self._weights[part] for part in _child_nodes(node)]
        weight = 1 + sum(weight for weight, _ in parts)
        depth = 1 + max((depth for _, depth in parts), default=0)
        self._check_limits(weight, depth)
        return weight, depth

    def _check_unique_keys(self, node: yaml.MappingNode) -> None:
        """Raise for a key that comes twice, be it written in two ways, as 1, 0x1 and "1" are."""
        seen: set[object] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE_TAG:
                names = {key.value}
                if key.tag in _KEYS_IN_OTHER_WORDS:
                    names.add(self.construct_object(key))
                if not seen.isdisjoint(names):
                    line = key.start_mark.line + 1
                    shown = key.value[:MAX_SHOWN_KEY]
                    raise ValueError(
                        f"the key {shown!r} is given twice in one object (line {line})"
                    )
                seen |= names

    def _check_limits(self, weight: int, depth: int) -> None:
        if weight > MAX_CHARACTERS:
            raise YamlTooLargeError(
                f"more than {MAX_CHARACTERS >> 20} MiB once its aliases are written out; "
                "submit it in parts, or as JSON lines"
            )
        if depth > MAX_DEPTH:
            raise YamlTooLargeError(f"nested more than {MAX_DEPTH} levels deep")


def _child_nodes(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    parts: list[yaml.Node] = node.value
    return parts


def load_documents(text: str) -> Iterator[Json]:
    """Yield the documents of a text; raises yaml.YAMLError, ValueError or RecursionError."""
    if len(text) > MAX_CHARACTERS:
        raise YamlTooLargeError(
            f"more than {MAX_CHARACTERS >> 20} MiB of YAML; submit it in parts, or as JSON lines"
        )
    loader = _BoundedLoader(text)
    try:
        yield from loader.documents()
    finally:
        loader.dispose()
