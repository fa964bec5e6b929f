"""Policies that lack one rule, in some namespaces, and CRDs that lack one.

Each rule is a policy of its own there, which leaves those alone that are to lack it. A copy of a
whole policy for each of its rules would have the API server compile each rule dozens of times.
"""

import json
from dataclasses import replace
from typing import Any

from asyncjob.rules.policies import POLICIES
from asyncjob.rules.policy import ADMISSION_API_VERSION, AdmissionPolicy
from asyncjob.rules.rule import Rule
from asyncjob.schema.crd import CRD_RULES, CUSTOM_RESOURCES, CrdRule, crd
from support.cluster.api import Answer, Client
from support.cluster.identities import Space

LACKS = "asyncjob.dev/lacks"
"""On a namespace: the rule that does not hold there."""

SETTING_UP = "asyncjob.dev/setting-up"
"""On a job: no policy applies to it yet, so that it can be brought into any state."""

_OTHER_JOBS = {"matchExpressions": [{"key": SETTING_UP, "operator": "DoesNotExist"}]}

_POLICIES = f"/apis/{ADMISSION_API_VERSION}/validatingadmissionpolicies"
_BINDINGS = f"/apis/{ADMISSION_API_VERSION}/validatingadmissionpolicybindings"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Manifest = dict[str, Any]


def install(admin: Client) -> None:
    """Have each rule be a policy of its own, not the real ones, wherever one is lacked."""
    for policy in POLICIES:
        elsewhere = {"key": LACKS, "operator": "DoesNotExist"}
        binding = {"spec": {"matchResources": _resources(elsewhere)}}
        admin.merge(f"{_BINDINGS}/{policy.name}", binding).object()
        for rule in policy.rules:
            _install_alone(admin, policy, rule)


def uninstall(admin: Client) -> None:
    """Have the real policies apply everywhere again."""
    for policy in POLICIES:
        binding: Manifest = {"spec": {"matchResources": None}}
        admin.merge(f"{_BINDINGS}/{policy.name}", binding).object()
        for rule in policy.rules:
            for path in (_BINDINGS, _POLICIES):
                admin.delete(f"{path}/{policy_of(rule.id)}")


def policy_of(rule: str) -> str:
    """Return the name of the policy that is this rule alone."""
    return f"{_slug(rule)}.alone.asyncjob.dev"


def is_refused_by(rule: str, answer: Answer) -> bool:
    """Return whether the policy that is this rule alone has refused a write."""
    return f"'{policy_of(rule)}'" in answer.message


def namespace_without(admin: Client, rule: str, prefix: str) -> Space:
    """Create a namespace where all rules of policies hold but one; its name begins so."""
    space = Space(f"{prefix}-{_slug(rule)}", admin).create()
    space.label(asyncjob_dev__lacks=rule)
    return space


def replace_crds(admin: Client, without: str = "") -> None:
    """Put CRDs in place that lack one rule, or none."""
    rules: tuple[CrdRule, ...] = tuple(one for one in CRD_RULES if one.rule.id != without)
    for resource in CUSTOM_RESOURCES:
        wanted = _plain(crd(resource, rules))
        path = f"{_CRDS}/{wanted['metadata']['name']}"
        admin.merge(path, {"spec": {"versions": wanted["spec"]["versions"]}}).object()


def _install_alone(admin: Client, policy: AdmissionPolicy, rule: Rule) -> None:
    alone = replace(policy, rules=(rule,), checks_rules_first=False)
    body, binding = (_plain(manifest) for manifest in alone.manifests())
    name = policy_of(rule.id)
    elsewhere = {"key": LACKS, "operator": "NotIn", "values": [rule.id]}
    resources = _resources({"key": LACKS, "operator": "Exists"}, elsewhere)
    binding["spec"] |= {"policyName": name, "matchResources": resources}
    for path, manifest in ((_POLICIES, body), (_BINDINGS, binding)):
        admin.create(path, {**manifest, "metadata": {"name": name}}).object()


def _resources(*namespaces: Manifest) -> Manifest:
    selector = {"matchExpressions": list(namespaces)}
    return {"namespaceSelector": selector, "objectSelector": _OTHER_JOBS}


def _slug(rule: str) -> str:
    return rule.replace(".", "-").lower()


def _plain(manifest: Any) -> Manifest:
    copied: Manifest = json.loads(json.dumps(manifest))
    return copied
