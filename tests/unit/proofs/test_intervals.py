"""What the proof knows of interval notation is true of each, by the runtime of CEL."""

import re

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from asyncjob.models.array import ItemNotation
from asyncjob_dev.proofs.rules.cel import Name, parse
from asyncjob_dev.proofs.rules.intervals import (
    FUNCTIONS,
    ascends,
    facts,
    items_of,
    parts_of,
    recognised,
    written,
)
from asyncjob_dev.proofs.rules.symbols import code_of
from asyncjob_simulation.apiserver.cel import Activation, compiled

PATTERN = TypeAdapter(ItemNotation).json_schema()["pattern"]
NUMBERS = st.integers(0, 30) | st.integers(0, 99_999_999)
PARTS = NUMBERS.map(str) | st.tuples(NUMBERS, NUMBERS).map(lambda one: f"{one[0]}-{one[1]}")
NOTATIONS = st.lists(PARTS, max_size=5).map(",".join)


def asked(name: str, notation: str) -> int | bool:
    """Return what the runtime says of one of the functions."""
    value: int | bool = Activation({"self": notation}).evaluate(
        compiled(re.sub(r"\btext\b", "self", FUNCTIONS[name]))
    )
    return value


def is_known_to_be_wrong(notation: str) -> bool:
    """Return whether the facts rule out what the runtime says of a notation."""
    code = z3.IntVal(code_of(notation))
    said = [items_of(code) == asked("items", notation), parts_of(code) == asked("parts", notation)]
    if notation:
        said.append(ascends(code) == asked("ascends", notation))
    solver = z3.Solver()
    solver.add(facts(code), *said)
    return bool(solver.check() == z3.unsat)


@given(NOTATIONS)
def test_what_is_assumed_of_a_notation_is_true_of_each(notation: str) -> None:
    assert re.fullmatch(PATTERN, notation)
    assert not is_known_to_be_wrong(notation)


@pytest.mark.parametrize("notation", ["", "7", "5-3", "3-5", "5,3", "0-3,3", "9-0,1-2"])
def test_the_facts_leave_out_no_notation(notation: str) -> None:
    assert not is_known_to_be_wrong(notation)


@given(st.integers(1, 5), st.integers(-9, 30), st.booleans(), st.integers(1, 9))
def test_a_notation_is_written_with_as_many_items_and_parts(
    parts: int, items: int, forwards: bool, place: int
) -> None:
    solver, code = z3.Solver(), z3.Int("code")
    solver.add(code > 0, facts(code), items_of(code) == items, parts_of(code) == parts)
    solver.add(ascends(code) if forwards else z3.Not(ascends(code)))
    if solver.check() == z3.unsat:
        return
    notation = written(items, parts, 1000 * place, forwards=forwards)
    assert re.fullmatch(PATTERN, notation)
    assert asked("items", notation) == items
    assert asked("parts", notation) == parts
    assert asked("ascends", notation) is forwards


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_recognised_whatever_it_is_asked_of(name: str) -> None:
    assert recognised(parse(FUNCTIONS[name])) == (name, Name("text"))
    longer = re.sub(r"\btext\b", "now.?failedItems.orValue('')", FUNCTIONS[name])
    assert recognised(parse(longer)) == (name, parse("now.?failedItems.orValue('')"))


@pytest.mark.parametrize(
    "text",
    [
        FUNCTIONS["items"].replace("+ 1", "+ 2"),
        FUNCTIONS["items"].replace("text.split(',')", "other.split(',')"),
        FUNCTIONS["ascends"].replace("'-'", "'+'"),
        FUNCTIONS["parts"].replace("','", "'-'"),
    ],
)
def test_what_is_wrong_by_a_little_is_not_recognised(text: str) -> None:
    assert recognised(parse(text)) is None
