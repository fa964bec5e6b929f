"""Whether the admission policies are there, bound, and those of this release."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob.cli.doctor.differences import differences
from asyncjob.cli.doctor.finding import Finding, join_some, ok, problem, warning
from asyncjob.errors import ForbiddenError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.schema.policies.book import POLICIES
from asyncjob.schema.policies.policy import AdmissionPolicy

POLICIES_CHECK: Final = "Policies"
APPLY_CRDS: Final = "kubectl apply -f crds/"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """Policies and bindings by name."""

    policies: Mapping[str, JsonObject]
    bindings: Mapping[str, JsonObject]


async def fetch_policy_facts(session: KubeSession) -> PolicyFacts | None:
    """Return what is installed, None where we may not see it."""
    try:
        policies = await session.get(f"{_ADMISSION}/validatingadmissionpolicies")
        bindings = await session.get(f"{_ADMISSION}/validatingadmissionpolicybindings")
    except ForbiddenError:
        return None
    return PolicyFacts(_by_name(policies), _by_name(bindings))


def _by_name(answer: JsonObject) -> dict[str, JsonObject]:
    found = [as_object(one) for one in items(answer, "items")]
    return {text(child(one, "metadata"), "name"): one for one in found}


def check_policies(facts: PolicyFacts | None) -> list[Finding]:
    """Return what is missing, what refuses nothing, and what differs."""
    if facts is None:
        needed = "needs list on validatingadmissionpolicies and their bindings"
        return [warning(POLICIES_CHECK, "no permission to see them", needed)]
    findings = list(_policy_findings(facts))
    return findings or [
        ok(POLICIES_CHECK, f"all {len(POLICIES)} bound to deny, those of this release")
    ]


def _policy_findings(facts: PolicyFacts) -> Iterator[Finding]:
    missing = [one.name for one in POLICIES if one.name not in facts.policies]
    toothless = [
        one.name for one in POLICIES if one.name not in missing and not _denies(one.name, facts)
    ]
    if missing:
        yield problem(POLICIES_CHECK, f"missing: {join_some(missing)}", APPLY_CRDS)
    if toothless:
        yield problem(
            POLICIES_CHECK, f"not bound to deny everywhere: {join_some(toothless)}", APPLY_CRDS
        )
    there = [one for one in POLICIES if one.name in facts.policies]
    broken = [one.name for one in there if _has_type_errors(facts.policies[one.name])]
    if broken:
        yield problem(
            POLICIES_CHECK, f"the API server finds mistakes in {join_some(broken)}", APPLY_CRDS
        )
    other = [text for one in there for text in _policy_differences(one, facts.policies[one.name])]
    if other:
        yield warning(
            POLICIES_CHECK, f"not those of this release: {join_some(other, 3)}", APPLY_CRDS
        )


def _denies(policy: str, facts: PolicyFacts) -> bool:
    """Return whether a binding refuses what the policy forbids, in every namespace."""
    specs = [child(one, "spec") for one in facts.bindings.values()]
    return any(
        text(one, "policyName") == policy
        and "Deny" in items(one, "validationActions")
        and not _is_narrowed(child(one, "matchResources"))
        for one in specs
    )


def _is_narrowed(match: JsonObject) -> bool:
    """Return whether a binding leaves some namespaces or objects out."""
    selectors = (child(match, "namespaceSelector"), child(match, "objectSelector"))
    return any(selectors) or any(
        items(match, key) for key in ("resourceRules", "excludeResourceRules")
    )


def _has_type_errors(policy: JsonObject) -> bool:
    checking = child(child(policy, "status"), "typeChecking")
    return bool(items(checking, "expressionWarnings"))


def _policy_differences(policy: AdmissionPolicy, installed: JsonObject) -> list[str]:
    expected = child(policy.manifests()[0], "spec")
    return [f"{policy.name} {path}" for path in differences(expected, installed.get("spec"))][:1]
