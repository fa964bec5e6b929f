"""Installs what the project ships on a test's control plane."""

from pathlib import Path

from asyncjob.rules.managed_fields import MUTATING
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.enforcement import until_rules_hold

ROOT = Path(__file__).parents[3]


def install(plane: ControlPlane, *, mutating: bool = True) -> Client:
    """Apply CRDs, policies and roles, wait until they are in force; return the admin's client.

    Without what is `mutating` all jobs have managedFields, as before Kubernetes 1.36.
    """
    plane.kubectl("apply", f"--filename={ROOT / 'crds'}")
    if mutating:
        plane.kubectl("apply", f"--filename={ROOT / 'crds' / MUTATING}")
    plane.kubectl("apply", f"--filename={ROOT / 'dev/manifests/rbac.yaml'}")
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    admin = Client(plane.url, plane.ca_file, plane.admin_token)
    until_rules_hold(admin)
    return admin
