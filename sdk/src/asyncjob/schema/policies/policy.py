"""A policy as data, and its two manifests: without a binding nothing is enforced."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from asyncjob.json_types import Json
from asyncjob.schema.laws.expressions import expand_names
from asyncjob.schema.laws.law import Rule, all_rules_hold

ADMISSION_API_VERSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class PolicyTarget:
    """Resources of one API group."""

    group: str
    version: str
    resources: tuple[str, ...]


@dataclass(frozen=True)
class AdmissionPolicy:
    """Laws that hold for some requests.

    `variables` are CEL by name, each may use those before it; the request has to meet all
    `conditions`.

    `checks_rules_first` is for the way every job takes: the policy then applies only to requests
    that break a law, which one condition finds out. Dozens of validations of their own cost several
    times what the comparisons in them do, and messages are evaluated even where no law is broken.
    """

    name: str
    title: str
    targets: tuple[PolicyTarget, ...]
    operations: tuple[str, ...]
    rules: tuple[Rule, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    checks_rules_first: bool = False

    def without(self, rule_id: str) -> "AdmissionPolicy":
        """Return the same less one law; tests show so that each of them is needed."""
        return replace(self, rules=tuple(law for law in self.rules if law.id != rule_id))

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
            "apiVersion": ADMISSION_API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [self._resource_rule(one) for one in self.targets]
                },
                **self._named_expressions("matchConditions", self._match_conditions()),
                **self._named_expressions("variables", self.variables),
                "validations": [self._validation(law) for law in self.rules],
            },
        }
        binding: dict[str, Json] = {
            "apiVersion": ADMISSION_API_VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": self.name, "validationActions": ["Deny"]},
        }
        return policy, binding

    def _match_conditions(self) -> dict[str, str]:
        broken = (
            {"a-law-is-broken": f"!({all_rules_hold(self.rules)})"}
            if self.checks_rules_first
            else {}
        )
        return {**self.conditions, **broken}

    def _resource_rule(self, target: PolicyTarget) -> Json:
        return {
            "apiGroups": [target.group],
            "apiVersions": [target.version],
            "operations": list(self.operations),
            "resources": list(target.resources),
            "scope": "Namespaced",
        }

    def _named_expressions(self, key: str, expressions: Mapping[str, str]) -> dict[str, Json]:
        entries = [
            {"name": name, "expression": expand_names(expression)}
            for name, expression in expressions.items()
        ]
        return {key: entries} if entries else {}

    def _validation(self, rule: Rule) -> Json:
        expression = rule.message_expression
        return {
            "expression": rule.expression,
            "message": rule.message_text,
            **({"messageExpression": expression} if expression else {}),
            **({"reason": "Forbidden"} if rule.is_forbidden else {}),
        }
