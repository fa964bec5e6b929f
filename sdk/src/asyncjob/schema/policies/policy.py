"""A policy as data, and its two manifests: without a binding nothing is enforced."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from asyncjob.json_types import Json
from asyncjob.schema.laws.expressions import expand
from asyncjob.schema.laws.law import Law, obeyed

API_VERSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Target:
    """Resources of one API group."""

    group: str
    version: str
    resources: tuple[str, ...]


@dataclass(frozen=True)
class Policy:
    """Laws that hold for some requests.

    `variables` are CEL by name, each may use those before it; the request has to meet all
    `conditions`.

    `hot` is for the way every job takes: the policy then applies only to requests that break a
    law, which one condition finds out. Dozens of validations of their own cost several times what
    the comparisons in them do, and messages are evaluated even where no law is broken.
    """

    name: str
    title: str
    targets: tuple[Target, ...]
    operations: tuple[str, ...]
    laws: tuple[Law, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    hot: bool = False

    def without(self, law_id: str) -> "Policy":
        """Return the same less one law; tests show so that each of them is needed."""
        return replace(self, laws=tuple(law for law in self.laws if law.id != law_id))

    def manifests(self) -> tuple[dict[str, Json], dict[str, Json]]:
        """Return the policy and its binding."""
        metadata: Json = {
            "name": self.name,
            "annotations": {
                "helm.sh/resource-policy": "keep",
                "kubernetes.io/description": self.title,
            },
        }
        policy: dict[str, Json] = {
            "apiVersion": API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [self._match(one) for one in self.targets]},
                **self._named("matchConditions", self._conditions()),
                **self._named("variables", self.variables),
                "validations": [self._validation(law) for law in self.laws],
            },
        }
        binding: dict[str, Json] = {
            "apiVersion": API_VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": self.name, "validationActions": ["Deny"]},
        }
        return policy, binding

    def _conditions(self) -> dict[str, str]:
        broken = {"a-law-is-broken": f"!({obeyed(self.laws)})"} if self.hot else {}
        return {**self.conditions, **broken}

    def _match(self, target: Target) -> Json:
        return {
            "apiGroups": [target.group],
            "apiVersions": [target.version],
            "operations": list(self.operations),
            "resources": list(target.resources),
            "scope": "Namespaced",
        }

    def _named(self, key: str, expressions: Mapping[str, str]) -> dict[str, Json]:
        entries = [
            {"name": name, "expression": expand(expression)}
            for name, expression in expressions.items()
        ]
        return {key: entries} if entries else {}

    def _validation(self, law: Law) -> Json:
        expression = law.message_expression
        return {
            "expression": law.expression,
            "message": law.text,
            **({"messageExpression": expression} if expression else {}),
            **({"reason": "Forbidden"} if law.forbids else {}),
        }
