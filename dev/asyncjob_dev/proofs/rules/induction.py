"""The proof: the rules keep every promise, and none of them can be left out.

For all objects `old` of a kind that keep the promises about states, and all writes that the rules
accept, `new` keeps them too, and the step keeps the promises about steps. A new object keeps the
promises about states. So every version of every job, and of every array, does. Then each rule is
taken out in turn, and a step is found that the others accept and that breaks a promise.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

import z3

from asyncjob.json_types import as_object, child
from asyncjob.rules.policy import (
    IS_WORKER,
    MAY_OPERATE,
    REQUEST_POD,
    REQUEST_POD_UID,
    AdmissionPolicy,
)
from asyncjob.rules.rule import all_rules_hold, expand_names
from asyncjob_dev.errors import DevError
from asyncjob_dev.proofs.rules.admission import Subresource
from asyncjob_dev.proofs.rules.cel import Node, parse
from asyncjob_dev.proofs.rules.kinds import JOB, Kind
from asyncjob_dev.proofs.rules.render import Rendering
from asyncjob_dev.proofs.rules.symbols import (
    TRUE,
    Bool,
    Choice,
    Code,
    Entry,
    Record,
    Symbol,
    Truth,
    Unknown,
    all_of,
    implies,
    negation,
    unknown_object,
)
from asyncjob_dev.proofs.rules.terms import Term
from asyncjob_dev.proofs.rules.translate import Scope, Translation, obeyed
from asyncjob_dev.proofs.rules.versions import Seen, Step

MAX_EFFORT: Final = 500_000_000
"""Steps of Z3 for one question, which count alike on a busy machine: minutes, not hours.

One that takes more fails the proof instead of holding it up.
"""


class ProofError(DevError):
    """A promise is not kept, a rule is not needed, or a question takes too long."""


@dataclass(frozen=True)
class SymbolicRules:
    """Two versions of an object, who writes, and what each rule says about that."""

    kind: Kind
    old: Unknown
    new: Unknown
    step: Step
    rules: Mapping[Subresource, Mapping[str, Bool]]

    @classmethod
    def build(cls, kind: Kind = JOB) -> "SymbolicRules":
        """Return the rules of today's schema and the policies of this kind."""
        schema = kind.schema()
        old, new = unknown_object("old", schema), unknown_object("new", schema)
        pod, uid = Code(z3.Int("pod")), Code(z3.Int("podUID"))
        operates, works = z3.Bool("operates"), z3.Bool("isWorker")
        atoms: dict[Node, Symbol] = {
            parse(REQUEST_POD): pod,
            parse(REQUEST_POD_UID): uid,
            parse(MAY_OPERATE): Truth(operates),
            parse(IS_WORKER): Truth(works),
        }
        step = Step(Seen(old.value), Seen(new.value), pod, uid, operates, works)
        rules = {
            subresource: {
                **_transition_rules(kind, subresource, step),
                **_policy_rules(kind, subresource, step, atoms),
            }
            for subresource in Subresource
        }
        return cls(kind, old, new, step, rules)

    def assumed(self, subresource: Subresource) -> tuple[Bool, ...]:
        """Return what holds before rules are asked: the schema, and half of it unchanged."""
        other = "spec" if subresource is Subresource.STATUS else "status"
        codes = (self.step.pod.code >= 0, self.step.pod_uid.code >= 0)
        return (
            *self.old.demands,
            *self.new.demands,
            *cast("tuple[Bool, ...]", codes),
            self.step.kept(other),
        )

    @cached_property
    def kept_before(self) -> tuple[Bool, ...]:
        """Return that the old version keeps all promises about states."""
        return tuple(self.state(name, self.step.was) for name in self.kind.states)

    @cached_property
    def kept_after(self) -> dict[str, Bool]:
        """Return each promise about the new version and the step, by its name."""
        states = {name: self.state(name, self.step.now) for name in self.kind.states}
        steps = {
            name: promise.of_step(self.step)
            for name, promise in self.kind.steps.items()
            if promise.of_step
        }
        return {**states, **steps}

    @cached_property
    def accepted(self) -> Mapping[Subresource, z3.Solver]:
        """Return solvers that know of all accepted writes to what keeps the promises."""
        return {
            subresource: new_solver(
                (*self.assumed(subresource), *self.kept_before, *self.rules[subresource].values())
            )
            for subresource in Subresource
        }

    def state(self, name: str, version: Seen) -> Bool:
        """Return one promise about a version."""
        formula = self.kind.states[name].of_state
        assert formula is not None
        return formula(version)


def _transition_rules(kind: Kind, subresource: Subresource, step: Step) -> dict[str, Bool]:
    if subresource is not Subresource.STATUS:
        return {}
    phases = {
        "self": Term(step.now.entry("status.phase").value),
        "oldSelf": Term(step.was.entry("status.phase").value),
    }
    return {rule.id: obeyed(rule.expression, phases, {}) for rule in kind.rules.of_phases}


def _policy_rules(
    kind: Kind, subresource: Subresource, step: Step, atoms: Mapping[Node, Symbol]
) -> dict[str, Bool]:
    scope: Scope = {"object": Term(step.now.value), "oldObject": Term(step.was.value)}
    return {
        name: formula
        for policy in kind.rules.policies[subresource]
        for name, formula in policy_formulas(policy, scope, atoms, kind.not_translated)
    }


def policy_formulas(
    policy: AdmissionPolicy,
    scope: Scope,
    atoms: Mapping[Node, Symbol],
    left_out: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, Bool]]:
    """Yield each rule's formula: it is obeyed, or a condition keeps the request from the policy."""
    translation = Translation(atoms)
    conditions = [
        translation.term(parse(expand_names(text)), scope) for text in policy.conditions.values()
    ]
    asked = all_of(*(cast("Truth", one.value).is_true for one in conditions))
    sound = all_of(*(negation(one.fails) for one in conditions))
    variables: dict[str, Entry] = {}
    within = {**scope, "variables": Term(Record(variables))}
    for name, text in policy.variables.items():
        value = translation.term(parse(expand_names(text)), within)
        variables[name] = Entry(negation(value.fails), value.value)
    for rule in policy.rules:
        if rule.id not in left_out:
            yield rule.id, all_of(sound, implies(asked, obeyed(rule.expression, within, atoms)))


@dataclass(frozen=True)
class Theorem:
    """A promise that is proven, and how much time of the CPU that took."""

    name: str
    sentence: str
    seconds: float


def prove_steps(symbolic: SymbolicRules) -> Iterator[Theorem]:
    """Prove that accepted writes keep each promise."""
    for name in symbolic.kind.promises:
        yield prove_step(symbolic, name)


def prove_step(symbolic: SymbolicRules, name: str) -> Theorem:
    """Prove that accepted writes keep one promise."""
    started = time.process_time()
    kept = symbolic.kept_after[name]
    for subresource, solver in symbolic.accepted.items():
        solver.push()
        solver.add(negation(kept))
        model = _model(solver)
        solver.pop()
        if model:
            raise ProofError(f"{name} is not kept by {_told(symbolic, model, subresource)}")
    return Theorem(name, symbolic.kind.promises[name].sentence, time.process_time() - started)


def prove_first_question(symbolic: SymbolicRules) -> Theorem:
    """Prove that what a policy asks before its rules lets nothing pass that a rule refuses."""
    started = time.process_time()
    scope: Scope = {
        "object": Term(symbolic.step.now.value),
        "oldObject": Term(symbolic.step.was.value),
    }
    for subresource, policies in symbolic.kind.rules.policies.items():
        for policy in policies:
            if policy.checks_rules_first:
                passed = obeyed(all_rules_hold(policy.rules), scope, {})
                every = (symbolic.rules[subresource][rule.id] for rule in policy.rules)
                premises = (*symbolic.assumed(subresource), passed)
                if model := solve(*premises, negation(all_of(*every))):
                    told = _told(symbolic, model, subresource)
                    raise ProofError(f"{policy.name} is not asked about {told}")
    sentence = "What a policy asks first lets no write pass that one of its rules refuses."
    return Theorem("first-question", sentence, time.process_time() - started)


def _told(symbolic: SymbolicRules, model: z3.ModelRef, subresource: Subresource) -> str:
    """Return a write as text: who writes what over what."""
    rendering, schema, half = Rendering(model), symbolic.kind.schema(), subresource.value
    was, now = (rendering.object(one.value, schema) for one in (symbolic.old, symbolic.new))
    changes = [
        f"  {half}.{name}: {json.dumps(was[half].get(name))} -> {json.dumps(now[half].get(name))}"
        for name in sorted({*was[half], *now[half]})
        if was[half].get(name) != now[half].get(name)
    ]
    writer = rendering.requester(symbolic.step)
    return "\n".join([f"a write of the {half} by {writer}:", *changes, f"  of {json.dumps(was)}"])


def prove_creation(kind: Kind = JOB) -> Theorem:
    """Prove that a new object keeps all promises about states, and needs each rule for that."""
    started = time.process_time()
    created, rules = new_object(kind)
    version = Seen(unknown_object("new", kind.schema()).value)
    formulas = {name: one.of_state(version) for name, one in kind.states.items() if one.of_state}
    for name, formula in formulas.items():
        if model := solve(*created, *rules.values(), negation(formula)):
            raise ProofError(f"{name} is not kept by a new {kind.name}: {model}")
    broken = negation(all_of(*formulas.values()))
    for left_out in rules:
        others = (formula for name, formula in rules.items() if name != left_out)
        if not solve(*created, *others, broken):
            raise ProofError(f"{left_out} is not needed")
    sentence = f"A new {kind.name} keeps all of these."
    return Theorem("created", sentence, time.process_time() - started)


def new_object(kind: Kind) -> tuple[tuple[Bool, ...], dict[str, Bool]]:
    """Return what holds of a new object by its schema, and the rules of creation."""
    unknown = unknown_object("new", kind.schema())
    status = cast("Record", unknown.value.fields["status"].value)
    schema = child(child(kind.schema(), "properties"), "status")
    bare: list[Bool] = []
    for name, below in child(schema, "properties").items():
        entry, default = status.fields[name], as_object(below).get("default")
        if default is None:
            bare.append(negation(entry.present))
        elif isinstance(entry.value, Choice):
            bare.append(entry.value.options[str(default)])
        else:
            bare.append(Seen(unknown.value).number(f"status.{name}") == default)
    named = Entry(TRUE, Choice({kind.name: TRUE}))
    scope = {
        "object": Term(Record({**unknown.value.fields, "kind": named})),
        "request": Term(Record({"operation": Entry(TRUE, Choice({"CREATE": TRUE}))})),
    }
    rules = dict(policy_formulas(kind.creation, scope, {}, kind.not_translated))
    return (*unknown.demands, *bare), rules


def solve(*conditions: Bool) -> z3.ModelRef | None:
    """Return values that meet all conditions, None if there are none."""
    return _model(new_solver(conditions))


def _model(solver: z3.Solver) -> z3.ModelRef | None:
    answer = solver.check()
    if answer == z3.unknown:
        raise ProofError(f"no answer: {solver.reason_unknown()}")
    return solver.model() if answer == z3.sat else None


def new_solver(conditions: Iterable[Bool]) -> z3.Solver:
    """Return a solver that gives the same answer each time."""
    solver = z3.Solver()
    solver.set("rlimit", MAX_EFFORT)
    solver.add(*conditions)
    return solver
