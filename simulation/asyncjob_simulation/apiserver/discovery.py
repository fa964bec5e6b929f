"""What a client can ask about the API server itself: its version, groups and resources."""

from typing import Any, Final

from asyncjob_simulation.apiserver.resources import Registry, Resource

Object = dict[str, Any]

_VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_VERSION: Final = {"major": "1", "minor": "36", "gitVersion": "v1.36.0", "platform": "memory"}
_GROUP_AND_VERSION: Final = 3
"""Slashes in the longest path that is of no resource: `apis/batch/v1`."""

_HEALTH: Final = frozenset({"/healthz", "/livez", "/readyz"})


def discover(path: str, registry: Registry) -> Object | None:
    """Return the answer to a path that is of no resource; None for a path that is."""
    return None if path.count("/") > _GROUP_AND_VERSION else _discover(path, registry)


def _discover(path: str, registry: Registry) -> Object | None:
    if path == "/version":
        return dict(_VERSION)
    if path in _HEALTH:
        return {"status": "ok"}
    parts = path.strip("/")
    if parts == "api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if parts == "apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(registry)}
    found = registry.resources(parts)
    if not found:
        return next(
            (
                {"kind": "APIGroup", "apiVersion": "v1", **group}
                for group in _groups(registry)
                if parts == f"apis/{group['name']}"
            ),
            None,
        )
    listed = [one for resource in found for one in _listed(resource)]
    version = parts.removeprefix("apis/").removeprefix("api/")
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": listed,
    }


def _groups(registry: Registry) -> list[Object]:
    groups: dict[str, list[str]] = {}
    for path in registry.versions():
        root, _, rest = path.partition("/")
        if root == "apis":
            group, _, version = rest.partition("/")
            groups.setdefault(group, []).append(version)
    return [
        {
            "name": group,
            "versions": [{"groupVersion": f"{group}/{one}", "version": one} for one in versions],
            "preferredVersion": {"groupVersion": f"{group}/{versions[0]}", "version": versions[0]},
        }
        for group, versions in groups.items()
    ]


def _listed(resource: Resource) -> list[Object]:
    base = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    if not resource.has_status:
        return [base]
    status = {**base, "name": f"{resource.plural}/status", "verbs": ["get", "patch", "update"]}
    return [base, status]
