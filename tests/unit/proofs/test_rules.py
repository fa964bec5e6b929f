"""A part of the proof that takes seconds, and the stored steps; `make prove` does all of it."""

from dataclasses import replace
from pathlib import Path

import pytest
import z3

from asyncjob.rules.job_spec import CONTROL_NOT_AT_CREATION
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.rules.rule import Rule, all_rules_hold
from asyncjob_dev.proofs.rules import induction
from asyncjob_dev.proofs.rules.admission import JOB_RULES, Rulebook, Subresource
from asyncjob_dev.proofs.rules.induction import (
    ProofError,
    SymbolicRules,
    prove_creation,
    prove_first_question,
    prove_step,
)
from asyncjob_dev.proofs.rules.kinds import ARRAY, JOB, KINDS, Kind
from asyncjob_dev.proofs.rules.need import Counterexample, read_file

OF_KIND = {kind: read_file(kind) for kind in KINDS}
STORED = [(kind, step) for kind, steps in OF_KIND.items() for step in steps]
PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "proof.md"
QUICK = [
    *("exclusive", "claimed", "attempt", "claim", "holder", "own-name", "result", "submission"),
    *("frozen", "rerun-writer"),
]


@pytest.fixture(scope="module")
def symbolic() -> SymbolicRules:
    return SymbolicRules.build()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("subresource", Subresource)
def test_the_rules_do_not_refuse_everything(
    symbolic: SymbolicRules, subresource: Subresource
) -> None:
    assert symbolic.accepted[subresource].check() == z3.sat


@pytest.mark.timeout(240)
@pytest.mark.parametrize("promise", QUICK)
def test_the_rules_keep_a_promise(symbolic: SymbolicRules, promise: str) -> None:
    assert prove_step(symbolic, promise).name == promise


def with_text(policy: AdmissionPolicy, rule_id: str, old: str, new: str) -> AdmissionPolicy:
    """Return the policy with a text of one rule's CEL replaced."""

    def changed(rule: Rule) -> Rule:
        if isinstance(rule.cel, str):
            return replace(rule, cel=rule.cel.replace(old, new))
        return replace(rule, cel={write: cel.replace(old, new) for write, cel in rule.cel.items()})

    rules = [changed(rule) if rule.id == rule_id else rule for rule in policy.rules]
    return replace(policy, rules=tuple(rules))


WRONG_BY_A_LITTLE = [
    ("claim.attempt", "was.attempt + 1", "was.attempt + 2", "attempt"),
    ("claim.id", "now.?claim != was.?claim", "true", "claim"),
    ("lease.iff-running", "!has(now.lease)", "true", "exclusive"),
    ("lease.renewals-grow", ">=", "!=", "lease"),
    ("budget.retries-left", "now.effective.maxRetries", "9", "retry-limit"),
    ("owner.holder", "variables.mine", "true", "writers"),
    ("owner.running", "variables.holds", "true", "holder"),
    ("running.steps", "== dyn(was).steps[key]", "== dyn(now).steps[key]", "steps"),
    ("running.steps", "was.phase == 'Running' ?", "was.phase != 'Queued' ?", "steps"),
    ("running.waits", "dyn(was).waits[key].kind != 'Sleep'", "true", "waits"),
    ("transition.reason", "!has(was.waiting) && ", "", "waiting"),
    ("signal.once", "== dyn(spec_was).signals[name]", "== dyn(spec).signals[name]", "signals"),
    ("signal.in-time", "!(name in dyn(spec).signals)", "true", "told"),
    (
        "control.cancel-latches",
        "|| spec.?cancel.orValue(false)",
        "|| has(spec.cancel)",
        "requests",
    ),
]
QUICKLY_SHOWN = {"claim.attempt", "running.waits", "signal.once"}
"""Rules whose mistakes `make test` shows; each takes seconds, so `make soak` shows all."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("rule", "old", "new", "promise"),
    [
        pytest.param(*one, marks=() if one[0] in QUICKLY_SHOWN else pytest.mark.soak)
        for one in WRONG_BY_A_LITTLE
    ],
)
def test_a_rule_that_is_wrong_by_a_little_breaks_its_promise(
    rule: str, old: str, new: str, promise: str
) -> None:
    policies = {
        subresource: tuple(with_text(policy, rule, old, new) for policy in each)
        for subresource, each in JOB_RULES.policies.items()
    }
    assert policies != JOB_RULES.policies
    mutant = SymbolicRules.build(replace(JOB, rules=Rulebook(policies, JOB_RULES.of_phases)))
    with pytest.raises(ProofError, match=rf"(?s)^{promise} is not kept by a write of the .* -> "):
        prove_step(mutant, promise)


@pytest.mark.timeout(240)
def test_what_a_policy_asks_first_refuses_as_much_as_its_rules(symbolic: SymbolicRules) -> None:
    assert prove_first_question(symbolic).name == "first-question"


@pytest.mark.timeout(240)
def test_a_rule_that_the_first_question_forgets_is_found_out(
    monkeypatch: pytest.MonkeyPatch, symbolic: SymbolicRules
) -> None:
    monkeypatch.setattr(induction, "all_rules_hold", lambda rules: all_rules_hold(rules[:-1]))
    with pytest.raises(ProofError, match="is not asked about a write of the status"):
        prove_first_question(symbolic)


@pytest.mark.timeout(240)
def test_a_new_job_keeps_every_promise_because_of_the_rule_of_creation() -> None:
    assert prove_creation().name == "created"


@pytest.mark.parametrize(("kind", "step"), STORED, ids=lambda one: getattr(one, "rule", None))
def test_a_stored_step_is_refused_by_its_rule_alone(kind: Kind, step: Counterexample) -> None:
    assert step.refused_by(kind) == [step.rule]
    assert step.breaks
    assert set(step.breaks) <= kind.promises.keys()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_there_is_a_stored_step_for_each_rule(kind: Kind) -> None:
    """One that is missing is found by `python -m asyncjob_dev.proofs --only rules --write`."""
    assert tuple(step.rule for step in OF_KIND[kind]) == kind.rules.ids
    assert CONTROL_NOT_AT_CREATION.id not in kind.rules.ids


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_two_promises_have_the_same_name(kind: Kind) -> None:
    assert not kind.states.keys() & kind.steps.keys()


def test_the_page_says_how_many_promises_and_rules_there_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for kind, steps in OF_KIND.items():
        assert f"| {len(kind.promises)} promises, {len(kind.rules.ids)} rules | " in page
        assert page.count(f"| {len(steps)} tests |") == 2
    for most in ARRAY.at_most.values():
        assert f"at most {most} entries in the proof" in page
