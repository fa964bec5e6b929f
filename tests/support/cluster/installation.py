"""Installs what the project ships on a test's control plane."""

from pathlib import Path

from asyncjob.rules.mutation import MUTATING
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.enforcement import until_managed_fields_are_dropped, until_rules_hold
from support.cluster.versions import MUTATING_POLICIES, needs

ROOT = Path(__file__).parents[3]


def install(plane: ControlPlane, *, mutating: bool = False) -> Client:
    """Apply CRDs, policies and roles, wait until they are in force; return the admin's client.

    With what is `mutating` jobs that nobody applies have no managedFields; the test is skipped
    where the API server does not know such policies.
    """
    admin = Client(plane.url, plane.ca_file, plane.admin_token)
    if mutating:
        needs(admin, MUTATING_POLICIES)
    plane.kubectl("apply", f"--filename={ROOT / 'crds'}")
    plane.kubectl("apply", f"--filename={ROOT / 'dev/manifests/rbac.yaml'}")
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    until_rules_hold(admin)
    if mutating:
        plane.kubectl("apply", f"--filename={ROOT / 'crds' / MUTATING}")
        until_managed_fields_are_dropped(admin)
    return admin
