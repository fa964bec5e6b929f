"""Terms: values that may be errors, and what operators and functions of CEL make of them."""

from dataclasses import dataclass
from typing import Final, cast

import z3

from asyncjob_dev.proofs.rules.cel import CelUnknownError, Literal
from asyncjob_dev.proofs.rules.intervals import ascends, items_of, parts_of
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
    as_code,
    either,
    is_same,
    negation,
)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """The value of an expression where `fails` is false, an error where it is true."""

    value: Symbol
    fails: Bool = FALSE


def is_there(target: Term, place: int) -> Term:
    """Return that the list has an entry at this place."""
    return Term(Truth(cast("Bool", cast("Sequence", target.value).size > place)))


def how_many(said: list[Term]) -> Term:
    """Return how many of these are true; all of them are evaluated."""
    count = z3.Sum(z3.IntVal(0), *(z3.If(as_truth(one), 1, 0) for one in said))
    return Term(Amount(cast("Number", count)), any_of(*(one.fails for one in said)))


def is_one(count: Term) -> Term:
    """Return that the number is 1."""
    return Term(Truth(cast("Bool", as_number(count) == 1)), count.fails)


def of_notation(name: str, notation: Term) -> Term:
    """Return what a rule asks of interval notation."""
    if not isinstance(notation.value, Choice | Code):
        raise CelUnknownError(f"{type(notation.value).__name__} is read as interval notation")
    code = as_code(notation.value).code
    match name:
        case "items":
            return Term(Amount(items_of(code)), notation.fails)
        case "parts":
            return Term(Amount(parts_of(code)), notation.fails)
    return Term(Truth(ascends(code)), any_of(notation.fails, cast("Bool", code == 0)))


def constant(node: Literal) -> Term:
    """Return a constant."""
    match node.value:
        case bool(value):
            return Term(Truth(TRUE if value else FALSE))
        case int(value):
            return Term(Amount(z3.IntVal(value)))
        case str(value):
            return Term(Choice({value: TRUE}))
    raise CelUnknownError(f"the translation does not know {node.value!r}")


def as_truth(term: Term) -> Bool:
    """Return when the term is true."""
    if not isinstance(term.value, Truth):
        raise CelUnknownError(f"{type(term.value).__name__} is used as a truth value")
    return term.value.is_true


def as_number(term: Term) -> Number:
    """Return the number that the term is."""
    if not isinstance(term.value, Amount):
        raise CelUnknownError(f"{type(term.value).__name__} is used as a number")
    return term.value.number


def only_option(term: Term) -> str:
    """Return the text of a constant."""
    if isinstance(term.value, Choice) and len(term.value.options) == 1:
        return next(iter(term.value.options))
    raise CelUnknownError("a text that is written in the rule is needed here")


def negated(term: Term) -> Term:
    """Return `!`."""
    return Term(Truth(negation(as_truth(term))), term.fails)


def both(left: Term, right: Term) -> Term:
    """Return `&&`: false if either is, whatever the other; else an error if either is."""
    refutes = any_of(
        all_of(negation(left.fails), negation(as_truth(left))),
        all_of(negation(right.fails), negation(as_truth(right))),
    )
    fails = all_of(any_of(left.fails, right.fails), negation(refutes))
    return Term(Truth(negation(refutes)), fails)


def conditional(condition: Term, then: Term, otherwise: Term) -> Term:
    """Return `?:` of two values of one kind."""
    when = as_truth(condition)
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


def binary(  # noqa: PLR0911  # a case for each operator
    operator: str, left: Term, right: Term
) -> Term:
    """Return what an operator makes of two values."""
    fails = any_of(left.fails, right.fails)
    match operator:
        case "==":
            return Term(Truth(is_same(left.value, right.value)), fails)
        case "!=":
            return Term(Truth(negation(is_same(left.value, right.value))), fails)
        case "+" if isinstance(left.value, Choice) and isinstance(right.value, Choice):
            return Term(_joined(left.value, right.value), fails)
        case "+":
            return Term(Amount(as_number(left) + as_number(right)), fails)
        case "-":
            return Term(Amount(as_number(left) - as_number(right)), fails)
        case "*":
            return Term(Amount(as_number(left) * as_number(right)), fails)
        case _ if operator in _ORDER:
            return Term(Truth(_ORDER[operator](as_number(left), as_number(right))), fails)
    raise CelUnknownError(f"the translation does not know {operator}")


def _joined(left: Choice, right: Choice) -> Choice:
    options: dict[str, Bool] = {}
    for one, when in left.options.items():
        for other, also in right.options.items():
            both = one + other
            options[both] = any_of(options.get(both, FALSE), all_of(when, also))
    return Choice(options)


def select(source: Term, name: str, *, optional: bool) -> Term:
    """Return `source.name`, or `source.?name`."""
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


def entry_at(sequence: Sequence, place: Term, fails: Bool) -> Term:
    """Return the entry at a place of a list that is spelled out."""
    if not sequence.entries:
        raise CelUnknownError("an entry is read of a list that is not spelled out")
    wanted = as_number(place)
    outside = any_of(cast("Bool", wanted < 0), cast("Bool", wanted >= sequence.size))
    found = sequence.entries[-1]
    for at in reversed(range(len(sequence.entries) - 1)):
        here = z3.simplify(wanted == at)
        found = either(cast("Bool", here), sequence.entries[at], found)
    return Term(found, any_of(fails, place.fails, outside))


def or_value(source: Term, default: Term) -> Term:
    """Return `source.orValue(default)`."""
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


def size_of(source: Term) -> Term:
    """Return the size of a list or map."""
    match source.value:
        case Sequence(size):
            return Term(Amount(size), source.fails)
        case Record(fields):
            present = [z3.If(entry.present, 1, 0) for entry in fields.values()]
            return Term(Amount(cast("Number", z3.Sum(z3.IntVal(0), *present))), source.fails)
    raise CelUnknownError("size() needs a list or map")
