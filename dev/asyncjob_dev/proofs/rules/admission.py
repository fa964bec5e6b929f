"""Which rules the API server asks about a write, and what they say, by Google's runtime of CEL.

It is the runtime of the API server in memory, so that nothing here evaluates a rule in a way of its
own. That server stops at the first rule that refuses; here all of them are asked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

from asyncjob.names import OPERATE_VERB, WORKER_ACCOUNT
from asyncjob.rules.array_policies import ARRAY_SPEC_POLICY, ARRAY_STATUS_POLICY
from asyncjob.rules.job_policies import LIFECYCLE_POLICY, OWNERSHIP_POLICY, SPEC_POLICY
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.rules.rule import Rule, expand_names
from asyncjob.rules.transitions import TRANSITION_PAIR
from asyncjob_simulation.apiserver.admission import inlined
from asyncjob_simulation.apiserver.cel import Activation, EvaluationError, authorizer, compiled

Object = Mapping[str, Any]
"""A job or an array as the API server stores it."""


class Subresource(StrEnum):
    """What a write may change: the API server ignores the other half."""

    STATUS = "status"
    SPEC = "spec"


_NAMESPACE: Final = "model"


@dataclass(frozen=True, slots=True, eq=False)
class Rulebook:
    """The rules about changes of one kind of object."""

    policies: Mapping[Subresource, tuple[AdmissionPolicy, ...]]
    """Those that compare an object with what it was."""

    of_phases: tuple[Rule, ...] = ()
    """Rules of the CRD that do; `self` is the phase."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all rules."""
        by_policies = (
            rule for of in self.policies.values() for policy in of for rule in policy.rules
        )
        return tuple(rule.id for rule in (*self.of_phases, *by_policies))


JOB_RULES: Final = Rulebook(
    {
        Subresource.STATUS: (LIFECYCLE_POLICY, OWNERSHIP_POLICY),
        Subresource.SPEC: (SPEC_POLICY,),
    },
    (TRANSITION_PAIR,),
)
ARRAY_RULES: Final = Rulebook(
    {Subresource.STATUS: (ARRAY_STATUS_POLICY,), Subresource.SPEC: (ARRAY_SPEC_POLICY,)}
)


@dataclass(frozen=True, slots=True)
class Requester:
    """Who writes: the pod its token is bound to, and what its account is and may."""

    pod: str = ""
    pod_uid: str = ""
    operates: bool = False
    is_worker: bool = False

    def request(self) -> dict[str, Any]:
        """Return the request as rules read it."""
        account = WORKER_ACCOUNT if self.is_worker else "someone"
        bound = {"pod-name": self.pod, "pod-uid": self.pod_uid}
        extra = {
            f"authentication.kubernetes.io/{key}": [value] for key, value in bound.items() if value
        }
        user = {"username": f"system:serviceaccount:{_NAMESPACE}:{account}", "extra": extra}
        return {"namespace": _NAMESPACE, "userInfo": user}

    def may(self, question: Mapping[str, str]) -> bool:
        """Answer what rules ask the authorizer."""
        return self.operates and question["check"] == OPERATE_VERB


def broken_rules(
    subresource: Subresource,
    old: Object,
    new: Object,
    requester: Requester,
    rules: Rulebook = JOB_RULES,
) -> list[str]:
    """Return the ids of the rules that the write breaks; an error is a refusal, as in a policy."""
    phases = {"self": new["status"]["phase"], "oldSelf": old["status"]["phase"]}
    activation = Activation(
        {"object": new, "oldObject": old, "request": requester.request(), **phases}
    )
    with authorizer(requester.may):
        asked = dict(_asked(rules, subresource, activation))
        return [name for name, expression in asked.items() if not _holds(expression, activation)]


def _asked(
    rules: Rulebook, subresource: Subresource, activation: Activation
) -> Iterator[tuple[str, str]]:
    """Yield the rules that apply, each with its CEL."""
    if subresource is Subresource.STATUS:
        yield from ((rule.id, rule.expression) for rule in rules.of_phases)
    for place in range(len(rules.policies[subresource])):
        conditions, applied = _installed(rules, subresource, place)
        if all(activation.evaluate(compiled(condition)) for condition in conditions):
            yield from applied.items()


def _holds(expression: str, activation: Activation) -> bool:
    try:
        return activation.evaluate(compiled(expression)) is True
    except EvaluationError:
        return False


@cache
def _installed(
    rules: Rulebook, subresource: Subresource, place: int
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return conditions and rules of a policy, with its variables in place of their names."""
    policy = rules.policies[subresource][place]
    variables: dict[str, str] = {}
    for name, text in policy.variables.items():
        variables[name] = f"({inlined(expand_names(text), variables)})"
    conditions = tuple(expand_names(text) for text in policy.conditions.values())
    return conditions, {rule.id: inlined(rule.expression, variables) for rule in policy.rules}
