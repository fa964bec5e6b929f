"""What keeps the operator from working, each with what to do about it: one line each.

It checks that the CRDs are installed, the admission policies in force and the permissions granted.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from asyncjob.errors import ApiError, ForbiddenError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, as_object, child, flag, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import API_VERSION, CRON_JOBS, GROUP, JOBS, QUEUES
from asyncjob_operator.core.permissions import Permission

CONCURRENT_REVIEWS: Final = 16
"""Reviews at a time, fewer than a session has connections: what waits for one runs out of time."""

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(slots=True)
class Findings:
    """`errors` keep the operator from working; `missing_policies` and `warnings` do not.

    `missing_policies` says which policies are not in force, so that what it works on can be trusted
    less.
    """

    errors: list[str] = field(default_factory=list)
    missing_policies: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    denied: set[Permission] = field(default_factory=set)

    def allows(self, verb: str, resource: str) -> bool:
        """Return whether the permission was not denied."""
        return not any(p.verb == verb and p.resource == resource for p in self.denied)


async def preflight(
    session: KubeSession, permissions: Sequence[tuple[Permission, str | None]]
) -> Findings:
    """Look for what is missing; a permission is asked for in its namespace, None meaning all."""
    findings = Findings()
    try:
        await _check_types(session, findings)
        await _check_policies(session, findings)
        await _review_permissions(session, permissions, findings)
    except ApiError as error:
        findings.errors.append(_unreachable(session, error))
    return findings


async def check_job_api(session: KubeSession) -> str:
    """Return why jobs cannot be watched, or an empty text."""
    try:
        missing = await _missing_types(session)
    except ApiError as error:
        return _unreachable(session, error)
    return not_installed(missing) if f"{JOBS}.{GROUP}" in missing else ""


async def check_permissions(
    session: KubeSession, permissions: Sequence[tuple[Permission, str | None]]
) -> Findings:
    """Look for missing permissions only."""
    findings = Findings()
    await _review_permissions(session, permissions, findings)
    return findings


async def _check_types(session: KubeSession, findings: Findings) -> None:
    missing = await _missing_types(session)
    if missing:
        findings.errors.append(not_installed(missing))


async def _missing_types(session: KubeSession) -> list[str]:
    try:
        answer = await session.get(f"/apis/{API_VERSION}")
    except ObjectNotFoundError:
        answer = {}
    served = {text(as_object(item), "name") for item in items(answer, "resources")}
    return [f"{name}.{GROUP}" for name in (JOBS, QUEUES, CRON_JOBS) if name not in served]


def not_installed(types: Sequence[str]) -> str:
    """Return what to tell people of types that are not served."""
    return f"not installed: {', '.join(types)}; apply the CRDs (kubectl apply -f crds/)"


def _unreachable(session: KubeSession, error: ApiError) -> str:
    return f"the API server at {session.access.host} cannot be asked: {error}"


async def _check_policies(session: KubeSession, findings: Findings) -> None:
    lines = await find_missing_policies(session)
    (findings.warnings if lines == [POLICIES_NOT_READABLE] else findings.missing_policies).extend(
        lines
    )


async def _review_permissions(
    session: KubeSession,
    permissions: Sequence[tuple[Permission, str | None]],
    findings: Findings,
) -> None:
    """Ask for all, a few at a time: with many namespaces they are thousands."""
    rest = iter(permissions)

    async def ask() -> None:
        for permission, namespace in rest:
            await _review_permission(session, permission, namespace, findings)

    asking = [asyncio.create_task(ask()) for _ in range(CONCURRENT_REVIEWS)]
    try:
        await asyncio.gather(*asking)
    finally:
        for task in asking:
            task.cancel()


async def _review_permission(
    session: KubeSession, permission: Permission, namespace: str | None, findings: Findings
) -> None:
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
        "name": permission.name,
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


MISSING_POLICY_RISKS: Final = {
    f"lifecycle.{GROUP}": "a job's status could change in ways the lifecycle forbids",
    f"ownership.{GROUP}": "any worker could write any job",
    f"spec.{GROUP}": "what a job is to do could change after it was created",
    f"creation.{GROUP}": "a job could be created with a redrive or rerun of what it never did",
    f"removal.{GROUP}": "who may patch a job could have it deleted, or keep it for ever",
    f"settings.{GROUP}": "who may patch a queue or schedule could have finished jobs deleted by it",
    f"payload-source.{GROUP}": "a job could read Secrets that its author may not",
    f"worker-lease.{GROUP}": "any worker could write the Leases of others and of the election",
}
"""What it means that a policy is missing."""

POLICIES_NOT_READABLE: Final = (
    "cannot see whether the policies are in force: no permission to list "
    "validatingadmissionpolicies and their bindings; grant it to the operator's service account"
)

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"


async def find_missing_policies(session: KubeSession) -> list[str]:
    """Return a line for each policy that is missing or refuses nothing, or that none can be seen.

    In force is what exists and is bound to deny.
    """
    try:
        policies = await session.get(f"{_ADMISSION}/validatingadmissionpolicies")
        bindings = await session.get(f"{_ADMISSION}/validatingadmissionpolicybindings")
    except ForbiddenError:
        return [POLICIES_NOT_READABLE]
    found = {text(child(as_object(item), "metadata"), "name") for item in items(policies, "items")}
    in_force = found & _bound_to_deny(bindings)
    return [
        f"the policy {name} is not in force: {meaning}; kubectl apply -f crds/"
        for name, meaning in MISSING_POLICY_RISKS.items()
        if name not in in_force
    ]


def _bound_to_deny(bindings: JsonObject) -> set[str]:
    specs = [child(as_object(item), "spec") for item in items(bindings, "items")]
    return {text(one, "policyName") for one in specs if "Deny" in items(one, "validationActions")}
