"""Checks that CustomResourceDefinitions and admission policies are installed and enforced.

They have to be those of this release; dry runs of forbidden writes show that they are enforced. The
API server adds defaults, so an installed object may have fields that the release does not set.
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.cli.doctor.findings import DoctorCode, Finding, join_some, ok, problem, warning
from asyncjob.errors import ApiError, ForbiddenError, InvalidError, ObjectNotFoundError
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import (
    API_VERSION,
    JOB_KIND,
    JOBS,
    OPERATOR_LEASE,
    collection_path,
    job_path,
)
from asyncjob.rules.job_policies import CREATION_POLICY, SPEC_POLICY
from asyncjob.rules.managed_fields import MANAGED_FIELDS_POLICY
from asyncjob.rules.policies import POLICIES
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.schema.crd import CUSTOM_RESOURCES, crd

RESOURCE_TYPES_CHECK: Final = "Resource types"
APPLY_RELEASE_CRDS: Final = "kubectl apply -f crds/ of the release that runs in the cluster"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class ResourceTypeFacts:
    """Names that are served, and the definitions, None where we may not see them."""

    served: frozenset[str]
    definitions: Mapping[str, JsonObject] | None


async def fetch_resource_type_facts(session: KubeSession) -> ResourceTypeFacts:
    """Ask what is served, and for the definitions."""
    try:
        answer = await session.get(f"/apis/{API_VERSION}")
    except ObjectNotFoundError:
        answer = {}
    served = frozenset(text(as_object(one), "name") for one in items(answer, "resources"))
    try:
        found = {r.plural: await _get_definition(session, r.plural) for r in CUSTOM_RESOURCES}
    except ForbiddenError:
        return ResourceTypeFacts(served, None)
    return ResourceTypeFacts(served, found)


async def _get_definition(session: KubeSession, plural: str) -> JsonObject:
    try:
        return await session.get(f"{_DEFINITIONS}/{plural}.{API_VERSION.split('/')[0]}")
    except ObjectNotFoundError:
        return {}


def check_resource_types(facts: ResourceTypeFacts) -> Finding:
    """Return whether all are served, and defined as in this release."""
    missing = [r.plural for r in CUSTOM_RESOURCES if r.plural not in facts.served]
    if missing:
        message = f"not served: {join_some(missing)}"
        return problem(RESOURCE_TYPES_CHECK, DoctorCode.NOT_INSTALLED, message, APPLY_RELEASE_CRDS)
    if facts.definitions is None:
        message = "served, but no permission to compare them with this release"
        needed = "needs get on customresourcedefinitions"
        return warning(RESOURCE_TYPES_CHECK, DoctorCode.NOT_READABLE, message, needed)
    other = [
        where
        for r in CUSTOM_RESOURCES
        for where in _definition_differences(facts.definitions[r.plural], r.plural)
    ]
    if other:
        message = f"not as in this release: {join_some(other, 3)}"
        return warning(
            RESOURCE_TYPES_CHECK,
            DoctorCode.OTHER_RELEASE,
            message,
            f"{APPLY_RELEASE_CRDS}, or use the command line of that release",
        )
    return ok(RESOURCE_TYPES_CHECK, "installed, and those of this release")


def _definition_differences(installed: JsonObject, plural: str) -> list[str]:
    """Return where a definition is not as this release has it."""
    resource = next(one for one in CUSTOM_RESOURCES if one.plural == plural)
    expected = child(crd(resource), "spec")
    return [f"{plural} {path}" for path in differences(expected, installed.get("spec"))][:3]


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
        message = "no permission to see them"
        return [warning(POLICIES_CHECK, DoctorCode.NOT_READABLE, message, needed)]
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
        message = f"missing: {join_some(missing)}"
        yield problem(POLICIES_CHECK, DoctorCode.POLICY_MISSING, message, APPLY_CRDS)
    if toothless:
        message = f"not bound to deny everywhere: {join_some(toothless)}"
        yield problem(POLICIES_CHECK, DoctorCode.POLICY_MISSING, message, APPLY_CRDS)
    there = [one for one in POLICIES if one.name in facts.policies]
    broken = [one.name for one in there if _has_type_errors(facts.policies[one.name])]
    if broken:
        message = f"the API server finds mistakes in {join_some(broken)}"
        yield problem(POLICIES_CHECK, DoctorCode.POLICY_MISTAKE, message, APPLY_CRDS)
    other = [text for one in there for text in _policy_differences(one, facts.policies[one.name])]
    if other:
        message = f"not as in this release: {join_some(other, 3)}"
        yield warning(POLICIES_CHECK, DoctorCode.OTHER_RELEASE, message, APPLY_CRDS)


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


async def fetch_drops_managed_fields(session: KubeSession) -> bool:
    """Return whether the policy is bound that takes managedFields off jobs that nobody applies.

    False as well where that may not be seen, and before Kubernetes 1.36.
    """
    try:
        bindings = await session.get(f"{_ADMISSION}/mutatingadmissionpolicybindings")
    except (ForbiddenError, ObjectNotFoundError):
        return False
    specs = [child(one, "spec") for one in _by_name(bindings).values()]
    return any(text(one, "policyName") == MANAGED_FIELDS_POLICY for one in specs)


def check_managed_fields(*, dropped: bool, elects: bool) -> list[Finding]:
    """Return what it means that jobs have no managedFields; nothing where they have.

    `elects` says whether there is a Lease by which operators are elected, and so one that keeps
    when jobs ended.
    """
    if not dropped:
        return []
    message = f"{MANAGED_FIELDS_POLICY} is in force: jobs that nobody applies have no managedFields"
    if elects:
        return [ok(POLICIES_CHECK, message)]
    message += f", and no Lease {OPERATOR_LEASE} stores when they ended"
    way = "run the operator with --leader-elect, or kubectl delete -f crds/mutating/"
    return [warning(POLICIES_CHECK, DoctorCode.AGES_NOT_STORED, message, way)]


ENFORCEMENT_CHECK: Final = "Enforcement"
DRY_RUN: Final = {"dryRun": "All"}


class ProbeResult(StrEnum):
    """What came of a forbidden write."""

    REFUSED = "refused"
    PASSED = "passed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class EnforcementFacts:
    """What came of each trial."""

    creation: ProbeResult
    change: ProbeResult


async def probe_enforcement(session: KubeSession) -> EnforcementFacts:
    """Try to create a job that begins redriven, and to change the type of one that there is."""
    return EnforcementFacts(await _probe_creation(session), await _probe_change(session))


async def _probe_creation(session: KubeSession) -> ProbeResult:
    body: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {"generateName": "asyncjob-doctor-"},
        "spec": {"type": "asyncjob-doctor", "redrive": 1},
    }
    path = collection_path(session.access.namespace, JOBS)
    return await _probe(session.create(path, body, DRY_RUN), CREATION_POLICY.name)


async def _probe_change(session: KubeSession) -> ProbeResult:
    try:
        page = await session.get(collection_path(session.access.namespace, JOBS), {"limit": "1"})
    except ApiError:
        return ProbeResult.NOT_TRIED
    for one in items(page, "items"):
        name = text(child(as_object(one), "metadata"), "name")
        path = job_path(session.access.namespace, name)
        body: JsonObject = {"spec": {"type": "asyncjob-doctor"}}
        return await _probe(session.merge_patch(path, body, DRY_RUN), SPEC_POLICY.name)
    return ProbeResult.NOT_TRIED


async def _probe(write: Awaitable[JsonObject], policy: str) -> ProbeResult:
    """Return what came of it; only the policy's own refusal proves anything."""
    try:
        await write
    except (ForbiddenError, InvalidError) as error:
        return ProbeResult.REFUSED if policy in str(error) else ProbeResult.NOT_TRIED
    except ObjectNotFoundError:
        return ProbeResult.NOT_TRIED
    return ProbeResult.PASSED


def check_enforcement(facts: EnforcementFacts) -> Finding:
    """Return whether forbidden writes are refused."""
    trials = (facts.creation, facts.change)
    if ProbeResult.PASSED in trials:
        message = "the API server let a forbidden write pass (in a dry run)"
        way = "kubectl apply -f crds/; policies take some seconds to come into force"
        return problem(ENFORCEMENT_CHECK, DoctorCode.NOT_ENFORCED, message, way)
    if ProbeResult.REFUSED in trials:
        count = trials.count(ProbeResult.REFUSED)
        return ok(
            ENFORCEMENT_CHECK,
            f"{count} forbidden write{'s' * (count > 1)} tried, in a dry run: refused",
        )
    message = "no forbidden write could be tried"
    needed = "needs create or patch on asyncjobs in this namespace"
    return warning(ENFORCEMENT_CHECK, DoctorCode.NOT_TRIED, message, needed)


_NAME_KEYS = ("name", "jsonPath")


def differences(expected: Json, actual: Json, path: str = "") -> Iterator[str]:
    """Yield the paths at which the actual one lacks or contradicts what is expected."""
    if isinstance(expected, Mapping):
        yield from _object_differences(expected, actual, path)
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        yield from _list_differences(expected, actual, path)
    elif expected != actual:
        yield path or "."


def _object_differences(expected: Mapping[str, Json], actual: Json, path: str) -> Iterator[str]:
    if not isinstance(actual, Mapping):
        yield path or "."
        return
    for key, value in expected.items():
        yield from differences(value, actual.get(key), f"{path}.{key}" if path else key)


def _list_differences(expected: Sequence[Json], actual: Json, path: str) -> Iterator[str]:
    there = actual if isinstance(actual, list) else []
    if len(there) != len(expected):
        yield f"{path} ({len(there)} instead of {len(expected)})"
        return
    for number, (one, other) in enumerate(zip(expected, there, strict=True)):
        yield from differences(one, other, f"{path}[{_item_name(one, number)}]")


def _item_name(item: Json, number: int) -> str:
    names = [item[key] for key in _NAME_KEYS if key in item] if isinstance(item, Mapping) else []
    return str(names[0] if names else number)
