"""CEL as a tree: a parser of its syntax, without any meaning.

The rules of the API server are generated as CEL. The translator reads the tree, and refuses what it
does not know; the runtime that evaluates rules has a parser of its own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from asyncjob_dev.errors import DevError


class CelSyntaxError(DevError):
    """The text is not CEL as it is understood here."""


class CelUnknownError(DevError):
    """A part of CEL that the translator does not know, and so refuses."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, number, truth value or null."""

    value: "Constant"
    kind: str
    """Name of its type, because 0 and false are equal in Python."""

    @classmethod
    def of(cls, value: "Constant") -> "Literal":
        """Return it with its kind."""
        return cls(value, type(value).__name__)


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """`of.name`, or `of.?name` if it is optional."""

    of: "Node"
    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """`of[key]`, or `of[?key]` if it is optional."""

    of: "Node"
    key: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`name(arguments)`, or `target.name(arguments)`."""

    name: str
    target: "Node | None"
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with one or two operands, or `?:` with three."""

    operator: str
    operands: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map."""

    entries: tuple[tuple["Node", "Node"], ...]


Constant: TypeAlias = str | int | float | bool | None
Node: TypeAlias = Literal | Name | Field | Index | Call | Operation | ListOf | MapOf

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^'\\]|\\.)*')
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>\|\||&&|==|!=|<=|>=|\.\?|\[\?|[-+*<>!?:.,(){}\[\]])
    )""",
    re.VERBOSE,
)
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_RELATIONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    """Return the tree of an expression."""
    parser = _Parser(tuple(_tokens(text)))
    node = parser.expression()
    parser.expect("")
    return node


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            raise CelSyntaxError(f"no CEL from here on: {text[position : position + 40]!r}")
        yield found.lastgroup, found[found.lastgroup]
        position = found.end()


class _Parser:
    """Recursive descent; each method reads one level of precedence."""

    def __init__(self, tokens: tuple[tuple[str, str], ...]) -> None:
        self._tokens = (*tokens, ("end", ""))
        self._position = 0

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _at(self, *signs: str) -> bool:
        kind, text = self._tokens[self._position]
        return kind != "text" and text in signs

    def _take(self, *signs: str) -> str | None:
        return self._next()[1] if self._at(*signs) else None

    def expect(self, sign: str) -> None:
        """Read this sign, or raise."""
        if not self._at(sign):
            found = self._tokens[self._position][1]
            raise CelSyntaxError(f"expected {sign!r} and found {found!r}")
        self._position += 1

    def expression(self) -> Node:
        """Read `condition ? then : otherwise`, the loosest."""
        condition = self._either()
        if not self._take("?"):
            return condition
        then = self._either()
        self.expect(":")
        return Operation("?:", (condition, then, self.expression()))

    def _either(self) -> Node:
        node = self._both()
        while self._take("||"):
            node = Operation("||", (node, self._both()))
        return node

    def _both(self) -> Node:
        node = self._relation()
        while self._take("&&"):
            node = Operation("&&", (node, self._relation()))
        return node

    def _relation(self) -> Node:
        node = self._sum()
        while operator := self._take(*_RELATIONS):
            node = Operation(operator, (node, self._sum()))
        return node

    def _sum(self) -> Node:
        node = self._product()
        while operator := self._take("+", "-"):
            node = Operation(operator, (node, self._product()))
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self._take("*"):
            node = Operation("*", (node, self._unary()))
        return node

    def _unary(self) -> Node:
        if self._take("!"):
            return Operation("!", (self._unary(),))
        if self._take("-"):
            return Operation("negate", (self._unary(),))
        return self._member()

    def _member(self) -> Node:
        node = self._primary()
        while sign := self._take(".", ".?", "[", "[?"):
            if sign in {"[", "[?"}:
                node = Index(node, self.expression(), optional=sign == "[?")
                self.expect("]")
                continue
            name = self._name()
            if sign == "." and self._take("("):
                node = Call(name, node, self._listed(")"))
            else:
                node = Field(node, name, optional=sign == ".?")
        return node

    def _name(self) -> str:
        kind, text = self._next()
        if kind != "name":
            raise CelSyntaxError(f"expected a name and found {text!r}")
        return text

    def _primary(self) -> Node:
        kind, text = self._next()
        node: Node
        match kind, text:
            case "text", _:
                node = Literal.of(re.sub(r"\\(.)", r"\1", text[1:-1]))
            case "number", _:
                node = Literal.of(float(text) if "." in text else int(text))
            case "name", ("true" | "false" | "null"):
                node = Literal.of(_CONSTANTS[text])
            case "name", _:
                node = Call(text, None, self._listed(")")) if self._take("(") else Name(text)
            case _, "(":
                node = self.expression()
                self.expect(")")
            case _, "[":
                node = ListOf(self._listed("]"))
            case _, "{":
                node = self._map()
            case _:
                raise CelSyntaxError(f"unexpected {text!r}")
        return node

    def _listed(self, end: str) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while not self._take(end):
            if nodes:
                self.expect(",")
            nodes.append(self.expression())
        return tuple(nodes)

    def _map(self) -> MapOf:
        entries: list[tuple[Node, Node]] = []
        while not self._take("}"):
            if entries:
                self.expect(",")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression()))
        return MapOf(tuple(entries))
