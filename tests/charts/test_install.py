"""A release's life, by the real Helm on a real API server; only pods are played here."""

import json
import re
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from asyncjob.rules.managed_fields import MANAGED_FIELDS_POLICY
from asyncjob.rules.mutation import SHARD_POLICY
from asyncjob.rules.policies import POLICIES
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.charts import NAMESPACE, RELEASE, Helm, RenderError
from support.cluster.enforcement import until_rules_hold
from support.cluster.hook_jobs import run_job
from support.cluster.identities import RBAC, Space
from support.cluster.inhabited import inhabit
from support.driven.jobs import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

JOB = {
    "apiVersion": "asyncjob.dev/v1alpha1",
    "kind": "AsyncJob",
    "metadata": {"name": "first"},
    "spec": {"type": "echo"},
}


@dataclass(frozen=True)
class Release:
    """The release on one control plane."""

    helm: Helm
    plane: ControlPlane
    folder: Path

    def do(self, *command: str, checked: bool = False, **values: Any) -> str:
        """Run Helm; `checked`: with the preflight, which is run here as a pod would."""
        given = {"preflight": {"enabled": checked}, **values}
        file = self.folder / "values.yaml"
        file.write_text(yaml.safe_dump(given))
        set_values = [f"--values={file}"] if command[0] in ("install", "upgrade") else []
        where = f"--namespace={NAMESPACE}"
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(
                self.helm.run, *command, where, *set_values, kubeconfig=self.plane.kubeconfig
            )
            said = self._preflight(command[1]) if checked else ""
            done.result(timeout=90)
        return said

    def install(self, *, checked: bool = False, **values: Any) -> str:
        return self.do("install", RELEASE, str(self.helm.chart), checked=checked, **values)

    def upgrade(self, **values: Any) -> None:
        self.do("upgrade", RELEASE, str(self.helm.chart), **values)

    def uninstall(self) -> None:
        self.do("uninstall", RELEASE)

    def install_beside(self, name: str, **values: Any) -> str:
        """Install another release, with its check; return what that says."""
        return self.do("install", name, str(self.helm.chart), checked=True, **values)

    def _preflight(self, name: str) -> str:
        whole = name if RELEASE in name else f"{name}-{RELEASE}"
        return run_job(self.plane, NAMESPACE, f"{whole}-preflight", self.folder)

    def get(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return an object."""
        told = self.plane.kubectl("get", kind, name, f"--namespace={NAMESPACE}", "--output=json")
        found: Mapping[str, Any] = json.loads(told.stdout)
        return found

    def names(self, kind: str) -> set[str]:
        """Return the names of all objects of a kind, those of Kubernetes' own apart."""
        asked = ("get", kind, f"--namespace={NAMESPACE}", "--output=name")
        found = self.plane.kubectl(*asked).stdout.split()
        return {name.partition("/")[2] for name in found}


@pytest.fixture
def release(other_chart: Helm, bare_plane: ControlPlane, tmp_path: Path) -> Release:
    """Prepare a namespace on a control plane that has never heard of us."""
    bare_plane.kubectl("create", "namespace", NAMESPACE)
    return Release(other_chart, bare_plane, tmp_path)


def limit(places: int) -> dict[str, Any]:
    return {"mail": {"spec": {"maxConcurrency": places}}}


def test_a_release_comes_changes_and_goes_and_jobs_stay(release: Release) -> None:
    # The CRDs come with the release, and so do queues. The operator finds all it needs.
    said = release.install(checked=True, queues=limit(3))

    assert "error" not in said.lower()
    queue = release.get("asyncqueue", "mail")
    assert queue["spec"]["maxConcurrency"] == 3
    release.plane.kubectl(
        "create", f"--namespace={NAMESPACE}", "--filename=-", input=json.dumps(JOB)
    )

    # An upgrade changes queues in place, and CRDs, which Helm's own folder for them would not.
    crd = release.helm.chart / "files/crds/asyncjobs.yaml"
    crd.write_text(re.sub(r"- aj$", "- aj\n    - jj", crd.read_text(), flags=re.MULTILINE))
    release.upgrade(queues=limit(5), policies={"mutating": True})

    assert release.names("mutatingadmissionpolicy") == {MANAGED_FIELDS_POLICY, SHARD_POLICY}
    changed = release.get("asyncqueue", "mail")
    assert changed["spec"]["maxConcurrency"] == 5
    assert changed["metadata"]["uid"] == queue["metadata"]["uid"]
    names = release.get("crd", "asyncjobs.asyncjob.dev")["spec"]["names"]
    assert names["shortNames"] == ["aj", "jj"]

    # Neither taking it out of the values nor a rollback deletes a queue. What changes jobs goes.
    release.upgrade()
    assert release.names("mutatingadmissionpolicy") == set()
    release.do("rollback", RELEASE, "1", "--no-hooks")

    assert release.get("asyncqueue", "mail")["metadata"]["uid"] == queue["metadata"]["uid"]
    assert release.get("asyncqueue", "mail")["spec"]["maxConcurrency"] == 5

    # Uninstalling leaves jobs and what guards them, and the release can come back.
    release.uninstall()

    assert release.names("deployment") == set()
    assert release.names("asyncjob") == {"first"}
    assert len(release.names("validatingadmissionpolicybinding")) == len(POLICIES)
    release.install(queues=limit(4), crds={"keep": False}, policies={"keep": False})
    assert release.get("asyncqueue", "mail")["spec"]["maxConcurrency"] == 4
    assert release.names("asyncjob") == {"first"}

    # Asked for, as in that install, everything goes.
    release.uninstall()

    until(lambda: not release.names("crd"), 30, "the end of the CRDs")
    assert release.names("validatingadmissionpolicy") == set()


def test_inhabited_namespaces_go_within_a_minute_before_and_after_the_release_does(
    release: Release,
) -> None:
    """The policies stay behind, and the controllers that delete may not operate on jobs."""
    plane, account = release.plane, f"{RELEASE}-worker-default"
    admin = Client(plane.url, plane.ca_file, plane.admin_token)
    release.install()
    until_rules_hold(admin)
    home, tenant = Space(NAMESPACE, admin), Space("tenant", admin)
    plane.kubectl("create", "namespace", tenant.name)
    role = admin.get(f"{home.path('roles', RBAC)}/{account}").object()
    tenant.grant(account, *role["rules"])
    for space in (tenant, home):
        inhabit(space, space.worker("worker-0", account), admin)

    delete = ("delete", "namespace", "--timeout=60s")
    plane.kubectl(*delete, tenant.name, timeout=90)
    release.uninstall()
    assert release.names("asyncjob") == {"job-queued", "job-running", "job-succeeded"}
    assert release.names("validatingadmissionpolicybinding")
    plane.kubectl(*delete, NAMESPACE, timeout=90)


def test_two_releases_in_a_namespace_share_no_election_and_numbers_are_names(
    release: Release,
) -> None:
    """Namespaces, releases and queues may be called by numbers, or by what YAML takes for true."""
    release.plane.kubectl("create", "namespace", "2026")
    parts = {"crds": "install", "policies": "install", "userRoles": "create"}
    others: dict[str, Any] = {part: {verb: False} for part, verb in parts.items()}
    scaled = {"true": {"namespace": "2026", "autoscaling": {"engine": "hpa"}}}
    scope = {"namespaces": [NAMESPACE, "2026"]}

    release.install(scope=scope, workers=scaled, flowControl={"enabled": True})

    with pytest.raises(RenderError, match=f"leaseName: release {RELEASE} in this namespace elects"):
        release.do("install", "7", str(release.helm.chart), **others)
    own = {"options": {"leaseName": "asyncjob-operator-7"}}
    # The check of the installation asks for the right to that Lease, and not for the usual one's.
    said = release.install_beside("7", operator=own, **others)
    assert "the operator can work" in said
    assert flow_of(release, "2026", "asyncjob-worker-true") == schema(release, "worker")
    assert flow_of(release, NAMESPACE, "asyncjob-operator") == schema(release, "operator")


def test_a_limit_that_was_taken_away_stays_away_when_values_are_reused(release: Release) -> None:
    """There Helm leaves the null in place, which would be a limit of nothing."""
    release.install(podDefaults={"resources": {"limits": {"memory": None}}})

    release.do("upgrade", RELEASE, str(release.helm.chart), "--reuse-values")

    (worker,) = release.get("deployment", f"{RELEASE}-worker-default")["spec"]["template"]["spec"][
        "containers"
    ]
    assert worker["resources"] == {"requests": {"cpu": "50m", "memory": "128Mi"}}


def schema(release: Release, part: str) -> str:
    """Return the UID of the FlowSchema of a part."""
    found = release.get("flowschema", f"{NAMESPACE}-{RELEASE}-{part}")
    return str(found["metadata"]["uid"])


def flow_of(release: Release, namespace: str, account: str) -> str:
    """Return the UID of the FlowSchema that a request of the account comes under."""
    plane = release.plane
    token = plane.kubectl("create", "token", account, f"--namespace={namespace}").stdout.strip()
    path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{namespace}/asyncjobs"
    trust = ssl.create_default_context(cafile=str(plane.ca_file))
    who = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{plane.url}{path}", headers=who, verify=trust)
    return answer.headers["X-Kubernetes-PF-FlowSchema-UID"]


def test_queues_beside_their_own_crd_would_be_refused(release: Release) -> None:
    """This is why they are hooks first. Should Helm learn it, that is superfluous."""
    template = release.helm.chart / "templates/queues.yaml"
    template.write_text(template.read_text().replace("{{- if not $there }}", "{{- if false }}"))

    with pytest.raises(RenderError, match='no matches for kind "AsyncQueue"'):
        release.install(queues=limit(3))
