"""Applies the few kinds of objects that have to be there before a worker starts.

For anything else there is kubectl: this must not grow into a client.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from asyncjob_dev.api import Api
from asyncjob_dev.errors import DevError
from asyncjob_dev.supervisor.objects import MANAGER

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_SCOPED = {
    "Namespace": "/api/v1/namespaces",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
}
NAMESPACED = {
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Role": (RBAC, "roles"),
    "RoleBinding": (RBAC, "rolebindings"),
}


def read_manifests(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield every object in the files, those inside a List one by one."""
    for file in files:
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if document:
                yield from document["items"] if document["kind"] == "List" else [document]


def path_of(document: dict[str, Any], namespace: str) -> str:
    """Return where the object lives; `namespace` counts where it names none."""
    kind, metadata = document["kind"], document["metadata"]
    if kind in CLUSTER_SCOPED:
        return f"{CLUSTER_SCOPED[kind]}/{metadata['name']}"
    if kind not in NAMESPACED:
        known = ", ".join([*CLUSTER_SCOPED, *NAMESPACED])
        raise DevError(f"{kind} {metadata['name']}: only {known}; apply the rest with kubectl")
    root, plural = NAMESPACED[kind]
    return f"{root}/namespaces/{metadata.get('namespace', namespace)}/{plural}/{metadata['name']}"


def apply_manifest(api: Api, document: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Create the object or bring it up to date."""
    return api.apply(path_of(document, namespace), document, MANAGER)
