"""What the caller may do, asked with SelfSubjectAccessReviews as `kubectl auth can-i` does."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob.cli.doctor.findings import DoctorCode, Finding, join_some, ok, problem, warning
from asyncjob.json_types import JsonObject, child, flag
from asyncjob.kube import KubeSession
from asyncjob.names import CRON_JOBS, GROUP, JOBS, QUEUES

PERMISSIONS_CHECK: Final = "Permissions"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Permission:
    """A verb on a resource, and the commands that need it."""

    verb: str
    resource: str
    commands: str
    group: str = GROUP

    @property
    def title(self) -> str:
        """Return it as people write it."""
        return f"{self.verb} {self.resource}"


READ_PERMISSIONS: Final = (
    Permission("get", JOBS, "get, wait, history, result"),
    Permission("list", JOBS, "list, queue"),
)
OTHER_PERMISSIONS: Final = (
    Permission("watch", JOBS, "watch"),
    Permission("create", JOBS, "submit"),
    Permission("patch", JOBS, "cancel, redrive, dismiss, rerun, suspend, priority"),
    Permission("list", QUEUES, "queue list, why jobs wait"),
    Permission("patch", QUEUES, "queue pause"),
    Permission("list", CRON_JOBS, "cron list"),
    Permission("patch", CRON_JOBS, "cron trigger, cron suspend"),
    Permission("list", "leases", "workers, doctor", "coordination.k8s.io"),
)


async def fetch_denied(session: KubeSession) -> list[Permission]:
    """Return what the caller may not do."""
    permissions = (*READ_PERMISSIONS, *OTHER_PERMISSIONS)
    answers = await asyncio.gather(*(_is_allowed(session, one) for one in permissions))
    return [one for one, allowed in zip(permissions, answers, strict=True) if not allowed]


async def _is_allowed(session: KubeSession, permission: Permission) -> bool:
    attributes: JsonObject = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "namespace": session.access.namespace,
    }
    review: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return flag(child(await session.create(_REVIEWS, review), "status"), "allowed")


def check_permissions(denied: Sequence[Permission], namespace: str) -> Finding:
    """Return what does not work for want of permission; one who may only read is fine with that."""
    if not denied:
        return ok(PERMISSIONS_CHECK, f"all commands are allowed in namespace {namespace}")
    titles = join_some([one.title for one in denied], 10)
    way = f"without them not: {'; '.join(one.commands for one in denied)}"
    message = f"not allowed in namespace {namespace}: {titles}"
    blind = any(one in denied for one in READ_PERMISSIONS)
    return (problem if blind else warning)(PERMISSIONS_CHECK, DoctorCode.NOT_ALLOWED, message, way)
