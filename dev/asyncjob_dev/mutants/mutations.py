"""What is changed: every place of a module's syntax tree where one small change makes sense.

Left out is what no test should hold: annotations, docstrings, decorators, assertions (they narrow
types), f-strings and other texts for people.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Final

Put = Callable[[ast.AST], None]
"""Puts another node where one is."""

Edit = tuple[str, Callable[[], None]]
"""A change in words, and what makes it in the tree."""

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLS: Final = {"any": "all", "all": "any", "min": "max", "max": "min"}
_TYPING_CALLS: Final = {"TypeVar", "NewType", "cast", "ParamSpec", "Literal"}
_SKIPPED_FIELDS: Final = {"annotation", "returns", "decorator_list", "type_comment"}
_SKIPPED_NAMES: Final = {"__all__", "__slots__"}
_SKIPPED_NODES: Final = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*|")
"""Strings that mean something to programs; what has spaces is for people."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module."""

    module: str
    """The file below the root of the repository."""
    function: str
    """The outermost function that has the change; empty if it is in none."""
    line: str
    """The changed line, stripped, as the source has it: a name that survives moves."""
    change: str
    number: int
    """Which of the like changes of the function it is."""
    site: int
    """Its place in the walk through this version of the module."""
    first_line: int
    last_line: int
    """The lines by which tests are chosen."""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """Return what names the mutant in a list that outlives edits elsewhere in the file."""
        return self.module, self.function, self.line, self.change, self.number

    def __str__(self) -> str:
        """Return where and what, in one line."""
        where = f"{self.module}:{self.first_line} {self.function or 'module'}"
        return f"{where}: {self.line} [{self.change}]"


def mutants(root: Path, module: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its text."""
    source = (root / module).read_text(encoding="utf-8")
    text = source.splitlines()
    found: list[Mutant] = []
    like: Counter[tuple[str, str, str]] = Counter()
    for number, site in enumerate(_sites(ast.parse(source))):
        line = text[site.line - 1].strip()
        number_of_like = like[site.function, line, site.change]
        like[site.function, line, site.change] += 1
        found.append(
            Mutant(
                module,
                site.function,
                line,
                site.change,
                number_of_like,
                number,
                site.first_line,
                site.last_line,
            )
        )
    return found


def compile_mutant(root: Path, mutant: Mutant) -> CodeType:
    """Return the code of the mutant's module with its change."""
    return ParsedModule(root, mutant.module).compile_changed(mutant)


class ParsedModule:
    """A module's syntax tree with all places to change it: for one change, or for one in each fork.

    Parsing and finding the places takes longer than most tests.
    """

    def __init__(self, root: Path, module: str) -> None:
        self._path = root / module
        self._tree = ast.parse(self._path.read_text(encoding="utf-8"))
        self._sites = list(_sites(self._tree))

    def compile_changed(self, mutant: Mutant) -> CodeType:
        """Change the tree as the mutant is changed, and return its code."""
        self._sites[mutant.site].apply()
        tree = ast.fix_missing_locations(self._tree)
        return compile(tree, str(self._path), "exec", dont_inherit=True)


@dataclass(frozen=True, slots=True)
class _Site:
    function: str
    line: int
    first_line: int
    last_line: int
    change: str
    apply: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a walk is: names around it, the outermost function, the innermost statement."""

    names: tuple[str, ...] = ()
    function: str = ""
    lines: tuple[int, int] = (1, 1)


def _sites(tree: ast.Module) -> Iterator[_Site]:
    # Found first and only then given out: a change that is made does not move the others.
    yield from list(_walk(tree, lambda _: None, _Place()))


def _walk(node: ast.AST, put: Put, place: _Place) -> Iterator[_Site]:
    if _skipped(node):
        return
    place = _inside(node, place)
    for line, change, apply in _edits(node, put, place):
        yield _Site(place.function, line, *place.lines, change, apply)
    for field, value in ast.iter_fields(node):
        if field not in _SKIPPED_FIELDS:
            inner = _where_defined(place) if _is_default(node, field) else place
            for part, put_part in _parts(node, field, value):
                yield from _walk(part, put_part, inner)


def _parts(node: ast.AST, field: str, value: object) -> Iterator[tuple[ast.AST, Put]]:
    if isinstance(value, ast.AST):
        yield value, partial(setattr, node, field)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, ast.AST):
                yield item, partial(value.__setitem__, index)


def _is_default(node: ast.AST, field: str) -> bool:
    return isinstance(node, ast.arguments) and field in {"defaults", "kw_defaults"}


def _where_defined(place: _Place) -> _Place:
    """Return the place of default values, which are made where the function is defined."""
    outermost = place.function == ".".join(place.names)
    return replace(place, function="") if outermost else place


def _skipped(node: ast.AST) -> bool:
    if isinstance(node, _SKIPPED_NODES):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Call) and _name(node.func) in _TYPING_CALLS:
        return True
    return isinstance(node, ast.Assign) and any(_name(t) in _SKIPPED_NAMES for t in node.targets)


def _inside(node: ast.AST, place: _Place) -> _Place:
    names, function, lines = place.names, place.function, place.lines
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        names = (*names, node.name)
        if not function and not isinstance(node, ast.ClassDef):
            function = ".".join(names)
    if isinstance(node, ast.stmt):
        lines = _lines(node)
    elif isinstance(node, ast.match_case):
        lines = (node.pattern.lineno, node.body[0].lineno)
    return _Place(names, function, lines)


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """Return the lines of a simple statement, or of the head of one that has others in it."""
    match statement:
        case ast.If() | ast.While():
            return statement.lineno, statement.test.end_lineno or statement.lineno
        case ast.For() | ast.AsyncFor():
            return statement.lineno, statement.iter.end_lineno or statement.lineno
        case ast.Match():
            return statement.lineno, statement.subject.end_lineno or statement.lineno
        case ast.With() | ast.AsyncWith() | ast.Try() | ast.ClassDef():
            return statement.lineno, statement.lineno
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return statement.lineno, statement.body[0].lineno
        case _:
            return statement.lineno, statement.end_lineno or statement.lineno


def _edits(node: ast.AST, put: Put, place: _Place) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Yield the changes of a node itself, each with its line."""
    match node:
        case ast.match_case():
            if not (isinstance(node.pattern, ast.MatchAs) and node.pattern.pattern is None):
                never = partial(setattr, node, "guard", ast.Constant(value=False))
                yield node.pattern.lineno, "case never taken", never
        case ast.expr():
            for change, apply in _expression_edits(node, put, place):
                yield node.lineno, change, apply
        case ast.stmt():
            for change, apply in _statement_edits(node, put):
                yield node.lineno, change, apply


def _expression_edits(node: ast.expr, put: Put, place: _Place) -> Iterator[Edit]:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp():
            yield from _logic_edits(node, put)
        case ast.BinOp() if place.function or not isinstance(node.op, ast.BitOr):  # or of types
            yield from _operator_edits(node)
        case ast.Constant():
            yield from _constant_edits(node)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield f"{name} → {_CALLS[name]}", partial(setattr, node.func, "id", _CALLS[name])
        case ast.IfExp():
            yield from _condition_edits(node.test, partial(setattr, node, "test"))
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _filter_edits(node.generators)


def _logic_edits(node: ast.Compare | ast.BoolOp | ast.UnaryOp, put: Put) -> Iterator[Edit]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                other = _COMPARISONS[type(operator)]
                change = f"{type(operator).__name__} → {other.__name__}"
                yield change, partial(node.ops.__setitem__, index, other())
        case ast.BoolOp():
            swapped: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and/or", partial(setattr, node, "op", swapped)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "operator left out", partial(put, node.operand)


def _filter_edits(generators: list[ast.comprehension]) -> Iterator[Edit]:
    for conditions in (generator.ifs for generator in generators):
        for index, condition in enumerate(conditions):
            yield from _condition_edits(condition, partial(conditions.__setitem__, index))


def _operator_edits(node: ast.BinOp | ast.AugAssign) -> Iterator[Edit]:
    swapped = _OPERATORS.get(type(node.op))
    if swapped is not None:
        change = f"{type(node.op).__name__} → {swapped.__name__}"
        yield change, partial(setattr, node, "op", swapped())


def _constant_edits(node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        yield f"{value} → {not value}", partial(setattr, node, "value", not value)
    elif isinstance(value, int | float):
        yield f"{value} → {value + 1}", partial(setattr, node, "value", value + 1)
    elif isinstance(value, str) and _WORD.fullmatch(value):
        yield f'"{value}" → "XX{value}"', partial(setattr, node, "value", f"XX{value}")


def _condition_edits(test: ast.expr, put: Put) -> Iterator[Edit]:
    """Negate a condition, unless a change of what is in it does the same."""
    match test:
        case ast.Compare(
            ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]
        ):
            return
        case ast.UnaryOp() | ast.Constant(value=bool()):
            return
        case _:
            yield "condition negated", partial(put, ast.UnaryOp(op=ast.Not(), operand=test))


def _statement_edits(node: ast.stmt, put: Put) -> Iterator[Edit]:
    match node:
        case ast.If() | ast.While():
            yield from _condition_edits(node.test, partial(setattr, node, "test"))
        case ast.AugAssign():
            yield from _operator_edits(node)
        case ast.Return(value=ast.expr() as value):
            # Of these, a change inside them says more.
            if not isinstance(value, ast.Constant | ast.Compare | ast.BoolOp | ast.UnaryOp):
                yield "None returned", partial(setattr, node, "value", ast.Constant(value=None))
        case ast.Continue():
            yield "continue → break", partial(put, ast.copy_location(ast.Break(), node))
        case ast.Break():
            yield "break → continue", partial(put, ast.copy_location(ast.Continue(), node))
        case _ if _may_be_left_out(node):
            yield "statement left out", partial(put, ast.copy_location(ast.Pass(), node))


def _may_be_left_out(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            return True
        case _:
            return False


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""
