"""Which resources there are, and which of them a path means."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from asyncjob_simulation.apiserver.errors import no_such_path
from asyncjob_simulation.apiserver.schema import Schema

Object = dict[str, Any]

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
CRDS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column."""

    name: str
    type: str
    format: str
    description: str
    priority: int
    json_path: str


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One kind of object; without a schema it is stored as it comes."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    schema: Schema | None = None
    has_status: bool = False
    columns: tuple[Column, ...] = ()
    selectable: frozenset[str] | None = None
    """Fields that can be selected by; None: any."""

    @property
    def api_version(self) -> str:
        """Return group and version as objects have them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Return the name in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """Return the kind in messages."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells it from other resources."""
        return self.group, self.plural


@dataclass(frozen=True, slots=True)
class Target:
    """What a path means: a collection, an object, or a part of one."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def _core(plural: str, kind: str, *, namespaced: bool = True, status: bool = False) -> Resource:
    return Resource("", "v1", plural, kind, namespaced=namespaced, has_status=status)


BUILT_IN: Final[tuple[Resource, ...]] = (
    _core("namespaces", "Namespace", namespaced=False, status=True),
    _core("nodes", "Node", namespaced=False, status=True),
    _core("pods", "Pod", status=True),
    _core("configmaps", "ConfigMap"),
    _core("secrets", "Secret"),
    _core("events", "Event"),
    _core("serviceaccounts", "ServiceAccount"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("events.k8s.io", "v1", "events", "Event"),
    Resource(RBAC_GROUP, "v1", "roles", "Role"),
    Resource(RBAC_GROUP, "v1", "rolebindings", "RoleBinding"),
    Resource(RBAC_GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource(RBAC_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Resource(*CRDS[:1], "v1", CRDS[1], "CustomResourceDefinition", namespaced=False),
    Resource(
        ADMISSION_GROUP,
        "v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        namespaced=False,
    ),
    Resource(
        ADMISSION_GROUP,
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
    ),
    Resource(
        ADMISSION_GROUP,
        "v1",
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        namespaced=False,
    ),
    Resource(
        ADMISSION_GROUP,
        "v1",
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        namespaced=False,
    ),
    Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False),
    Resource(
        "authentication.k8s.io",
        "v1",
        "selfsubjectreviews",
        "SelfSubjectReview",
        namespaced=False,
    ),
    Resource(
        "authorization.k8s.io",
        "v1",
        "subjectaccessreviews",
        "SubjectAccessReview",
        namespaced=False,
    ),
    Resource(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
    ),
)
"""The resources of Kubernetes that our parts touch."""


def custom_resources(crd: Object) -> list[Resource]:
    """Return the resources that a CRD defines, one for each version that is served."""
    spec = crd["spec"]
    return [_custom(spec, version) for version in spec["versions"] if version["served"]]


def _custom(spec: Mapping[str, Any], version: Mapping[str, Any]) -> Resource:
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=spec["names"]["plural"],
        kind=spec["names"]["kind"],
        namespaced=spec["scope"] == "Namespaced",
        schema=Schema(version["schema"]["openAPIV3Schema"]),
        has_status="status" in version.get("subresources", {}),
        columns=tuple(map(_column, version.get("additionalPrinterColumns", ()))),
        selectable=frozenset(
            one["jsonPath"].removeprefix(".") for one in version.get("selectableFields", ())
        ),
    )


def _column(source: Mapping[str, Any]) -> Column:
    return Column(
        name=source["name"],
        type=source["type"],
        format=source.get("format", ""),
        description=source.get("description", ""),
        priority=source.get("priority", 0),
        json_path=source["jsonPath"],
    )


@dataclass(slots=True)
class Registry:
    """All resources by the path of their group and version."""

    _by_path: dict[str, dict[str, Resource]] = field(default_factory=dict)
    _targets: dict[str, Target] = field(default_factory=dict)

    @classmethod
    def of(cls, crds: Iterable[Object]) -> "Registry":
        """Return a registry of Kubernetes' own resources and those of the CRDs."""
        registry = cls()
        for resource in BUILT_IN:
            registry.add(resource)
        for crd in crds:
            for resource in custom_resources(crd):
                registry.add(resource)
        return registry

    def add(self, resource: Resource) -> None:
        """Add a resource, or put it in the place of the one before."""
        root = f"apis/{resource.group}" if resource.group else "api"
        self._by_path.setdefault(f"{root}/{resource.version}", {})[resource.plural] = resource
        self._targets.clear()

    def __iter__(self) -> Iterator[Resource]:
        return (one for found in self._by_path.values() for one in found.values())

    def versions(self) -> list[str]:
        """Return the paths of groups and versions."""
        return list(self._by_path)

    def resources(self, path: str) -> list[Resource]:
        """Return the resources of a group and version."""
        return list(self._by_path.get(path, {}).values())

    def resolve(self, path: str) -> Target:
        """Return what a path means; raises StatusError for one that means nothing."""
        target = self._targets.get(path)
        if target is None:
            target = self._resolve([unquote(part) for part in path.strip("/").split("/")])
            if len(self._targets) > _MAX_CACHED_PATHS:
                self._targets.clear()
            self._targets[path] = target
        return target

    def _resolve(self, parts: list[str]) -> Target:
        depth = 2 if parts[0] == "api" else 3
        known, rest = self._by_path.get("/".join(parts[:depth]), {}), parts[depth:]
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] in known:  # noqa: PLR2004  # its parts
            namespace, rest = rest[1], rest[2:]
        if not rest or rest[0] not in known or len(rest) > 3:  # noqa: PLR2004  # plural, name, part
            raise no_such_path()
        plural, name, subresource = (*rest, "", "")[:3]
        return Target(known[plural], namespace, name, subresource)


_MAX_CACHED_PATHS: Final = 10_000
