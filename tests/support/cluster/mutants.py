"""Policies and CRDs that lack one rule, installed beside the real ones or in their place."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from asyncjob.rules.policies import POLICIES
from asyncjob.rules.policy import ADMISSION_API_VERSION, AdmissionPolicy
from asyncjob.schema.crd import CRD_RULES, CUSTOM_RESOURCES, CrdRule, crd
from support.cluster.api import Client

LABEL = "asyncjob.dev/lacks"
"""On a namespace: which policy is replaced there by one that lacks a rule."""

_POLICIES = f"/apis/{ADMISSION_API_VERSION}/validatingadmissionpolicies"
_BINDINGS = f"/apis/{ADMISSION_API_VERSION}/validatingadmissionpolicybindings"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Manifest = dict[str, Any]


@contextmanager
def real_policies_step_aside(admin: Client, jobs: Manifest | None = None) -> Iterator[None]:
    """Have the real policies leave namespaces alone that are labelled with their name.

    `jobs` is a selector of the objects that they apply to elsewhere.
    """
    for policy in POLICIES:
        elsewhere = {"key": LABEL, "operator": "NotIn", "values": [policy.name]}
        _limit(admin, policy.name, {"matchExpressions": [elsewhere]}, jobs)
    try:
        yield
    finally:
        for policy in POLICIES:
            _limit(admin, policy.name, None)


def _limit(
    admin: Client, name: str, selector: Manifest | None, jobs: Manifest | None = None
) -> None:
    objects = {"objectSelector": jobs} if jobs else {}
    resources = {"namespaceSelector": selector, **objects} if selector else None
    admin.merge(f"{_BINDINGS}/{name}", {"spec": {"matchResources": resources}}).object()


def install(
    admin: Client, policy: AdmissionPolicy, rule: str, namespace: str, jobs: Manifest | None = None
) -> str:
    """Install the policy less one rule for one namespace; return its name there.

    `jobs` is a selector of the objects that it applies to.
    """
    lesser = policy.without(rule)
    name = f"{namespace}.{policy.name}"
    if lesser.rules:
        body, binding = (_plain(manifest) for manifest in lesser.manifests())
        only = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        objects = {"objectSelector": jobs} if jobs else {}
        resources = {"namespaceSelector": only, **objects}
        binding["spec"] |= {"policyName": name, "matchResources": resources}
        for path, manifest in ((_POLICIES, body), (_BINDINGS, binding)):
            admin.create(path, {**manifest, "metadata": {"name": name}}).object()
    return name


def remove(admin: Client, name: str) -> None:
    """Remove what `install` installed."""
    for path in (_BINDINGS, _POLICIES):
        admin.delete(f"{path}/{name}")


def replace_crds(admin: Client, rules: tuple[CrdRule, ...] = CRD_RULES) -> None:
    """Put CRDs with these rules in place."""
    for resource in CUSTOM_RESOURCES:
        wanted = _plain(crd(resource, rules))
        path = f"{_CRDS}/{wanted['metadata']['name']}"
        admin.merge(path, {"spec": {"versions": wanted["spec"]["versions"]}}).object()


def _plain(manifest: Any) -> Manifest:
    copied: Manifest = json.loads(json.dumps(manifest))
    return copied
