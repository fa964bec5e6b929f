"""CEL translated to Z3: what a rule says about objects of which nothing is known.

Each expression becomes a value and the condition under which it is an error. What the rules do not
use is refused, so that no rule is translated by a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, TypeAlias, cast

import z3

from asyncjob_dev.proofs.rules.cel import (
    Call,
    CelUnknownError,
    Field,
    Index,
    ListOf,
    Literal,
    MapOf,
    Name,
    Node,
    Operation,
    parse,
)
from asyncjob_dev.proofs.rules.symbols import (
    FALSE,
    TRUE,
    Amount,
    Bool,
    Choice,
    Code,
    Entry,
    Maybe,
    Number,
    Record,
    Sequence,
    Symbol,
    Truth,
    all_of,
    any_of,
    either,
    is_same,
    is_text,
    negation,
)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """The value of an expression where `fails` is false, an error where it is true."""

    value: Symbol
    fails: Bool = FALSE


Scope: TypeAlias = Mapping[str, Term]
Atoms: TypeAlias = Mapping[Node, Symbol]


def obeyed(text: str, scope: Scope, atoms: Atoms) -> Bool:
    """Return the condition under which a rule is obeyed: true, and no error."""
    term = Translation(atoms).term(parse(text), scope)
    return all_of(_truth(term), negation(term.fails))


class Translation:
    """Translates with these values for what rules ask about the request."""

    def __init__(self, atoms: Atoms) -> None:
        self._atoms = atoms

    def term(self, node: Node, scope: Scope) -> Term:  # noqa: C901, PLR0911  # a case for each kind
        """Return the meaning of an expression."""
        if isinstance(node, Call | Field | Index) and node in self._atoms:
            return Term(self._atoms[node])
        match node:
            case Literal():
                return _literal(node)
            case Name(name):
                if name not in scope:
                    raise CelUnknownError(f"the rule reads {name}, which is not given here")
                return scope[name]
            case Field(of, name, optional):
                return _select(self.term(of, scope), name, optional=optional)
            case Index(of, key, optional):
                return self._index(of, key, scope, optional=optional)
            case Operation():
                return self._operation(node, scope)
            case Call():
                return self._call(node, scope)
            case ListOf(()):
                return Term(Sequence(z3.IntVal(0)))
            case MapOf(()):
                return Term(Record({}))
            case ListOf() | MapOf():
                raise CelUnknownError("a list or map is not translated here")

    def _index(self, of: Node, key: Node, scope: Scope, *, optional: bool) -> Term:
        if isinstance(of, MapOf):
            return self._lookup(of, self.term(key, scope), scope)
        source, place = self.term(of, scope), self.term(key, scope)
        if isinstance(source.value, Record):
            chosen = _only_option(place)
            return _select(source, chosen, optional=optional)
        if optional or not isinstance(source.value, Sequence):
            raise CelUnknownError("only lists and objects are indexed")
        return _entry_at(source.value, place, source.fails)

    def _lookup(self, table: MapOf, key: Term, scope: Scope) -> Term:
        """Return the value of a map that is written in the rule."""
        if not isinstance(key.value, Choice):
            raise CelUnknownError("a map is indexed by a text of any content")
        options: dict[str, Bool] = {}
        for name, value in table.entries:
            when = is_text(key.value, _only_option(self.term(name, scope)))
            found = _only_option(self.term(value, scope))
            options[found] = any_of(options.get(found, FALSE), when)
        return Term(Choice(options), any_of(key.fails, negation(any_of(*options.values()))))

    def _operation(self, node: Operation, scope: Scope) -> Term:
        if node.operator == "in":
            return self._membership(node.operands[0], node.operands[1], scope)
        if node.operator == "?:":
            return self._alternative(*node.operands, scope=scope)
        terms = [self.term(operand, scope) for operand in node.operands]
        match node.operator:
            case "&&":
                return _both(*terms)
            case "||":
                return _negated(_both(*map(_negated, terms)))
            case "!":
                return _negated(terms[0])
        return _binary(node.operator, *terms)

    def _alternative(self, condition: Node, then: Node, otherwise: Node, *, scope: Scope) -> Term:
        """Return `?:`; what a constant condition leaves out may be of another kind of object."""
        when = self.term(condition, scope)
        if z3.is_true(_truth(when)) or z3.is_false(_truth(when)):
            return self.term(then if z3.is_true(_truth(when)) else otherwise, scope)
        return _conditional(when, self.term(then, scope), self.term(otherwise, scope))

    def _membership(self, member: Node, group: Node, scope: Scope) -> Term:
        value = self.term(member, scope)
        if not isinstance(group, ListOf):
            present = self.term(group, scope)
            if not isinstance(present.value, Record):
                raise CelUnknownError("`in` needs a list that is written in the rule, or an object")
            entry = present.value.fields[_only_option(value)]
            return Term(Truth(entry.present), any_of(value.fails, present.fails))
        if not isinstance(value.value, Choice | Code):
            raise CelUnknownError("`in` needs a text")
        texts = [_only_option(self.term(item, scope)) for item in group.items]
        return Term(Truth(any_of(*(is_text(value.value, one) for one in texts))), value.fails)

    def _call(self, node: Call, scope: Scope) -> Term:  # noqa: PLR0911  # a case for each function
        match node:
            case Call("has", None, (Field(of, name, False),)):
                selected = _select(self.term(of, scope), name, optional=True)
                return Term(Truth(cast("Maybe", selected.value).present), selected.fails)
            case Call("dyn", None, (inner,)):
                return self.term(inner, scope)
            case Call("of", Name("optional"), (inner,)):
                held = self.term(inner, scope)
                return Term(Maybe(TRUE, held.value), held.fails)
            case Call("orValue", target, (default,)) if target is not None:
                return _or_value(self.term(target, scope), self.term(default, scope))
            case Call("size", target, ()) if target is not None:
                return _size(self.term(target, scope))
            case Call("all", ListOf(numbers), (Name(name), body)):
                each = [{**scope, name: self.term(one, scope)} for one in numbers]
                return reduce(_both, (self.term(body, one) for one in each))
            case Call("all", target, (Name(name), body)) if target is not None:
                return self._all_keys(self.term(target, scope), name, body, scope)
        raise CelUnknownError(f"the translation does not know {node.name}()")

    def _all_keys(self, target: Term, name: str, body: Node, scope: Scope) -> Term:
        """Return that the body holds for the name of each field that is present."""
        if not isinstance(target.value, Record):
            raise CelUnknownError("all() needs an object, or a list that is written in the rule")
        each = []
        for key, entry in target.value.fields.items():
            said = self.term(body, {**scope, name: Term(Choice({key: TRUE}))})
            absent = Term(Truth(negation(entry.present)))
            each.append(_negated(_both(_negated(absent), _negated(said))))
        return reduce(_both, each, Term(Truth(TRUE), target.fails))


def _literal(node: Literal) -> Term:
    match node.value:
        case bool(value):
            return Term(Truth(TRUE if value else FALSE))
        case int(value):
            return Term(Amount(z3.IntVal(value)))
        case str(value):
            return Term(Choice({value: TRUE}))
    raise CelUnknownError(f"the translation does not know {node.value!r}")


def _truth(term: Term) -> Bool:
    if not isinstance(term.value, Truth):
        raise CelUnknownError(f"{type(term.value).__name__} is used as a truth value")
    return term.value.is_true


def _number(term: Term) -> Number:
    if not isinstance(term.value, Amount):
        raise CelUnknownError(f"{type(term.value).__name__} is used as a number")
    return term.value.number


def _only_option(term: Term) -> str:
    """Return the text of a constant."""
    if isinstance(term.value, Choice) and len(term.value.options) == 1:
        return next(iter(term.value.options))
    raise CelUnknownError("a text that is written in the rule is needed here")


def _negated(term: Term) -> Term:
    return Term(Truth(negation(_truth(term))), term.fails)


def _both(left: Term, right: Term) -> Term:
    """Return `&&`: false if either is, whatever the other; else an error if either is."""
    refutes = any_of(
        all_of(negation(left.fails), negation(_truth(left))),
        all_of(negation(right.fails), negation(_truth(right))),
    )
    fails = all_of(any_of(left.fails, right.fails), negation(refutes))
    return Term(Truth(negation(refutes)), fails)


def _conditional(condition: Term, then: Term, otherwise: Term) -> Term:
    when = _truth(condition)
    fails = any_of(
        condition.fails,
        all_of(when, then.fails),
        all_of(negation(when), otherwise.fails),
    )
    return Term(either(when, then.value, otherwise.value), fails)


_ORDER: Final = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def _binary(operator: str, left: Term, right: Term) -> Term:
    fails = any_of(left.fails, right.fails)
    match operator:
        case "==":
            return Term(Truth(is_same(left.value, right.value)), fails)
        case "!=":
            return Term(Truth(negation(is_same(left.value, right.value))), fails)
        case "+" if isinstance(left.value, Choice) and isinstance(right.value, Choice):
            return Term(_joined(left.value, right.value), fails)
        case "+":
            return Term(Amount(_number(left) + _number(right)), fails)
        case "-":
            return Term(Amount(_number(left) - _number(right)), fails)
        case _ if operator in _ORDER:
            return Term(Truth(_ORDER[operator](_number(left), _number(right))), fails)
    raise CelUnknownError(f"the translation does not know {operator}")


def _joined(left: Choice, right: Choice) -> Choice:
    options: dict[str, Bool] = {}
    for one, when in left.options.items():
        for other, also in right.options.items():
            both = one + other
            options[both] = any_of(options.get(both, FALSE), all_of(when, also))
    return Choice(options)


def _select(source: Term, name: str, *, optional: bool) -> Term:
    value, fails = source.value, source.fails
    inherited = TRUE
    if isinstance(value, Maybe):
        inherited, value, optional = value.present, value.value, True
    if not isinstance(value, Record):
        raise CelUnknownError(f"{name} is read of {type(value).__name__}")
    if name not in value.fields:
        raise CelUnknownError(f"the schema has no field {name}")
    entry: Entry = value.fields[name]
    if optional:
        return Term(Maybe(all_of(inherited, entry.present), entry.value), fails)
    return Term(entry.value, any_of(fails, negation(entry.present)))


def _entry_at(sequence: Sequence, place: Term, fails: Bool) -> Term:
    if not sequence.entries:
        raise CelUnknownError("an entry is read of a list that is not spelled out")
    number = _number(place)
    outside = any_of(cast("Bool", number < 0), cast("Bool", number >= sequence.size))
    found = sequence.entries[-1]
    for at in reversed(range(len(sequence.entries) - 1)):
        here = z3.simplify(number == at)
        found = either(cast("Bool", here), sequence.entries[at], found)
    return Term(found, any_of(fails, place.fails, outside))


def _or_value(source: Term, default: Term) -> Term:
    if not isinstance(source.value, Maybe):
        raise CelUnknownError("orValue() needs an optional value")
    present, value = source.value.present, source.value.value
    if isinstance(value, Sequence):
        if not isinstance(default.value, Sequence):
            raise CelUnknownError("orValue() of a list needs a list")
        size = cast("Number", z3.If(present, value.size, z3.IntVal(0)))
        return Term(Sequence(size, value.entries, value.content), source.fails)
    if isinstance(default.value, Record) and not default.value.fields:
        return Term(_present_if(present, value), source.fails)
    fails = any_of(source.fails, all_of(negation(present), default.fails))
    return Term(either(present, value, default.value), fails)


def _present_if(condition: Bool, value: Symbol) -> Record:
    """Return the map, or an empty one."""
    if not isinstance(value, Record):
        raise CelUnknownError("orValue() of a map needs a map")
    return Record(
        {
            key: Entry(all_of(condition, entry.present), entry.value)
            for key, entry in value.fields.items()
        }
    )


def _size(source: Term) -> Term:
    match source.value:
        case Sequence(size):
            return Term(Amount(size), source.fails)
        case Record(fields):
            present = [z3.If(entry.present, 1, 0) for entry in fields.values()]
            return Term(Amount(cast("Number", z3.Sum(z3.IntVal(0), *present))), source.fails)
    raise CelUnknownError("size() needs a list or map")
