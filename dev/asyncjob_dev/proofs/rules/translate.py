"""CEL translated to Z3: what a rule says about objects of which nothing is known.

Each expression becomes a value and the condition under which it is an error. What the rules do not
use is refused, so that no rule is translated by a guess.
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TypeAlias, cast

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
from asyncjob_dev.proofs.rules.intervals import recognised
from asyncjob_dev.proofs.rules.symbols import (
    FALSE,
    TRUE,
    Amount,
    Bool,
    Choice,
    Code,
    Maybe,
    Number,
    Record,
    Sequence,
    Symbol,
    Truth,
    all_of,
    any_of,
    is_text,
    negation,
)
from asyncjob_dev.proofs.rules.terms import (
    Term,
    as_number,
    as_truth,
    binary,
    both,
    conditional,
    constant,
    entry_at,
    how_many,
    is_one,
    is_there,
    negated,
    of_notation,
    only_option,
    or_value,
    select,
    size_of,
)

Scope: TypeAlias = Mapping[str, Term]
Atoms: TypeAlias = Mapping[Node, Symbol]


def obeyed(text: str, scope: Scope, atoms: Atoms) -> Bool:
    """Return the condition under which a rule is obeyed: true, and no error."""
    term = Translation(atoms).term(parse(text), scope)
    return all_of(as_truth(term), negation(term.fails))


class Translation:
    """Translates with these values for what rules ask about the request."""

    def __init__(self, atoms: Atoms) -> None:
        self._atoms = atoms

    def term(self, node: Node, scope: Scope) -> Term:  # noqa: C901, PLR0911  # a case for each kind
        """Return the meaning of an expression."""
        if isinstance(node, Call | Field | Index) and node in self._atoms:
            return Term(self._atoms[node])
        if isinstance(node, Call | Operation) and (found := recognised(node)):
            name, notation = found
            return of_notation(name, self.term(notation, scope))
        match node:
            case Literal():
                return constant(node)
            case Name(name):
                if name not in scope:
                    raise CelUnknownError(f"the rule reads {name}, which is not given here")
                return scope[name]
            case Field(of, name, optional):
                return select(self.term(of, scope), name, optional=optional)
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
            chosen = only_option(place)
            return select(source, chosen, optional=optional)
        if optional or not isinstance(source.value, Sequence):
            raise CelUnknownError("only lists and objects are indexed")
        return entry_at(source.value, place, source.fails)

    def _lookup(self, table: MapOf, key: Term, scope: Scope) -> Term:
        """Return the value of a map that is written in the rule."""
        if not isinstance(key.value, Choice):
            raise CelUnknownError("a map is indexed by a text of any content")
        options: dict[str, Bool] = {}
        for name, value in table.entries:
            when = is_text(key.value, only_option(self.term(name, scope)))
            found = only_option(self.term(value, scope))
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
                return both(*terms)
            case "||":
                return negated(both(*map(negated, terms)))
            case "!":
                return negated(terms[0])
        return binary(node.operator, *terms)

    def _alternative(self, condition: Node, then: Node, otherwise: Node, *, scope: Scope) -> Term:
        """Return `?:`; what a constant condition leaves out may be of another kind of object."""
        when = self.term(condition, scope)
        if z3.is_true(as_truth(when)) or z3.is_false(as_truth(when)):
            return self.term(then if z3.is_true(as_truth(when)) else otherwise, scope)
        return conditional(when, self.term(then, scope), self.term(otherwise, scope))

    def _membership(self, member: Node, group: Node, scope: Scope) -> Term:
        value = self.term(member, scope)
        if not isinstance(group, ListOf):
            present = self.term(group, scope)
            if not isinstance(present.value, Record):
                raise CelUnknownError("`in` needs a list that is written in the rule, or an object")
            entry = present.value.fields[only_option(value)]
            return Term(Truth(entry.present), any_of(value.fails, present.fails))
        if not isinstance(value.value, Choice | Code):
            raise CelUnknownError("`in` needs a text")
        texts = [only_option(self.term(item, scope)) for item in group.items]
        return Term(Truth(any_of(*(is_text(value.value, one) for one in texts))), value.fails)

    def _call(  # noqa: C901, PLR0911  # a case for each function
        self, node: Call, scope: Scope
    ) -> Term:
        match node:
            case Call("has", None, (Field(of, name, False),)):
                selected = select(self.term(of, scope), name, optional=True)
                return Term(Truth(cast("Maybe", selected.value).present), selected.fails)
            case Call("dyn", None, (inner,)):
                return self.term(inner, scope)
            case Call("of", Name("optional"), (inner,)):
                held = self.term(inner, scope)
                return Term(Maybe(TRUE, held.value), held.fails)
            case Call("orValue", target, (default,)) if target is not None:
                return or_value(self.term(target, scope), self.term(default, scope))
            case Call("size", Call("filter", ListOf(listed), (Name(name), body)), ()):
                values = [self.term(one, scope) for one in listed]
                return how_many([self.term(body, {**scope, name: value}) for value in values])
            case Call("size", None, (target,)) | Call("size", target, ()) if target is not None:
                return size_of(self.term(target, scope))
            case Call("sum", Call("map", target, (Name(name), body)), ()) if target is not None:
                return self._sum(self.term(target, scope), name, body, scope)
            case Call("all" | "exists" | "exists_one", target, (Name(name), body)) if target:
                return self._quantified(node.name, target, name, body, scope)
        raise CelUnknownError(f"the translation does not know {node.name}()")

    def _quantified(
        self, quantifier: str, target: Node, name: str, body: Node, scope: Scope
    ) -> Term:
        """Return that something holds of all, of any, or of one of the entries."""
        if quantifier == "all" and isinstance(target, ListOf):
            scopes = [{**scope, name: self.term(one, scope)} for one in target.items]
            return reduce(both, (self.term(body, one) for one in scopes))
        among = self.term(target, scope)
        if quantifier == "all" and isinstance(among.value, Record):
            return self._all_keys(among, name, body, scope)
        if quantifier == "all":
            return self._all_entries(among, name, body, scope)
        if quantifier == "exists":
            return negated(self._all_entries(among, name, Operation("!", (body,)), scope))
        return is_one(how_many(self._said(among, name, body, scope)))

    def _all_keys(self, target: Term, name: str, body: Node, scope: Scope) -> Term:
        """Return that the body holds for the name of each field that is present."""
        each = []
        for key, entry in cast("Record", target.value).fields.items():
            said = self.term(body, {**scope, name: Term(Choice({key: TRUE}))})
            absent = Term(Truth(negation(entry.present)))
            each.append(negated(both(negated(absent), negated(said))))
        return reduce(both, each, Term(Truth(TRUE), target.fails))

    def _all_entries(self, target: Term, name: str, body: Node, scope: Scope) -> Term:
        """Return that the body holds for each entry of a list that is spelled out."""
        each = (
            negated(both(is_there(target, place), negated(self.term(body, inner))))
            for place, inner in _scopes_of_entries(target, name, scope)
        )
        return reduce(both, each, Term(Truth(TRUE), target.fails))

    def _said(self, target: Term, name: str, body: Node, scope: Scope) -> list[Term]:
        """Return of each entry that it is there and the body holds."""
        return [
            both(is_there(target, place), self.term(body, inner))
            for place, inner in _scopes_of_entries(target, name, scope)
        ]

    def _sum(self, target: Term, name: str, body: Node, scope: Scope) -> Term:
        """Return the sum of what the body is for each entry."""
        total: Number = z3.IntVal(0)
        fails = target.fails
        for place, inner in _scopes_of_entries(target, name, scope):
            there, one = as_truth(is_there(target, place)), self.term(body, inner)
            total = total + cast("Number", z3.If(there, as_number(one), 0))
            fails = any_of(fails, all_of(there, one.fails))
        return Term(Amount(total), fails)


def _scopes_of_entries(target: Term, name: str, scope: Scope) -> Iterator[tuple[int, Scope]]:
    if not isinstance(target.value, Sequence) or not target.value.entries:
        raise CelUnknownError("a list is needed here whose entries are spelled out")
    for place, entry in enumerate(target.value.entries):
        yield place, {**scope, name: Term(entry)}
