"""An admission policy as data, its two manifests, and CEL for who makes a request.

Without its binding a policy enforces nothing, so both are always generated together. Who makes a
request is told by the pod that the token is bound to, by the name of the ServiceAccount, and by the
virtual verbs of operator and gateway.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from asyncjob.json_types import Json
from asyncjob.names import GROUP, JOBS, OPERATE_VERB, VOUCH_VERB, WORKER_ACCOUNT
from asyncjob.rules.rule import Rule, all_rules_hold, expand_names

_EXTRA_PREFIX: Final = "authentication.kubernetes.io"


def _extra(key: str) -> str:
    # The key is absent for users without extras.
    return f"request.userInfo.?extra[?'{_EXTRA_PREFIX}/{key}'][?0].orValue('')"


REQUEST_POD: Final = _extra("pod-name")
REQUEST_POD_UID: Final = _extra("pod-uid")

IS_WORKER: Final = (
    f"request.userInfo.username.matches('^system:serviceaccount:[^:]+:{WORKER_ACCOUNT}(-[^:]*)?$')"
)
"""By the name of the ServiceAccount, which costs no call to the authorizer."""


def _may(verb: str) -> str:
    return (
        f"authorizer.group('{GROUP}').resource('{JOBS}').namespace(request.namespace)"
        f".check('{verb}').allowed()"
    )


def may_on(resource: str, verb: str, subresource: str = "", *, named: bool = True) -> str:
    """Return that who asks may do something with resources of ours in the request's namespace.

    `resource` is CEL; `named`: with the very object of the request.
    """
    below = f".subresource('{subresource}')" if subresource else ""
    name = ".name(object.metadata.?name.orValue(''))" if named else ""
    return (
        f"authorizer.group('{GROUP}').resource({resource}){below}.namespace(request.namespace)"
        f"{name}.check('{verb}').allowed()"
    )


MAY_OPERATE: Final = _may(OPERATE_VERB)
MAY_VOUCH: Final = _may(VOUCH_VERB)


ADMISSION_API_VERSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class PolicyTarget:
    """Resources of one API group."""

    group: str
    version: str
    resources: tuple[str, ...]


@dataclass(frozen=True)
class AdmissionPolicy:
    """Rules for some requests.

    `variables` are CEL by name, each may use those before it; the request has to meet all
    `conditions`.

    `checks_rules_first` is for the way every job takes: the policy then applies only to requests
    that break a rule, which one condition finds out. Dozens of separate validations cost several
    times what their comparisons do, and messages are evaluated even where no rule is broken.
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
        """Return the policy without one rule, with which tests show that each rule is needed."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.id != rule_id))

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
                "validations": [self._validation(rule) for rule in self.rules],
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
            {"a-rule-is-broken": f"!({all_rules_hold(self.rules)})"}
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
