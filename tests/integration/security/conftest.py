"""A control plane with the chart's own CRDs, policies and roles, which logs what it decides."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from asyncjob_dev.binaries import resolve
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from support.cluster.api import Client
from support.cluster.charts import NAMESPACE, Helm, Rendered
from support.cluster.enforcement import until_rules_hold
from support.cluster.identities import Space
from support.rights.audit import Audit
from support.rights.probes.operating import ELECTIONS
from support.rights.probes.worker import SOURCE
from support.tenants.stolen import ELSEWHERE, StolenTokenSetup

BUSY_ACCOUNT = "asyncjob-worker-default"

KINDS = {
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
}
VALUES = {
    "operator.options.leaseNamespace": ELECTIONS,
    "workers.default": {},
    "workers.rich": {
        "children": True,
        "payloadSources": {"secrets": [SOURCE], "configMaps": ["*"]},
    },
}
"""With them the chart gives every right that it can give."""


@pytest.fixture(scope="package")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """Render the chart."""
    return Helm(resolve("helm").path, tmp_path_factory.mktemp("helm")).render(values=VALUES)


@pytest.fixture(scope="package")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Prepare the API server's log."""
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="package")
def control_plane(audit: Audit, rendered: Rendered) -> Iterator[ControlPlane]:
    """Run a control plane on which the chart is installed, less what would run in pods."""
    with ControlPlane(ControlPlaneOptions(apiserver_flags=audit.flags)) as plane:
        for namespace in (NAMESPACE, ELECTIONS, ELSEWHERE):
            plane.kubectl("create", "namespace", namespace)
        installed = [item for item in rendered.objects if item["kind"] in KINDS]
        plane.kubectl("apply", "--filename=-", input=yaml.safe_dump_all(installed))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        for kind in ("secret", "configmap"):
            create = ("create", kind, *(["generic"] if kind == "secret" else []), SOURCE)
            plane.kubectl(*create, f"--namespace={NAMESPACE}", "--from-literal=payload=1")
        until_rules_hold(Client(plane.url, plane.ca_file, plane.admin_token))
        yield plane


@pytest.fixture(scope="package")
def admin(control_plane: ControlPlane) -> Client:
    """Act as who may do everything here; the folder above has another control plane's."""
    return Client(control_plane.url, control_plane.ca_file, control_plane.admin_token)


@pytest.fixture(scope="package")
def setup(admin: Client) -> StolenTokenSetup:
    """Prepare for stolen tokens: the chart's accounts and one worker."""
    home = Space(NAMESPACE, admin)
    return StolenTokenSetup(home, home.worker("busy", BUSY_ACCOUNT))


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for kubeconfigs and logs."""
    return tmp_path_factory.mktemp("security")
