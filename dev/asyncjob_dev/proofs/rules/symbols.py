"""Symbolic values: an object of the API server with every field unknown, by its schema.

A field is present or not, and has a value of its type. Texts from a closed list are choices; all
others are codes, which can only be compared for equality, so that a text stands for every text.
Lists of up to 20 entries have each entry spelled out. Of interval notation nothing is known but
what `intervals` says. A map with keys of any text has two keys that stand for all: what the rules
ask of a map they ask of each key alike.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import z3

from asyncjob.json_types import JsonObject, as_object, child, text, texts
from asyncjob_dev.proofs.rules.cel import CelUnknownError
from asyncjob_dev.proofs.rules.intervals import facts, is_notation

MAP_KEYS: Final = ("key-1", "key-2")
"""The keys of each map of objects."""

_PLAIN: Final = ("string", "boolean", "integer", "number")

Bool: TypeAlias = z3.BoolRef
Number: TypeAlias = z3.ArithRef

MAX_SPELLED_OUT: Final = 20
"""Entries up to which a list is spelled out."""

TRUE: Final[Bool] = z3.BoolVal(val=True)
FALSE: Final[Bool] = z3.BoolVal(val=False)


def all_of(*conditions: Bool) -> Bool:
    """Return the conjunction, constants left out."""
    parts = [one for one in conditions if not z3.is_true(one)]
    if any(z3.is_false(one) for one in parts):
        return FALSE
    return cast("Bool", z3.And(*parts)) if len(parts) > 1 else parts[0] if parts else TRUE


def any_of(*conditions: Bool) -> Bool:
    """Return the disjunction, constants left out."""
    return negation(all_of(*map(negation, conditions)))


def negation(condition: Bool) -> Bool:
    """Return the negation."""
    if z3.is_true(condition):
        return FALSE
    if z3.is_false(condition):
        return TRUE
    return cast("Bool", condition.arg(0) if z3.is_not(condition) else z3.Not(condition))


def same_truth(one: Bool, other: Bool) -> Bool:
    """Return that both are true or both are false."""
    for constant, unknown in ((one, other), (other, one)):
        if z3.is_true(constant):
            return unknown
        if z3.is_false(constant):
            return negation(unknown)
    return cast("Bool", one == other)


def implies(condition: Bool, then: Bool) -> Bool:
    """Return that the second is true where the first is."""
    return any_of(negation(condition), then)


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A truth value."""

    is_true: Bool


@dataclass(frozen=True, slots=True, eq=False)
class Amount:
    """A number."""

    number: Number


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A text that is one of a few; each with the condition under which it is that one."""

    options: Mapping[str, Bool]


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """Any text, or any JSON, by its number, see `code_of`."""

    code: Number


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A field: whether it is present, and its value if it is."""

    present: Bool
    value: "Symbol"


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """An object with the fields of its schema."""

    fields: Mapping[str, Entry]


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """A list; `entries` are spelled out, beyond `size` they mean nothing.

    Without entries, `content` is a code of all of them.
    """

    size: Number
    entries: tuple["Symbol", ...] = ()
    content: Number = field(default_factory=lambda: z3.IntVal(0))


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """An optional value, as `.?` and `[?]` give it."""

    present: Bool
    value: "Symbol"


Symbol: TypeAlias = Truth | Amount | Choice | Code | Record | Sequence | Maybe


def code_of(value: str) -> int:
    """Return the code of a text that a rule names: its bytes as a number, 0 for the empty text."""
    return int.from_bytes(value.encode())


def is_text(symbol: "Choice | Code", value: str) -> Bool:
    """Return that the symbol is this text."""
    if isinstance(symbol, Choice):
        return symbol.options.get(value, FALSE)
    return cast("Bool", symbol.code == code_of(value))


def as_code(symbol: "Choice | Code") -> Code:
    """Return the text by its code."""
    if isinstance(symbol, Code):
        return symbol
    code: Number = z3.IntVal(0)
    for value, when in symbol.options.items():
        code = _number_if(when, z3.IntVal(code_of(value)), code)
    return Code(code)


def is_same(one: Symbol, other: Symbol) -> Bool:  # noqa: C901, PLR0911  # a case for each kind
    """Return that two values are equal."""
    match one, other:
        case Truth(), Truth():
            return same_truth(one.is_true, other.is_true)
        case Amount(), Amount():
            return cast("Bool", one.number == other.number)
        case Choice(), Choice():
            both = {*one.options, *other.options}
            return all_of(*(_same_option(one, other, value) for value in sorted(both)))
        case Code(), Code():
            return cast("Bool", one.code == other.code)
        case (Code() as code, Choice(options)) | (Choice(options), Code() as code):
            return any_of(*(all_of(when, is_text(code, value)) for value, when in options.items()))
        case Record(), Record():
            return _same_fields(one, other)
        case Sequence(), Sequence():
            return _same_sequences(one, other)
        case Maybe(), Maybe():
            same = is_same(one.value, other.value)
            return all_of(same_truth(one.present, other.present), implies(one.present, same))
        case _:
            kinds = f"{type(one).__name__} and {type(other).__name__}"
            raise CelUnknownError(f"{kinds} cannot be compared")


def _same_option(one: Choice, other: Choice, value: str) -> Bool:
    return same_truth(one.options.get(value, FALSE), other.options.get(value, FALSE))


def _same_fields(one: Record, other: Record) -> Bool:
    if one.fields.keys() != other.fields.keys():
        raise CelUnknownError("objects of two schemas cannot be compared")
    pairs = ((one.fields[name], other.fields[name]) for name in one.fields)
    return all_of(*(is_same_entry(was, now) for was, now in pairs))


def is_same_entry(one: Entry, other: Entry) -> Bool:
    """Return that a field is as it was, absence included."""
    return is_same(Maybe(one.present, one.value), Maybe(other.present, other.value))


def _same_sequences(one: Sequence, other: Sequence) -> Bool:
    length = cast("Bool", one.size == other.size)
    if not one.entries and not other.entries:
        return all_of(length, cast("Bool", one.content == other.content))
    return all_of(
        length,
        *(
            any_of(cast("Bool", one.size <= place), is_same(mine, theirs))
            for place, (mine, theirs) in enumerate(zip(one.entries, other.entries, strict=True))
        ),
    )


def either(  # noqa: PLR0911  # a case for each kind
    condition: Bool, then: Symbol, otherwise: Symbol
) -> Symbol:
    """Return one of two values of the same kind."""
    if z3.is_true(condition) or z3.is_false(condition):
        return then if z3.is_true(condition) else otherwise
    match then, otherwise:
        case Truth(), Truth():
            return Truth(_bool_if(condition, then.is_true, otherwise.is_true))
        case Amount(), Amount():
            return Amount(_number_if(condition, then.number, otherwise.number))
        case (Code() as one, (Code() | Choice()) as other) | (Choice() as one, Code() as other):
            return Code(_number_if(condition, as_code(one).code, as_code(other).code))
        case Choice(), Choice():
            both = {*then.options, *otherwise.options}
            unless = negation(condition)
            return Choice(
                {
                    value: any_of(
                        all_of(condition, then.options.get(value, FALSE)),
                        all_of(unless, otherwise.options.get(value, FALSE)),
                    )
                    for value in sorted(both)
                }
            )
        case Record(), Record() if then.fields.keys() == otherwise.fields.keys():
            names = then.fields
            return Record(
                {
                    name: _entry_if(condition, then.fields[name], otherwise.fields[name])
                    for name in names
                }
            )
        case Maybe(), Maybe():
            entry = _entry_if(
                condition,
                Entry(then.present, then.value),
                Entry(otherwise.present, otherwise.value),
            )
            return Maybe(entry.present, entry.value)
    kinds = f"{type(then).__name__} and {type(otherwise).__name__}"
    raise CelUnknownError(f"{kinds} cannot be alternatives")


def _entry_if(condition: Bool, then: Entry, otherwise: Entry) -> Entry:
    return Entry(
        _bool_if(condition, then.present, otherwise.present),
        either(condition, then.value, otherwise.value),
    )


def _bool_if(condition: Bool, then: Bool, otherwise: Bool) -> Bool:
    return cast("Bool", z3.If(condition, then, otherwise))


def _number_if(condition: Bool, then: Number, otherwise: Number) -> Number:
    return cast("Number", z3.If(condition, then, otherwise))


@dataclass(frozen=True, slots=True)
class Unknown:
    """An object of which nothing is known but its schema, and what the schema demands."""

    value: Record
    demands: tuple[Bool, ...]


def unknown_object(name: str, schema: JsonObject) -> Unknown:
    """Return an object of this schema; `name` begins the names of its unknowns."""
    demands: list[Bool] = []
    value = _symbol(name, schema, demands)
    if not isinstance(value, Record):
        raise CelUnknownError(f"the schema of {name} is not that of an object")
    return Unknown(value, tuple(demands))


def _symbol(  # noqa: C901, PLR0911  # a case for each type
    path: str, schema: JsonObject, demands: list[Bool]
) -> Symbol:
    match text(schema, "type"):
        case "object" if "properties" in schema:
            return Record(dict(_entries(path, schema, demands)))
        case "object" if "properties" in child(schema, "additionalProperties"):
            return Record(dict(_keys(path, child(schema, "additionalProperties"), demands)))
        case "boolean":
            return Truth(z3.Bool(path))
        case "integer":
            return _amount(z3.Int(path), schema, demands)
        case "number":
            return _amount(z3.Real(path), schema, demands)
        case "string" if "enum" in schema:
            chosen, values = z3.Int(path), texts(schema, "enum")
            demands.append(all_of(chosen >= 0, chosen < len(values)))
            return Choice({value: chosen == place for place, value in enumerate(values)})
        case "string":
            return _code(z3.Int(path), schema, demands)
        case "array":
            return _sequence(path, schema, demands)
        case _:
            return Code(z3.Int(path))


def _code(code: Number, schema: JsonObject, demands: list[Bool]) -> Code:
    if is_notation(schema):
        demands += [code >= 0, facts(code), facts(z3.IntVal(0))]
    else:
        demands.append(code > 0 if _needs_content(schema) else code >= 0)
    return Code(code)


def _needs_content(schema: JsonObject) -> bool:
    return "pattern" in schema or "minLength" in schema


def _entries(path: str, schema: JsonObject, demands: list[Bool]) -> Iterator[tuple[str, Entry]]:
    required = texts(schema, "required")
    for name, below in child(schema, "properties").items():
        inner = as_object(below)
        always = name in required or "default" in inner
        present = TRUE if always else z3.Bool(f"{path}.{name}?")
        yield name, Entry(present, _symbol(f"{path}.{name}", inner, demands))


def _keys(path: str, schema: JsonObject, demands: list[Bool]) -> Iterator[tuple[str, Entry]]:
    """Yield the keys of a map.

    A value is spelled out if each of its fields is plain, else compared as a whole, whatever is in
    it.
    """
    fields = map(as_object, child(schema, "properties").values())
    is_plain = all(text(one, "type") in _PLAIN for one in fields)
    for name in MAP_KEYS:
        below = f"{path}.{name}"
        value = _symbol(below, schema, demands) if is_plain else Code(z3.Int(below))
        yield name, Entry(z3.Bool(f"{below}?"), value)


def _amount(number: Number, schema: JsonObject, demands: list[Bool]) -> Amount:
    least, most = cast("Any", schema.get("minimum")), cast("Any", schema.get("maximum"))
    if least is not None:
        demands.append(number >= least)
    if most is not None:
        demands.append(number <= most)
    return Amount(number)


def _sequence(path: str, schema: JsonObject, demands: list[Bool]) -> Sequence:
    size, most = z3.Int(f"{path}#"), cast("int", schema["maxItems"])
    demands += [size >= 0, size <= most]
    inner = child(schema, "items")
    if most > MAX_SPELLED_OUT or not (text(inner, "type") == "object" or is_notation(inner)):
        return Sequence(size, content=z3.Int(path))
    places = range(most)
    return Sequence(size, tuple(_symbol(f"{path}[{at}]", inner, demands) for at in places))
