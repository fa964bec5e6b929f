"""What keeps the operator from working, each with what to do about it: one line each.

It checks that the CRDs are installed, the admission policies in force and the permissions granted.
All of it is asked for at once, a few requests at a time, and again where no answer comes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

from asyncjob.errors import (
    ApiError,
    ForbiddenError,
    ObjectNotFoundError,
    explained,
    message_of,
)
from asyncjob.json_types import JsonObject, as_object, child, flag, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.names import API_VERSION, ARRAYS, CRON_JOBS, GROUP, JOBS, QUEUES
from asyncjob.rules.managed_fields import MANAGED_FIELDS_POLICY
from asyncjob_operator.core.permissions import Permission

CONCURRENT_REQUESTS: Final = 16
"""Requests at a time, fewer than a session has connections: what waits for one runs out of time."""

MAX_TRIES: Final = 3
"""Tries of each request that gets no answer, before the API server counts as unreachable."""

_TYPES: Final = f"/apis/{API_VERSION}"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_MUTATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"

_Request = Callable[[], Awaitable[JsonObject | None]]


class FindingCode(StrEnum):
    """What `asyncjob explain` knows a finding by."""

    NOT_INSTALLED = "not-installed"
    NOT_ALLOWED = "operator-not-allowed"
    POLICY_MISSING = "policy-missing"


@dataclass(slots=True)
class Findings:
    """`errors` keep the operator from working; `missing_policies` and `warnings` do not.

    `missing_policies` says which policies are not in force, so that what it works on can be trusted
    less.
    """

    errors: list[str] = field(default_factory=list)
    missing_policies: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    drops_managed_fields: bool = False
    """Whether jobs that nobody applies have none; False where that may not be seen."""

    denied: set[Permission] = field(default_factory=set)
    unreachable: bool = False
    """Whether nothing is known, because the API server could not be asked."""

    def allows(self, verb: str, resource: str) -> bool:
        """Return whether the permission was not denied."""
        return not any(p.verb == verb and p.resource == resource for p in self.denied)


async def preflight(
    session: KubeSession, permissions: Sequence[tuple[Permission, str | None]]
) -> Findings:
    """Look for what is missing; a permission is asked for in its namespace, None meaning all."""
    requests: list[_Request] = [
        partial(_get_types, session),
        *(partial(_get_if_readable, session, path) for path in (_POLICIES, _BINDINGS)),
        partial(_get_mutations, session),
        *(partial(_review, session, *pair) for pair in permissions),
    ]
    try:
        types, policies, bindings, mutations, *reviews = await _send_all(requests)
    except ApiError as error:
        return Findings(errors=[_unreachable(session, error)], unreachable=True)
    findings = Findings()
    missing = _missing_types(types)
    if missing:
        findings.errors.append(not_installed(missing))
    lines = _missing_policies(policies, bindings)
    (findings.warnings if lines == [POLICIES_NOT_READABLE] else findings.missing_policies).extend(
        lines
    )
    _record_reviews(permissions, reviews, findings)
    findings.drops_managed_fields = _drops_managed_fields(mutations)
    return findings


async def check_job_api(session: KubeSession) -> str:
    """Return why jobs cannot be watched, or an empty text."""
    try:
        missing = _missing_types(await _get_types(session))
    except ApiError as error:
        return _unreachable(session, error)
    return not_installed(missing) if f"{JOBS}.{GROUP}" in missing else ""


async def check_permissions(
    session: KubeSession, permissions: Sequence[tuple[Permission, str | None]]
) -> Findings:
    """Look for missing permissions only."""
    findings = Findings()
    requests = [partial(_review, session, *pair) for pair in permissions]
    _record_reviews(permissions, await _send_all(requests), findings)
    return findings


async def _send_all(requests: Sequence[_Request]) -> list[JsonObject | None]:
    """Send all, a few at a time, and return the answers in the order of the requests.

    With many namespaces they are thousands.
    """
    answers: list[JsonObject | None] = [None] * len(requests)
    rest = iter(enumerate(requests))

    async def send() -> None:
        for number, request in rest:
            answers[number] = await _send_until_answered(request)

    sending = [asyncio.create_task(send()) for _ in range(CONCURRENT_REQUESTS)]
    try:
        await asyncio.gather(*sending)
    finally:
        for task in sending:
            task.cancel()
    return answers


async def _send_until_answered(request: _Request) -> JsonObject | None:
    """Send again what was not answered: none of the requests changes anything."""
    backoff = ExponentialBackoff()
    for _ in range(MAX_TRIES - 1):
        try:
            return await request()
        except ApiError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(backoff.next_delay())
    return await request()


async def _get_types(session: KubeSession) -> JsonObject | None:
    try:
        return await session.get(_TYPES)
    except ObjectNotFoundError:
        return None


async def _get_if_readable(session: KubeSession, path: str) -> JsonObject | None:
    try:
        return await session.get(path)
    except ForbiddenError:
        return None


async def _get_mutations(session: KubeSession) -> JsonObject | None:
    """Return the bindings of policies that change writes; None before Kubernetes 1.36, as well."""
    try:
        return await _get_if_readable(session, _MUTATIONS)
    except ObjectNotFoundError:
        return None


def _drops_managed_fields(mutations: JsonObject | None) -> bool:
    specs = [child(as_object(item), "spec") for item in items(mutations or {}, "items")]
    return any(text(one, "policyName") == MANAGED_FIELDS_POLICY for one in specs)


def _missing_types(group: JsonObject | None) -> list[str]:
    served = {text(as_object(item), "name") for item in items(group or {}, "resources")}
    return [f"{name}.{GROUP}" for name in (JOBS, QUEUES, CRON_JOBS, ARRAYS) if name not in served]


def not_installed(types: Sequence[str]) -> str:
    """Return what to tell people of types that are not served."""
    line = f"not installed: {', '.join(types)}; apply the CRDs: kubectl apply -f crds/"
    return explained(line, FindingCode.NOT_INSTALLED)


def _unreachable(session: KubeSession, error: ApiError) -> str:
    return f"the API server at {session.access.host} cannot be asked: {message_of(error)}"


async def _review(
    session: KubeSession, permission: Permission, namespace: str | None
) -> JsonObject:
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
        "name": permission.name,
        **({"namespace": namespace} if namespace else {}),
    }
    return await session.create(
        _REVIEWS,
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        },
    )


def _record_reviews(
    permissions: Sequence[tuple[Permission, str | None]],
    reviews: Sequence[JsonObject | None],
    findings: Findings,
) -> None:
    for (permission, namespace), review in zip(permissions, reviews, strict=True):
        if flag(child(review or {}, "status"), "allowed"):
            continue
        findings.denied.add(permission)
        where = f"in namespace {namespace}" if namespace else "in all namespaces"
        line = f"no permission to {permission.title} {where}, needed for {permission.purpose}"
        found = findings.errors if permission.essential else findings.warnings
        line += "; grant it to the operator's service account"
        found.append(explained(line, FindingCode.NOT_ALLOWED))


MISSING_POLICY_RISKS: Final = {
    f"lifecycle.{GROUP}": "a job's status could change in ways the lifecycle forbids",
    f"ownership.{GROUP}": "any worker could write any job",
    f"spec.{GROUP}": "what a job is to do could change after it was created",
    f"creation.{GROUP}": "a job could be created with a redrive or rerun of what it never did",
    f"removal.{GROUP}": "who may patch a job could have it deleted, or keep it forever",
    f"settings.{GROUP}": "who may patch a queue or cron job could have finished jobs deleted by it",
    f"payload-source.{GROUP}": "a job could read Secrets that its author may not",
    f"signals.{GROUP}": "who may patch a job could send it signals, in another's name",
    f"array-creation.{GROUP}": "an array could be created without items, or with a redrive",
    f"array-spec.{GROUP}": "what an array is to do could change after it was created",
    f"array-status.{GROUP}": "items of an array could be lost, or counted twice",
    f"worker-lease.{GROUP}": "any worker could write the Leases of others and of the election",
}
"""What it means that a policy is missing."""

POLICIES_NOT_READABLE: Final = explained(
    "cannot see whether the policies are in force: no permission to list "
    "validatingadmissionpolicies and their bindings; grant it to the operator's service account",
    FindingCode.NOT_ALLOWED,
)


async def find_missing_policies(session: KubeSession) -> list[str]:
    """Return a line for each policy that is missing or refuses nothing, or that none can be seen.

    In force is what exists and is bound to deny.
    """
    return _missing_policies(
        await _get_if_readable(session, _POLICIES), await _get_if_readable(session, _BINDINGS)
    )


def _missing_policies(policies: JsonObject | None, bindings: JsonObject | None) -> list[str]:
    if policies is None or bindings is None:
        return [POLICIES_NOT_READABLE]
    found = {text(child(as_object(item), "metadata"), "name") for item in items(policies, "items")}
    in_force = found & _bound_to_deny(bindings)
    return [
        explained(
            f"the policy {name} is not in force: {meaning}; kubectl apply -f crds/",
            FindingCode.POLICY_MISSING,
        )
        for name, meaning in MISSING_POLICY_RISKS.items()
        if name not in in_force
    ]


def _bound_to_deny(bindings: JsonObject) -> set[str]:
    specs = [child(as_object(item), "spec") for item in items(bindings, "items")]
    return {text(one, "policyName") for one in specs if "Deny" in items(one, "validationActions")}
