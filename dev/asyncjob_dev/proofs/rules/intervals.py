"""Interval notation such as `17,400-402`, of which rules ask three things: a theory of it for Z3.

No text is spelled out. What rules ask of a notation are functions of its code, of which only the
facts below are known, for notations of any length. A test holds the facts, and what is recognised
as each function, to the runtime of CEL.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, cast

import z3
from pydantic import TypeAdapter

from asyncjob.json_types import JsonObject
from asyncjob.models.array import ItemNotation
from asyncjob_dev.proofs.rules.cel import (
    Call,
    Index,
    Literal,
    Name,
    Node,
    Operation,
    parse,
)

ITEMS: Final = z3.Function("items", z3.IntSort(), z3.IntSort())
"""How many items a notation names, a range backwards counted as rules count it: `5-3` is -1."""

PARTS: Final = z3.Function("parts", z3.IntSort(), z3.IntSort())
"""How many parts there are between commas; 1 in an empty text."""

ASCENDS: Final = z3.Function("ascends", z3.IntSort(), z3.BoolSort())
"""Whether no number in it is smaller than the one before."""

FUNCTIONS: Final[Mapping[str, str]] = {
    "items": "text == '' ? 0 : text.split(',').map(part, part.contains('-')"
    " ? int(part.split('-')[1]) - int(part.split('-')[0]) + 1 : 1).sum()",
    "parts": "text.split(',').size()",
    "ascends": "text.replace('-', ',').split(',').map(bound, int(bound)).isSorted()",
}
"""How rules write each of the functions; `text` stands for any expression."""

_HOLE: Final = Name("text")


def items_of(code: z3.ArithRef) -> z3.ArithRef:
    """Return how many items the notation names."""
    return cast("z3.ArithRef", ITEMS(code))


def parts_of(code: z3.ArithRef) -> z3.ArithRef:
    """Return how many parts there are between its commas."""
    return cast("z3.ArithRef", PARTS(code))


def ascends(code: z3.ArithRef) -> z3.BoolRef:
    """Return that no number is smaller than the one before; of an empty text it is unknown."""
    return cast("z3.BoolRef", ASCENDS(code))


def facts(code: z3.ArithRef) -> z3.BoolRef:
    """Return what is known of each notation, code 0 being the empty one."""
    empty, items, parts, forwards = code == 0, items_of(code), parts_of(code), ascends(code)
    known = (
        parts >= 1,
        z3.Implies(empty, z3.And(items == 0, parts == 1)),
        z3.Implies(z3.And(z3.Not(empty), forwards), items >= parts),
        z3.Implies(z3.And(z3.Not(empty), z3.Not(forwards), parts == 1), items <= 0),
    )
    return cast("z3.BoolRef", z3.And(*known))


_PATTERN: Final = TypeAdapter(ItemNotation).json_schema()["pattern"]


def is_notation(schema: JsonObject) -> bool:
    """Return whether texts of this schema are interval notation."""
    return bool(schema.get("pattern") == _PATTERN)


def written(items: int, parts: int, start: int, *, forwards: bool) -> str:
    """Return a notation of so many items and parts, whose numbers begin near `start`.

    Different starts give different texts as long as they are farther apart than the items.
    """
    if forwards:
        singles = [f"{start + 2 * place}" for place in range(parts - 1)]
        first, left = start + 2 * (parts - 1), items - (parts - 1)
        return ",".join((*singles, f"{first}-{first + left - 1}" if left > 1 else f"{first}"))
    if parts == 1:
        return f"{start + 1 - items}-{start}"
    singles = [f"{start + 2 * place}" for place in reversed(range(parts - 1))]
    first, left = start + 2 * parts, items - (parts - 1)
    backwards = f"{first}-{first + left - 1}" if left > 1 else f"{first + 1 - left}-{first}"
    return ",".join((backwards, *singles))


@lru_cache(maxsize=4096)
def recognised(node: Node) -> tuple[str, Node] | None:
    """Return which function of which expression this is, None if it is none of them."""
    for name, text in FUNCTIONS.items():
        bound: list[Node] = []
        if _fits(parse(text), node, bound) and all(one == bound[0] for one in bound):
            return name, bound[0]
    return None


def _fits(shape: Node, node: Node, bound: list[Node]) -> bool:
    """Return whether the tree has this shape; what stands in its hole is appended to `bound`."""
    if shape == _HOLE:
        bound.append(node)
        return True
    match shape, node:
        case Call(name, target, arguments), Call(other, of, given):
            pairs = [*zip(arguments, given, strict=False), *_if_there(target, of)]
            same = name == other and len(arguments) == len(given)
        case Operation(name, arguments), Operation(other, given):
            pairs = list(zip(arguments, given, strict=False))
            same = name == other and len(arguments) == len(given)
        case Index(of, key, False), Index(of_too, key_too, False):
            pairs, same = [(of, of_too), (key, key_too)], True
        case _:
            return shape == node
    return same and all(_fits(one, two, bound) for one, two in pairs)


def _if_there(target: Node | None, other: Node | None) -> list[tuple[Node, Node]]:
    """Return both targets of a call; nothing fits where only one has a target."""
    if target is None or other is None:
        return [] if target is other else [(Literal.of(None), Name(""))]
    return [(target, other)]
