"""The rules of arrays keep every promise, each is needed, and a slightly wrong one is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
import z3

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.rules.rule import Rule
from asyncjob_dev.proofs.rules.admission import ARRAY_RULES, Rulebook, Subresource
from asyncjob_dev.proofs.rules.array_step_promises import is_redriven
from asyncjob_dev.proofs.rules.array_versions import chunks, count
from asyncjob_dev.proofs.rules.induction import (
    ProofError,
    SymbolicRules,
    prove_creation,
    prove_step,
)
from asyncjob_dev.proofs.rules.kinds import ARRAY, Kind
from asyncjob_dev.proofs.rules.need import needed_rules
from asyncjob_dev.proofs.rules.symbols import Bool, all_of, negation
from asyncjob_dev.proofs.rules.versions import Step

SHORT = replace(ARRAY, at_most=dict.fromkeys(ARRAY.at_most, 3))
"""With shorter lists than `make prove` has, which takes seconds."""


@pytest.fixture(scope="module")
def symbolic() -> SymbolicRules:
    return SymbolicRules.build(SHORT)


@pytest.mark.parametrize("promise", SHORT.promises)
def test_the_rules_keep_a_promise(symbolic: SymbolicRules, promise: str) -> None:
    assert prove_step(symbolic, promise).name == promise


def test_each_rule_is_needed(symbolic: SymbolicRules) -> None:
    assert tuple(rule for rule, _ in needed_rules(symbolic)) == ARRAY_RULES.ids


def test_a_new_array_keeps_every_promise_and_needs_its_rules_for_that() -> None:
    assert prove_creation(SHORT).name == "created"
    careless = replace(SHORT, creation=replace(SHORT.creation, rules=SHORT.creation.rules[:-1]))
    with pytest.raises(ProofError, match="answered is not kept by a new AsyncArray"):
        prove_creation(careless)


def moves(*phases: ArrayPhase) -> Callable[[Step], Bool]:
    return lambda step: all_of(step.was.phase(phases[0]), step.now.phase(phases[1]))


def cuts_and_counts(step: Step) -> Bool:
    """Return that a chunk stays, another is counted, and a third one is cut."""
    was, now = list(chunks(step.was)), list(chunks(step.now))
    newest = count(step.was, "generation")
    return all_of(
        was[1][0],
        cast("Bool", was[0][1].number("generation") == now[0][1].number("generation")),
        now[1][0],
        cast("Bool", now[1][1].number("generation") > newest),
        cast("Bool", count(step.now, "succeeded") > count(step.was, "succeeded")),
        cast("Bool", count(step.now, "failed") > count(step.was, "failed")),
    )


def skips(step: Step) -> Bool:
    return all_of(
        negation(step.was.has("status.open")),
        cast("Bool", count(step.now, "succeeded") > count(step.was, "succeeded")),
    )


ACCEPTED: dict[str, Callable[[Step], Bool]] = {
    "starts": moves(ArrayPhase.PENDING, ArrayPhase.RUNNING),
    "cuts and counts": cuts_and_counts,
    "skips": skips,
    "finds its records": lambda step: all_of(
        negation(step.was.has("status.index")), step.now.has("status.index")
    ),
    "succeeds": moves(ArrayPhase.RUNNING, ArrayPhase.SUCCEEDED),
    "succeeds though items failed": lambda step: all_of(
        moves(ArrayPhase.RUNNING, ArrayPhase.SUCCEEDED)(step),
        cast("Bool", count(step.now, "failed") > 0),
    ),
    "fails": moves(ArrayPhase.RUNNING, ArrayPhase.FAILED),
    "is cancelled": moves(ArrayPhase.RUNNING, ArrayPhase.CANCELLED),
    "is redriven": is_redriven,
    "waits again": moves(ArrayPhase.FAILED, ArrayPhase.PENDING),
}


@pytest.mark.parametrize("title", ACCEPTED)
def test_the_rules_do_not_refuse_what_happens_to_arrays(
    symbolic: SymbolicRules, title: str
) -> None:
    """Else the proofs would be about nothing."""
    solver = symbolic.accepted[Subresource.STATUS]
    solver.push()
    solver.add(ACCEPTED[title](symbolic.step))
    answer = solver.check()
    solver.pop()
    assert answer == z3.sat


def with_rules(change: Callable[[Rule], Rule | None]) -> Kind:
    """Return arrays with other rules: each changed, or left out."""
    policies = {
        subresource: tuple(
            replace(policy, rules=tuple(one for one in map(change, policy.rules) if one))
            for policy in each
        )
        for subresource, each in ARRAY_RULES.policies.items()
    }
    return replace(SHORT, rules=Rulebook(policies))


FOUND = [
    ("array.items-ascend", "counted"),
    ("array.open-kept", "chunks"),
    ("array.open-kept", "apart"),
    ("array.open-kept", "admitted"),
    ("array.done-by-chunks", "done"),
    ("array.held", "held"),
    ("array.ended", "told"),
    ("array.succeeded", "complete"),
    ("array.succeeded", "limit"),
]
"""Rules that the first proof of arrays led to, or that it made stronger, and what broke before."""


@pytest.mark.parametrize(("rule", "promise"), FOUND)
def test_without_a_rule_that_the_proof_led_to_its_promise_breaks(rule: str, promise: str) -> None:
    lacking = SymbolicRules.build(with_rules(lambda one: None if one.id == rule else one))
    with pytest.raises(ProofError, match=rf"^{promise} is not kept by a write of the status"):
        prove_step(lacking, promise)


WRONG_BY_A_LITTLE = [
    ("array.counts-add-up", "<=", ">=", "sum"),
    ("array.counts-add-up", "now.?requeued.orValue('')", "was.?requeued.orValue('')", "sum"),
    ("array.counts-grow", ">= was.?next", "<= was.?next", "grow"),
    ("array.counts-grow", "== 0)", ">= 0)", "grow"),
    ("array.failed-listed", "== 1000", "<= 1000", "failures"),
    ("array.phases", "now.phase != 'Pending'", "true", "phases"),
    ("array.phases", "> was.?redrives", ">= was.?redrives", "redrive"),
    ("array.redrives", "== spec.?redrive", ">= spec.?redrive", "redrive"),
    ("array.total", "size(dyn(spec.items).inline)", "1", "total"),
    ("array.index", "!has(was.index) && ", "", "stay"),
    ("array.admitted", "!dyn(was).?admitted.orValue(false) && ", "", "stay"),
    ("array.open-kept", "kept.items == chunk.items", "true", "chunks"),
    ("array.open-kept", "kept.name == chunk.name", "true", "chunks"),
    ("array.open-kept", "kept.?suspect == chunk.?suspect", "true", "chunks"),
    ("array.open-kept", "kept.?uid == chunk.?uid", "true", "chunks"),
    ("array.open-kept", "> was.?generation", ">= was.?generation", "chunks"),
    ("array.open-kept", "exists_one(", "exists(", "apart"),
    ("array.done-by-chunks", "? 0 : now.?next", "? 1 : now.?next", "done"),
    ("array.held", "!spec.?cancel.orValue(false)", "true", "held"),
    ("array.ended", "now.conditions[0].status == 'True' && ", "", "told"),
    ("array.ended", "'Failed': 'Failed'", "'Failed': 'Complete'", "told"),
    ("array.ended", "!has(now.conditions)", "true", "told"),
    ("array.succeeded", "<= spec.maxFailed", "<= spec.maxFailed + 1", "limit"),
    ("array.succeeded", "* 100", "* 99", "limit"),
    ("array.succeeded", "!has(dyn(spec.items).from)", "true", "complete"),
    ("array.frozen", "dyn(now) == dyn(was)", "now.phase == was.phase", "frozen"),
    ("array.frozen", "'redrives']", "'redrives', 'failed']", "frozen"),
    ("array.spec-fixed", "'redrive'", "'redrive', 'items'", "submission"),
    ("array.cancel-latches", "|| spec.?cancel.orValue(false)", "|| has(spec.cancel)", "requests"),
    ("array.redrive-failed", "== 'Failed'", "!= 'Running'", "answered"),
]


@pytest.mark.parametrize(("rule", "old", "new", "promise"), WRONG_BY_A_LITTLE)
def test_a_rule_that_is_wrong_by_a_little_breaks_its_promise(
    rule: str, old: str, new: str, promise: str
) -> None:
    def changed(one: Rule) -> Rule:
        assert isinstance(one.cel, str)
        return replace(one, cel=one.cel.replace(old, new)) if one.id == rule else one

    kind = with_rules(changed)
    assert kind.rules.policies != ARRAY_RULES.policies
    with pytest.raises(ProofError, match=rf"^{promise} is not kept by a write of the .* by "):
        prove_step(SymbolicRules.build(kind), promise)
