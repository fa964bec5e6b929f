"""What keeps the operator from working, each with what to do about it: one line each."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from asyncjob.errors import ApiError, ForbiddenError, NotFoundError
from asyncjob.json_types import JsonObject, as_object, child, flag, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import API_VERSION, CRON_JOBS, GROUP, JOBS, QUEUES
from asyncjob_operator.core.permissions import Permission

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_NO_POLICY: Final = (
    "the ownership policy is not in force: any worker could write any job; kubectl apply -f crds/"
)


@dataclass(slots=True)
class Findings:
    """`errors` keep the operator from working, `warnings` do not."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    denied: set[Permission] = field(default_factory=set)

    def may(self, verb: str, resource: str) -> bool:
        """Return whether the permission was not denied."""
        return not any(p.verb == verb and p.resource == resource for p in self.denied)


async def preflight(
    session: KubeSession, permissions: Sequence[tuple[Permission, str | None]]
) -> Findings:
    """Look for what is missing; a permission is asked for in its namespace, None meaning all."""
    findings = Findings()
    try:
        await _check_types(session, findings)
        await _check_policy(session, findings)
        await asyncio.gather(*(_check(session, *asked, findings) for asked in permissions))
    except ApiError as error:
        host = session.access.host
        findings.errors.append(f"the API server at {host} cannot be asked: {error}")
    return findings


async def _check_types(session: KubeSession, findings: Findings) -> None:
    try:
        answer = await session.get(f"/apis/{API_VERSION}")
    except NotFoundError:
        answer = {}
    served = {text(as_object(item), "name") for item in items(answer, "resources")}
    missing = [f"{name}.{GROUP}" for name in (JOBS, QUEUES, CRON_JOBS) if name not in served]
    if missing:
        names = ", ".join(missing)
        findings.errors.append(f"not installed: {names}; kubectl apply -f crds/")


async def _check_policy(session: KubeSession, findings: Findings) -> None:
    try:
        policies = await session.get(f"{_ADMISSION}/validatingadmissionpolicies")
        bindings = await session.get(f"{_ADMISSION}/validatingadmissionpolicybindings")
    except ForbiddenError:
        findings.warnings.append(
            "cannot see whether the ownership policy is in force: no permission to list "
            "validatingadmissionpolicies and their bindings"
        )
        return
    bound = {
        text(child(as_object(item), "spec"), "policyName")
        for item in items(bindings, "items")
        if "Deny" in items(child(as_object(item), "spec"), "validationActions")
    }
    if not any(_guards_status(as_object(item), bound) for item in items(policies, "items")):
        findings.warnings.append(_NO_POLICY)


def _guards_status(policy: JsonObject, bound: set[str]) -> bool:
    if text(child(policy, "metadata"), "name") not in bound:
        return False
    rules = items(child(child(policy, "spec"), "matchConstraints"), "resourceRules")
    return any(
        GROUP in items(as_object(rule), "apiGroups")
        and f"{JOBS}/status" in items(as_object(rule), "resources")
        for rule in rules
    )


async def _check(
    session: KubeSession, permission: Permission, namespace: str | None, findings: Findings
) -> None:
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
        **({"namespace": namespace} if namespace else {}),
    }
    answer = await session.create(
        _REVIEWS,
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        },
    )
    if flag(child(answer, "status"), "allowed"):
        return
    findings.denied.add(permission)
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    line = f"no permission to {permission.title} {where}, needed for {permission.purpose}"
    found = findings.errors if permission.essential else findings.warnings
    found.append(f"{line}; grant it to the operator's service account")
