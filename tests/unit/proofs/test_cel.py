"""CEL as rules use it: its syntax, its errors, and that translation and runtime say the same."""

from typing import Any

import pytest
import z3

from asyncjob.rules.policies import POLICIES
from asyncjob.schema.crd import CRD_RULES
from asyncjob_dev.proofs.rules.admission import Subresource, broken_rules
from asyncjob_dev.proofs.rules.cel import CelSyntaxError, CelUnknownError, parse
from asyncjob_dev.proofs.rules.induction import SymbolicRules, new_solver
from asyncjob_dev.proofs.rules.kinds import KINDS, Kind
from asyncjob_dev.proofs.rules.render import Rendering
from asyncjob_dev.proofs.rules.symbols import (
    FALSE,
    TRUE,
    Amount,
    Choice,
    Entry,
    Record,
    Sequence,
    Truth,
)
from asyncjob_dev.proofs.rules.terms import Term
from asyncjob_dev.proofs.rules.translate import obeyed
from asyncjob_dev.proofs.rules.versions import Seen
from asyncjob_simulation.apiserver.cel import Activation, EvaluationError, compiled

EVERY_RULE = [rule for policy in POLICIES for rule in policy.rules]
EVERY_RULE += [rule.rule for rule in CRD_RULES]


SELF = {"b": "x", "list": [4, 5]}
"""What small expressions are about, as JSON."""

SYMBOLS = Record(
    {
        "b": Entry(TRUE, Choice({"x": TRUE})),
        "list": Entry(
            TRUE,
            Sequence(z3.IntVal(2), (Amount(z3.IntVal(4)), Amount(z3.IntVal(5)))),
        ),
        "none": Entry(FALSE, Truth(z3.Bool("none"))),
        "count": Entry(FALSE, Amount(z3.Int("count"))),
        "other": Entry(FALSE, Truth(z3.Bool("other"))),
        "gone": Entry(FALSE, Record({"key": Entry(TRUE, Truth(TRUE))})),
    }
)
"""The same as the translation has it: four of its fields are known to be absent."""


def holds(text: str) -> bool:
    """Return what the runtime says; an error is a refusal."""
    try:
        return Activation({"self": SELF}).evaluate(compiled(text)) is True
    except EvaluationError:
        return False


def is_translated_to(text: str) -> bool:
    """Return what the translation says of a text without unknowns."""
    said = z3.simplify(obeyed(text, {"self": Term(SYMBOLS)}, {}))
    assert z3.is_true(said) or z3.is_false(said), said
    return bool(z3.is_true(said))


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.id)
def test_every_rule_is_parsed(rule: Any) -> None:
    parse(rule.expression)


@pytest.mark.parametrize("text", ["a ==", "(a", "a b", "[1,", "{'a' 1}", "a.1", "'a", "a ? b"])
def test_what_is_no_cel_is_refused(text: str) -> None:
    with pytest.raises(CelSyntaxError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 - 4 == 0 - 1",
        "8 - 4 - 2 == 2",
        "'a' + self.b == 'ax'",
        "false && self.none || true",
        "true || self.none && false",
        "!(self.none && false)",
        "true || self.none",
        "self.none || true",
        "!(self.b in ['y', 'z']) && self.b in ['x']",
        "self.?count.orValue(7) == 7",
        "self[?'none'] == self.?other",
        "self.?b == optional.of('x')",
        "has(self.b) && !has(self.none)",
        "[0, 1].all(i, i == 1 || self.list[i] == 4)",
        "!([0, 9].all(i, self.list[i] == 5))",
        "{'x': 'found'}[self.b] == 'found'",
        "(self.list.size() == 2 ? 'two' : self.b) == 'two'",
        "self.b == 'x' ? true : self.none",
        "self.all(key, key in ['b', 'list'])",
        "dyn(self).b == 'x'",
        "self.size() == 2",
        "self.?gone.orValue({}).size() == 0",
        "optional.of(self).orValue({}).size() == 2",
    ],
)
def test_the_translation_holds_where_the_runtime_says_so(text: str) -> None:
    assert holds(text)
    assert is_translated_to(text)


@pytest.mark.parametrize(
    "text",
    [
        "self.none",
        "true && self.none",
        "self.none || false",
        "!self.none",
        "self.list[2] == 5",
        "{'y': 'found'}[self.b] != 'found'",
        "self.none ? true : true",
        "[0, 9].all(i, self.list[i] > 3)",
        "self.?count.orValue(7) < 7",
        "self.all(key, key == 'b')",
        "self.size() == 3",
        "self.?gone.orValue({}).size() > 0",
    ],
)
def test_what_is_false_or_an_error_is_refused_by_both(text: str) -> None:
    assert not holds(text)
    assert not is_translated_to(text)


@pytest.mark.parametrize(
    "text",
    ["self.b.matches('x')", "object", "[1].map(i, i) == [1]", "[1].exists(i, i > 1)", "1.5 > 1.0"],
)
def test_what_no_rule_uses_is_not_translated(text: str) -> None:
    with pytest.raises(CelUnknownError):
        is_translated_to(text)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.name)
def symbolic(request: pytest.FixtureRequest) -> SymbolicRules:
    kind: Kind = request.param
    return SymbolicRules.build(kind)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("subresource", Subresource)
def test_translation_and_runtime_agree_on_writes_of_every_kind(
    symbolic: SymbolicRules, subresource: Subresource
) -> None:
    """Each rule is broken by some write, and both say the same of all rules about it."""
    kind = symbolic.kind
    solver, schema, seen = new_solver(symbolic.assumed(subresource)), kind.schema(), set()
    rules = symbolic.rules[subresource]
    for rule, formula in rules.items():
        solver.push()
        solver.add(z3.Not(formula))
        assert solver.check() == z3.sat, rule
        model = solver.model()
        solver.pop()
        rendering = Rendering(model)
        old, new = (rendering.object(one.value, schema) for one in (symbolic.old, symbolic.new))
        requester = rendering.requester(symbolic.step)
        broken = set(broken_rules(subresource, old, new, requester, kind.rules))
        said = {name: model.eval(one, model_completion=True) for name, one in rules.items()}
        assert broken == {name for name, one in said.items() if z3.is_false(one)}, (rule, old, new)
        seen |= broken
    assert seen == set(rules)


def test_a_field_that_the_schema_lacks_is_refused(symbolic: SymbolicRules) -> None:
    with pytest.raises(CelUnknownError):
        obeyed("has(a.typo)", {"a": Term(symbolic.old.value)}, {})
    with pytest.raises(KeyError):
        Seen(symbolic.old.value).has("status.typo")
