"""Each rule is needed: without it a write is accepted that breaks a promise.

What Z3 finds is made as plain as possible (little is there, and little changes), written out as
JSON, and judged again by a runtime of CEL: exactly the one rule refuses it. The steps are kept in
`steps.json` and `array_steps.json`, from where tests try them on a real API server.
"""

import json
import time
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Listed
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

import z3

from asyncjob_dev.proofs.rules.admission import Requester, Subresource, broken_rules
from asyncjob_dev.proofs.rules.induction import ProofError, SymbolicRules, new_solver
from asyncjob_dev.proofs.rules.kinds import JOB, Kind
from asyncjob_dev.proofs.rules.render import Rendering
from asyncjob_dev.proofs.rules.symbols import (
    Amount,
    Bool,
    Choice,
    Code,
    Record,
    Sequence,
    Symbol,
    Truth,
    all_of,
    is_same_entry,
    negation,
)
from asyncjob_dev.proofs.rules.versions import Seen

OWN_POD: Final = "(name of the writer's pod)"
OWN_UID: Final = "(UID of the writer's pod)"
MAX_ENTRIES: Final = 3
"""Entries of each list in a step that is written out."""


@dataclass(frozen=True)
class Counterexample:
    """A write that only one rule refuses, and the promises it would break."""

    rule: str
    subresource: Subresource
    breaks: tuple[str, ...]
    writer: str
    """`worker` or `operator`."""

    old: dict[str, Any]
    new: dict[str, Any]

    @property
    def requester(self) -> Requester:
        """Who writes, as rules see them."""
        if self.writer == "operator":
            return Requester(operates=True)
        return Requester(pod=OWN_POD, pod_uid=OWN_UID, is_worker=True)

    def refused_by(self, kind: Kind = JOB) -> list[str]:
        """Return the rules of its kind that refuse it."""
        return broken_rules(self.subresource, self.old, self.new, self.requester, kind.rules)


def needed_rules(symbolic: SymbolicRules) -> Iterator[tuple[str, float]]:
    """Yield each rule without which a promise is broken, and how long it took to see that."""
    promised = all_of(*symbolic.kept_after.values())
    for subresource in Subresource:
        rules = symbolic.rules[subresource]
        solver = new_solver((*symbolic.assumed(subresource), *symbolic.kept_before))
        solver.add(negation(promised))
        for rule in rules:
            started = time.process_time()
            solver.push()
            solver.add(*(formula for name, formula in rules.items() if name != rule))
            answer = solver.check()
            if answer != z3.sat:
                raise _unanswered(rule, solver, answer)
            solver.pop()
            yield rule, time.process_time() - started


def find_steps(symbolic: SymbolicRules) -> Iterator[Counterexample]:
    """Yield a plain step for each rule that it alone refuses.

    Lists are short in these, which makes the question small; it is asked of all objects elsewhere.
    """
    promised = symbolic.kept_after
    for subresource in Subresource:
        shorten = _Shortening((symbolic.old.value, symbolic.new.value))
        rules = {name: shorten(said) for name, said in symbolic.rules[subresource].items()}
        given = (
            *symbolic.assumed(subresource),
            *symbolic.kept_before,
            *symbolic.kind.tryable(symbolic.step),
        )
        base = [shorten(said) for said in given]
        preferences = [shorten(one) for one in _preferences(symbolic, subresource)]
        broken = shorten(negation(all_of(*promised.values())))
        for rule in rules:
            others = (said for name, said in rules.items() if name != rule)
            solver = new_solver((*base, *shorten.bounds, *others, broken))
            solver.set(**{"core.minimize": True})
            model = _plainest(solver, preferences, rule)
            breaks = tuple(name for name, said in promised.items() if _is_false(model, said))
            found = _written_out(symbolic, model, rule, subresource, breaks)
            if (said := found.refused_by(symbolic.kind)) != [rule]:
                raise ProofError(f"{rule}: the runtime of CEL says {said} of {found}")
            yield found


class _Shortening:
    """Rewrites formulas for lists of at most three entries: the rest of each is fixed."""

    def __init__(self, objects: Iterable[Record]) -> None:
        self._fixed: list[tuple[z3.ExprRef, z3.ExprRef]] = []
        self.bounds: list[Bool] = []
        for value in objects:
            self._visit(value, fixed=False)

    def __call__(self, formula: Bool) -> Bool:
        return cast("Bool", z3.simplify(z3.substitute(formula, *self._fixed)))

    def _visit(self, value: Symbol, *, fixed: bool) -> None:
        match value:
            case Record(fields):
                for field in fields.values():
                    self._fix(field.present, fixed=fixed)
                    self._visit(field.value, fixed=fixed)
            case Sequence(size, entries) if entries:
                self.bounds.append(cast("Bool", size <= MAX_ENTRIES))
                for place, entry in enumerate(entries):
                    self._visit(entry, fixed=fixed or place >= MAX_ENTRIES)
            case Truth(is_true):
                self._fix(is_true, fixed=fixed)
            case Amount(number) | Code(number):
                self._fix(number, fixed=fixed)
            case Choice(options):
                chosen = next(iter(options.values())).arg(0)
                self._fix(chosen, fixed=fixed)

    def _fix(self, unknown: z3.ExprRef, *, fixed: bool) -> None:
        if not fixed or not z3.is_const(unknown) or unknown.decl().kind() != z3.Z3_OP_UNINTERPRETED:
            return
        plain = z3.BoolVal(val=False) if z3.is_bool(unknown) else z3.IntVal(1)
        self._fixed.append((unknown, plain))


def _is_false(model: z3.ModelRef, formula: Bool) -> bool:
    return bool(z3.is_false(model.eval(formula, model_completion=True)))


def _preferences(symbolic: SymbolicRules, subresource: Subresource) -> Iterator[Bool]:
    """Yield what makes a step plain: nothing changes, nothing is there."""
    step = symbolic.step
    half = "spec" if subresource is Subresource.SPEC else "status"
    fields = cast("Record", step.was.entry(half).value).fields
    yield from (step.kept(f"{half}.{name}") for name in fields)
    for name in ("spec", "status"):
        for version in (step.was, step.now):
            yield from _absences(version, name, symbolic.kind.preferred)
    if symbolic.kind is JOB:
        yield from (step.is_pod_of(version) for version in (step.was, step.now))
    yield is_same_entry(step.was.entry("status"), step.now.entry("status"))


def _absences(version: Seen, half: str, preferred: frozenset[str]) -> Iterator[Bool]:
    for name, entry in cast("Record", version.entry(half).value).fields.items():
        if not z3.is_true(entry.present):
            is_preferred = f"{half}.{name}" in preferred
            yield entry.present if is_preferred else negation(entry.present)
        elif isinstance(entry.value, Code):
            yield cast("Bool", entry.value.code == 1)
        if isinstance(entry.value, Record):
            yield from _absences(version, f"{half}.{name}", preferred)


def _plainest(solver: z3.Solver, preferences: Listed[Bool], rule: str) -> z3.ModelRef:
    """Return a model that meets as many preferences as go together, the first ones rather."""
    marks = [z3.Bool(f"preference {place}") for place in range(len(preferences))]
    for mark, preference in zip(marks, preferences, strict=True):
        solver.add(z3.Implies(mark, preference))
    while (answer := solver.check(*marks)) == z3.unsat:
        clash = {str(one) for one in solver.unsat_core()}
        if not clash:
            raise _unanswered(rule, solver, answer)
        last = max(place for place, mark in enumerate(marks) if str(mark) in clash)
        del marks[last]
    if answer != z3.sat:
        raise _unanswered(rule, solver, answer)
    return solver.model()


def _unanswered(rule: str, solver: z3.Solver, answer: z3.CheckSatResult) -> ProofError:
    """Return the error for a rule without which no broken promise is found."""
    if answer == z3.unsat:
        return ProofError(f"{rule} is not needed: every promise is kept without it")
    return ProofError(f"{rule}: no answer: {solver.reason_unknown()}")


def _written_out(
    symbolic: SymbolicRules,
    model: z3.ModelRef,
    rule: str,
    subresource: Subresource,
    breaks: tuple[str, ...],
) -> Counterexample:
    rendering, schema = Rendering(model), symbolic.kind.schema()
    writer = rendering.requester(symbolic.step)
    names = {writer.pod: OWN_POD, writer.pod_uid: OWN_UID} if writer.pod else {}
    old, new = (
        _named(rendering.object(version.value, schema), names)
        for version in (symbolic.old, symbolic.new)
    )
    return Counterexample(
        rule, subresource, breaks, "operator" if writer.operates else "worker", old, new
    )


def _named(value: Any, names: dict[str, str]) -> Any:
    """Return the object with the writer's pod named in its lease."""
    lease = value["status"].get("lease")
    if lease:
        for key in ("holder", "holderUID"):
            lease[key] = names.get(lease[key], lease[key])
    return value


def write_file(kind: Kind, found: Iterable[Counterexample]) -> None:
    """Store the steps."""
    body = [asdict(one) for one in found]
    kind.file.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_file(kind: Kind = JOB) -> tuple[Counterexample, ...]:
    """Return the stored steps."""
    body = json.loads(kind.file.read_text(encoding="utf-8"))
    return tuple(
        Counterexample(
            **{
                **one,
                "subresource": Subresource(one["subresource"]),
                "breaks": tuple(one["breaks"]),
            }
        )
        for one in body
    )
