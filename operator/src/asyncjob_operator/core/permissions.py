"""What the operator must be allowed to do, and what each permission is for."""

from dataclasses import dataclass
from typing import Final

from asyncjob.names import ARRAYS, CRON_JOBS, GROUP, JOBS, OPERATE_VERB, QUEUES


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource; without an essential one nothing works."""

    verb: str
    group: str
    resource: str
    purpose: str
    subresource: str = ""
    essential: bool = True
    name: str = ""
    """Name of the one object it is needed for; empty for all."""

    @property
    def title(self) -> str:
        """Return it as `verb resource.group/subresource`."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name}{'/' + self.subresource if self.subresource else ''}"


def _jobs(verb: str, purpose: str, subresource: str = "", *, essential: bool = True) -> Permission:
    return Permission(verb, GROUP, JOBS, purpose, subresource, essential)


OPERATE: Final = _jobs(OPERATE_VERB, "passing the ownership policy")

CORE: Final[tuple[Permission, ...]] = (
    _jobs("get", "reading a job before it is written"),
    _jobs("list", "seeing the jobs"),
    _jobs("watch", "seeing jobs change"),
    _jobs("patch", "every decision", "status"),
    OPERATE,
    _jobs("create", "reruns", essential=False),
    _jobs("patch", "a cancel that cascades", essential=False),
    _jobs("delete", "retention", essential=False),
    Permission("get", GROUP, QUEUES, "admission to queues with limits", essential=False),
    Permission(
        "patch",
        GROUP,
        QUEUES,
        "admission to queues with limits, and their numbers",
        subresource="status",
        essential=False,
    ),
    Permission("list", GROUP, QUEUES, "queues' pauses, defaults and retention"),
    Permission("watch", GROUP, QUEUES, "queues' pauses, defaults and retention"),
    Permission("create", "", "events", "telling people", essential=False),
)

SCHEDULES: Final[tuple[Permission, ...]] = (
    *(
        Permission(verb, GROUP, CRON_JOBS, "cron jobs", essential=False)
        for verb in ("get", "list", "watch")
    ),
    Permission("patch", GROUP, CRON_JOBS, "cron jobs", "status", essential=False),
    _jobs("patch", "cancelling the run that concurrencyPolicy Replace replaces", essential=False),
)

ARRAY_PERMISSIONS: Final[tuple[Permission, ...]] = (
    *(
        Permission(verb, GROUP, ARRAYS, "arrays", essential=False)
        for verb in ("get", "list", "watch")
    ),
    Permission("patch", GROUP, ARRAYS, "arrays", "status", essential=False),
    Permission("patch", GROUP, ARRAYS, "a cancel that cascades to arrays", essential=False),
    Permission("delete", GROUP, ARRAYS, "removing arrays that have ended", essential=False),
    _jobs("create", "the chunks of arrays", essential=False),
    _jobs("patch", "cancelling and suspending the chunks of arrays", essential=False),
    _jobs("delete", "removing the chunks of arrays", essential=False),
)

RECOVERY: Final[tuple[Permission, ...]] = tuple(
    Permission(verb, group, resource, "recovery before a lease ends", essential=False)
    for group, resource in (("", "pods"), ("coordination.k8s.io", "leases"))
    for verb in ("get", "list", "watch")
)

WORKERS: Final[tuple[Permission, ...]] = tuple(
    Permission(verb, "coordination.k8s.io", "leases", "knowing unknown types", essential=False)
    for verb in ("list", "watch")
)

STALE_WORKERS: Final[tuple[Permission, ...]] = tuple(
    Permission(
        verb, "coordination.k8s.io", "leases", "removing silent workers' Leases", essential=False
    )
    for verb in ("list", "delete")
)


def election(lease: str) -> tuple[Permission, ...]:
    """Return the permissions for leader election; `lease` is the name of its Lease."""
    group, resource, purpose = "coordination.k8s.io", "leases", "leader election"
    return (
        *(Permission(verb, group, resource, purpose, name=lease) for verb in ("get", "patch")),
        Permission("create", group, resource, purpose),
        OPERATE,
    )
