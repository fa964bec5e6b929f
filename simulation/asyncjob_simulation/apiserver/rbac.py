"""Who may do what, by the roles and bindings that are stored."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asyncjob_simulation.apiserver.identities import AUTHENTICATED, MASTERS, Identity
from asyncjob_simulation.apiserver.resources import RBAC_GROUP
from asyncjob_simulation.apiserver.storage import Storage

Object = dict[str, Any]

_ROLES: Final = (RBAC_GROUP, "roles")
_CLUSTER_ROLES: Final = (RBAC_GROUP, "clusterroles")
_BINDINGS: Final = (RBAC_GROUP, "rolebindings")
_CLUSTER_BINDINGS: Final = (RBAC_GROUP, "clusterrolebindings")
RBAC: Final = (_ROLES, _CLUSTER_ROLES, _BINDINGS, _CLUSTER_BINDINGS)

_SELF_REVIEWS: Final = frozenset(
    {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
)


@dataclass(frozen=True, slots=True)
class Action:
    """What somebody wants to do; `resource` with the subresource after a slash."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class RbacAuthorizer:
    """Answers by the roles in the storage; an answer holds until one of them changes."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._answers: dict[tuple[Identity, Action], bool] = {}
        self._ends: tuple[int, ...] = ()

    def allows(self, identity: Identity, action: Action) -> bool:
        """Return whether the identity may do it."""
        if MASTERS in identity.groups:
            return True
        ends = tuple(self._storage.collection(kind).end for kind in RBAC)
        if ends != self._ends:
            self._answers.clear()
            self._ends = ends
        answer = self._answers.get((identity, action))
        if answer is None:
            answer = self._answers[identity, action] = self._decide(identity, action)
        return answer

    def _decide(self, identity: Identity, action: Action) -> bool:
        if action.resource in _SELF_REVIEWS and AUTHENTICATED in identity.groups:
            return True
        return any(_covers(rule, action) for rule in self._rules(identity, action.namespace))

    def _rules(self, identity: Identity, namespace: str) -> Iterator[Object]:
        collections = {kind: self._storage.collection(kind).objects for kind in RBAC}
        for binding in collections[_CLUSTER_BINDINGS].values():
            if _binds(binding, identity):
                yield from _rules_of(collections[_CLUSTER_ROLES], "", binding)
        for (where, _), binding in collections[_BINDINGS].items():
            if namespace and where == namespace and _binds(binding, identity):
                is_cluster_role = binding["roleRef"]["kind"] == "ClusterRole"
                roles = collections[_CLUSTER_ROLES if is_cluster_role else _ROLES]
                yield from _rules_of(roles, "" if is_cluster_role else namespace, binding)


def _binds(binding: Object, identity: Identity) -> bool:
    here = binding["metadata"].get("namespace", "")
    return any(_is_subject(one, identity, here) for one in binding.get("subjects") or ())


def _is_subject(subject: Object, identity: Identity, here: str) -> bool:
    if subject["kind"] == "Group":
        return subject["name"] in identity.groups
    if subject["kind"] == "ServiceAccount":
        where = subject.get("namespace", here)
        return identity.username == f"system:serviceaccount:{where}:{subject['name']}"
    return bool(subject["name"] == identity.username)


def _rules_of(
    roles: Mapping[tuple[str, str], Object], namespace: str, binding: Object
) -> Iterable[Object]:
    role = roles.get((namespace, binding["roleRef"]["name"]))
    return role.get("rules") or () if role else ()


def _covers(rule: Object, action: Action) -> bool:
    if not _matches(rule.get("verbs"), action.verb):
        return False
    if not _matches(rule.get("apiGroups"), action.group):
        return False
    subresource = action.resource.partition("/")[2]
    resources = rule.get("resources") or ()
    if not _matches(resources, action.resource) and f"*/{subresource}" not in resources:
        return False
    names = rule.get("resourceNames")
    return not names or action.name in names


def _matches(listed: Any, value: str) -> bool:
    return value in (listed or ()) or "*" in (listed or ())
