"""The two kinds whose rules are proven: what of each is translated, and what is promised of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import z3

from asyncjob import names
from asyncjob.json_types import JsonObject, as_object, child
from asyncjob.rules.array_policies import (
    ARRAY_CREATION_POLICY,
    ARRAY_DEPENDS_ON_OTHERS,
    ARRAY_SKIP,
)
from asyncjob.rules.job_policies import CREATION_POLICY
from asyncjob.rules.job_spec import CONTROL_NOT_AT_CREATION
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.schema.crd import CUSTOM_RESOURCES, crd
from asyncjob_dev.proofs.rules.admission import ARRAY_RULES, JOB_RULES, Rulebook
from asyncjob_dev.proofs.rules.array_state_promises import ARRAY_STATES
from asyncjob_dev.proofs.rules.array_step_promises import ARRAY_STEPS
from asyncjob_dev.proofs.rules.array_versions import notations
from asyncjob_dev.proofs.rules.intervals import ascends, items_of, parts_of
from asyncjob_dev.proofs.rules.state_promises import STATES
from asyncjob_dev.proofs.rules.step_promises import STEPS
from asyncjob_dev.proofs.rules.symbols import (
    Bool,
    all_of,
    any_of,
    implies,
    is_text,
    negation,
)
from asyncjob_dev.proofs.rules.versions import Promise, Seen, Step

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of objects whose rules are proven."""

    name: str
    """`AsyncJob` or `AsyncArray`."""

    rules: Rulebook
    creation: AdmissionPolicy
    """What a new object must not contain."""

    states: Mapping[str, Promise]
    """Promises about each version."""

    steps: Mapping[str, Promise]
    """Promises about each step from a version to the next."""

    file: Path
    """Where the writes are stored that one rule alone refuses."""

    tryable: Callable[[Step], Iterator[Bool]]
    """What other rules and accounts demand of such a write, so that it can be tried."""

    untranslated: str
    """Which rules this is not about, in words: they concern no change of such an object."""

    preferred: frozenset[str] = frozenset()
    """Fields that make such a write plainer; all others do by their absence."""

    not_translated: frozenset[str] = frozenset()
    """Rules of `creation` and `rules` that are left out."""

    at_most: Mapping[str, int] = field(default_factory=dict)
    """How many entries lists of the status have at most here, where a real one may have more."""

    @property
    def promises(self) -> Mapping[str, Promise]:
        """Return all of them, by name."""
        return {**self.states, **self.steps}

    @property
    def asks_first(self) -> bool:
        """Return whether one of its policies asks one question before its rules."""
        policies = (policy for of in self.rules.policies.values() for policy in of)
        return any(policy.checks_rules_first for policy in policies)

    def schema(self) -> JsonObject:
        """Return the schema of spec and status, as the CRD has it but for `at_most`."""
        resource = next(one for one in CUSTOM_RESOURCES if one.kind == self.name)
        versions = cast("list[JsonObject]", child(crd(resource), "spec")["versions"])
        whole = child(child(versions[0], "schema"), "openAPIV3Schema")
        halves = {name: child(whole, "properties")[name] for name in ("spec", "status")}
        status = as_object(halves["status"])
        fields = {**child(status, "properties")}
        for name, most in self.at_most.items():
            fields[name] = {**as_object(fields[name]), "maxItems": most}
        halves["status"] = {**status, "properties": fields}
        return {"type": "object", "required": list(halves), "properties": halves}


def _one_of(version: Seen, parent: str, fields: tuple[str, ...]) -> Bool:
    return cast("Bool", z3.PbEq([(version.has(f"{parent}.{name}"), 1) for name in fields], 1))


def _delays_fit(version: Seen) -> Bool:
    delays = [f"spec.retryPolicy.{name}" for name in ("initialDelaySeconds", "maxDelaySeconds")]
    fits = cast("Bool", version.number(delays[0]) <= version.number(delays[1]))
    return implies(version.has(*delays), fits)


def _tryable_jobs(step: Step) -> Iterator[Bool]:
    nobody = all_of(is_text(step.pod, ""), is_text(step.pod_uid, ""))
    named = all_of(negation(is_text(step.pod, "")), negation(is_text(step.pod_uid, "")))
    apart = cast("Bool", step.pod.code != step.pod_uid.code)
    worker = all_of(step.is_worker, negation(step.operates), named, apart)
    yield any_of(worker, all_of(negation(step.is_worker), step.operates, nobody))
    for version in (step.was, step.now):
        one = _one_of(version, "spec.payloadFrom", ("secretKeyRef", "configMapKeyRef", "uri"))
        yield implies(version.has("spec.payloadFrom"), one)
        yield negation(version.has("spec.notBefore", "spec.notAfter"))
        depends = version.entry("spec.dependsOn")
        yield implies(depends.present, cast("Bool", cast("Any", depends.value).size <= 1))
        yield _delays_fit(version)


_SMALL: Final = 9
"""Items and chunks at most in an array that is tried: its lists are written out."""
_FEW: Final = 3
"""Parts at most of interval notation in it."""


def _tryable_arrays(step: Step) -> Iterator[Bool]:
    yield all_of(is_text(step.pod, ""), is_text(step.pod_uid, ""))
    yield cast("Bool", step.operates != step.is_worker)
    yield from (implies(there, ascends(code)) for there, code in notations(step.was))
    for version in (step.was, step.now):
        yield negation(version.has("spec.maxFailed", "spec.maxFailedPercent"))
        yield negation(version.has("spec.items.skip"))
        depends = version.entry("spec.dependsOn")
        yield implies(depends.present, cast("Bool", cast("Any", depends.value).size == 0))
        yield _delays_fit(version)
        counts = (
            "next",
            "succeeded",
            "failed",
            "failedUnlisted",
            "generation",
            "total",
            "redrives",
        )
        yield from (cast("Bool", version.number(f"status.{name}") <= _SMALL) for name in counts)
        for _, code in notations(version):
            items, parts = items_of(code), parts_of(code)
            small = (code != 0, items <= _SMALL, items >= -_SMALL, parts <= _FEW)
            yield all_of(*(cast("Bool", one) for one in small))


JOB: Final = Kind(
    names.JOB_KIND,
    JOB_RULES,
    CREATION_POLICY,
    STATES,
    STEPS,
    _FOLDER / "steps.json",
    _tryable_jobs,
    "the rules of cron jobs, of roles and metadata, and those of a spec by itself",
    # It compares a list of any length with the name of the job.
    not_translated=frozenset({"spec.depends-on-others"})
    | {rule.id for rule in CREATION_POLICY.rules if rule != CONTROL_NOT_AT_CREATION},
)
ARRAY: Final = Kind(
    names.ARRAY_KIND,
    ARRAY_RULES,
    ARRAY_CREATION_POLICY,
    ARRAY_STATES,
    ARRAY_STEPS,
    _FOLDER / "array_steps.json",
    _tryable_arrays,
    "those of a spec by itself",
    # They read each number of a text, and compare a list of any length with the name of the array.
    not_translated=frozenset({ARRAY_SKIP.id, ARRAY_DEPENDS_ON_OTHERS.id}),
    preferred=frozenset({"spec.items.count"}),
    at_most={"open": 10, "suspects": 10},
)
KINDS: Final = (JOB, ARRAY)
