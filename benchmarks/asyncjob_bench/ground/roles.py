"""Who may do what in a namespace of the benchmark: as in development, but for the submitter."""

from typing import Final

from asyncjob.names import GROUP, JOBS
from asyncjob_bench.ground.templates import SUBMITTER
from asyncjob_dev.api import Object
from asyncjob_dev.environment.parts import OPERATOR_ACCOUNT, WORKER_ACCOUNT

RBAC: Final = "rbac.authorization.k8s.io"


def roles(namespace: str) -> list[Object]:
    """Return the roles and bindings of submitter, workers and operator."""
    rules = [
        {"apiGroups": [GROUP], "resources": [JOBS], "verbs": ["create", "get", "list", "watch"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "list"]},
    ]
    metadata = {"name": SUBMITTER, "namespace": namespace}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    install = {"kind": "ClusterRole", "name": f"{OPERATOR_ACCOUNT}-install"}
    election = {"kind": "ClusterRole", "name": f"{OPERATOR_ACCOUNT}-election"}
    return [
        role,
        _binding(namespace, WORKER_ACCOUNT, {"kind": "ClusterRole", "name": WORKER_ACCOUNT}),
        _binding(namespace, OPERATOR_ACCOUNT, {"kind": "ClusterRole", "name": OPERATOR_ACCOUNT}),
        _binding(namespace, SUBMITTER, {"kind": "Role", "name": SUBMITTER}),
        {
            **_binding(namespace, OPERATOR_ACCOUNT, election),
            "metadata": {"name": election["name"], "namespace": namespace},
        },
        {
            **_binding(namespace, OPERATOR_ACCOUNT, install),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{OPERATOR_ACCOUNT}-{namespace}"},
        },
    ]


def _binding(namespace: str, account: str, role: Object) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": account, "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, **role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
