"""API paths of Kubernetes' own collections, in one namespace or, for None, in all."""

from typing import Final

from asyncjob.names import COMPONENT_LABEL, WORKER_COMPONENT

WORKER_SELECTOR: Final = {"labelSelector": f"{COMPONENT_LABEL}={WORKER_COMPONENT}"}
"""Selects what belongs to workers."""


def pods_path(namespace: str | None) -> str:
    """Return the path of Pods."""
    return f"/api/v1{_scope(namespace)}/pods"


def leases_path(namespace: str | None) -> str:
    """Return the path of coordination Leases."""
    return f"/apis/coordination.k8s.io/v1{_scope(namespace)}/leases"


def _scope(namespace: str | None) -> str:
    return f"/namespaces/{namespace}" if namespace else ""
