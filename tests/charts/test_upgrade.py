"""A version before installed by the real Helm, jobs at every point of their lives, an upgrade.

Worker and operator of the version before are their recorded writes; those of today are the code.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.release.writes import OPERATOR, WORKER
from support.cluster.api import Client
from support.cluster.charts import CHART, NAMESPACE, RELEASE, ROOT, Helm
from support.cluster.enforcement import until_rules_hold
from support.cluster.identities import Space, Worker
from support.cluster.releases import RELEASES, Release, Replay, cut_points
from support.driven.jobs import until
from support.objects.builders import cron_job

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

LIVES = "lives"
KINDS = (JOBS, QUEUES, CRON_JOBS)
PAIRS = {
    "old-old": frozenset[str](),
    "new-worker": frozenset({WORKER}),
    "new-new": frozenset({WORKER, OPERATOR}),
}
"""Who writes by the code of today once the chart was upgraded. A worker is never ahead of CRDs."""


@dataclass
class UpgradeSetup:
    """A cluster with the version before on it."""

    helm: Helm
    plane: ControlPlane
    release: Release
    admin: Client
    worker: Worker

    def upgrade(self, chart: Path) -> None:
        """Go on to another chart."""
        self._helm("upgrade", chart)

    def install(self) -> None:
        """Begin with the version before."""
        self._helm("install", self.release.chart)

    def _helm(self, what: str, chart: Path) -> None:
        where = f"--namespace={NAMESPACE}"
        without = ("--set=preflight.enabled=false", "--set=userRoles.create=false")
        self.helm.run(what, RELEASE, str(chart), where, *without, kubeconfig=self.plane.kubeconfig)

    def back(self) -> None:
        """Go back to the version before."""
        where = f"--namespace={NAMESPACE}"
        self.helm.run("rollback", RELEASE, "1", where, kubeconfig=self.plane.kubeconfig)
        until(self.is_served, 20, "the storage of the old CRDs")

    def is_served(self) -> bool:
        """Return whether all is to be had; after a change of a CRD it is not for a moment (429)."""
        return all(self.admin.get(collection_path(LIVES, plural)).accepted for plural in KINDS)

    def objects(self, plural: str) -> list[dict[str, Any]]:
        """Return all objects of a kind."""
        found: list[dict[str, Any]] = self.admin.get(collection_path(LIVES, plural)).object()[
            "items"
        ]
        return found

    def replay(self, name: str, life: Any) -> Replay:
        """Return a life that can be played here."""
        return Replay(name, life, LIVES, self.admin, self.worker)


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def setup(helm: Helm, request: pytest.FixtureRequest) -> Iterator[UpgradeSetup]:
    """Install a version before, with roles for a worker and a namespace for jobs."""
    with ControlPlane() as plane:
        plane.kubectl("create", "namespace", NAMESPACE)
        plane.kubectl("apply", f"--filename={ROOT / 'dev/manifests/rbac.yaml'}")
        admin = Client(plane.url, plane.ca_file, plane.admin_token)
        setup = UpgradeSetup(helm, plane, request.param, admin, Worker("", "", admin))
        setup.install()
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        until_rules_hold(admin)
        setup.worker = Space(LIVES, admin).create().worker("worker-0")
        yield setup


def test_an_upgrade_leaves_every_object_valid_and_every_job_goes_on(setup: UpgradeSetup) -> None:
    mail = {"apiVersion": "asyncjob.dev/v1alpha1", "kind": "AsyncQueue", "spec": {"paused": True}}
    setup.admin.create(
        collection_path(LIVES, QUEUES), {**mail, "metadata": {"name": "mail"}}
    ).object()
    setup.admin.create(collection_path(LIVES, CRON_JOBS), cron_job("nightly")).object()
    waiting = list(_begun(setup))
    early = _first_crash_too_early(setup)

    setup.upgrade(CHART)

    for shipped in _shipped(CHART):
        until(partial(_is_applied, setup, shipped), 20, f"{shipped['metadata']}")
    until(setup.is_served, 20, "the storage of the new CRDs")
    # What is there is still what the new CRDs and rules take, as a whole and in its status.
    for plural in KINDS:
        for obj in setup.objects(plural):
            path = f"{collection_path(LIVES, plural)}/{obj['metadata']['name']}"
            setup.admin.dry().replace(path, obj).object()
            setup.admin.dry().replace(f"{path}/status", obj).object()
    # And whoever is one version behind goes on with it, beside who is not.
    *most, (last, played_of_last, _) = waiting
    for life, played, by in most:
        life.play(played, by=by)
    early.play(1, by=PAIRS["new-new"])
    # Back at the version before, what was begun there or here can be ended, too.
    setup.back()
    last.play(played_of_last)
    assert {job["status"]["phase"] for job in setup.objects(JOBS)} <= {
        "Succeeded",
        "DeadLetter",
        "Cancelled",
    }


def _first_crash_too_early(setup: UpgradeSetup) -> Replay:
    """Have today's operator write a first crash while the policies of before are still there."""
    life = next(one for one in setup.release.lives if one["name"] == "crashed")
    replay = setup.replay("crashed-early", life)
    replay.create()
    replay.play(0, 1)
    refused = replay.make(1, life["writes"][1], frozenset({OPERATOR}))
    assert refused.status == 422, refused.body
    return replay


def _begun(setup: UpgradeSetup) -> Iterator[tuple[Replay, int, frozenset[str]]]:
    """Bring a job to each point of each life, for each pair that will go on with it."""
    for number, (life, played) in enumerate(cut_points(setup.release)):
        for pair in ("old-old", ("new-worker", "new-new")[number % 2]):
            replay = setup.replay(f"{pair}-{number}", life)
            replay.create()
            replay.play(0, played)
            yield replay, played, PAIRS[pair]


def _shipped(chart: Path) -> list[dict[str, Any]]:
    files = sorted((chart / "files/crds").glob("*.yaml"))
    return [obj for file in files for obj in yaml.safe_load_all(file.read_text()) if obj]


def _is_applied(setup: UpgradeSetup, shipped: dict[str, Any]) -> bool:
    found = setup.plane.kubectl("get", shipped["kind"], shipped["metadata"]["name"], "-ojson")
    return _holds(json.loads(found.stdout)["spec"], shipped["spec"])


def _holds(there: Any, wanted: Any) -> bool:
    """Return whether all that is wanted is there; the API server adds defaults."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            _holds(there.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return len(there or []) == len(wanted) and all(map(_holds, there, wanted))
    same: bool = there == wanted
    return same


HEARTBEAT = "object.status.?lease.?renewals.orValue(0) > 0"
NO_HEARTBEATS = f"""
  - expression: '!({HEARTBEAT})'
    message: a rule that the version before does not keep
"""


def forbid_heartbeats(text: str) -> str:
    """Add a rule to a policy whose rules are evaluated once its condition finds one broken."""
    looked_at = text.replace("'!(", f"'{HEARTBEAT} || !(", 1)
    return looked_at.replace("\n  validations:", f"\n  validations:{NO_HEARTBEATS}", 1)


@pytest.mark.parametrize(
    ("file", "change", "life", "refused"),
    [
        (
            "policy-lifecycle.yaml",
            forbid_heartbeats,
            "long",
            "renew",
        ),
        (
            "asyncjobs.yaml",
            lambda text: re.sub(r"maxLength: 320", "maxLength: 3", text),
            "plain",
            "claim",
        ),
    ],
    ids=["rule", "crd"],
)
def test_a_chart_that_the_version_before_cannot_live_with_is_noticed(
    setup: UpgradeSetup,
    tmp_path: Path,
    file: str,
    change: Callable[[str], str],
    life: str,
    refused: str,
) -> None:
    shutil.copytree(CHART, tmp_path / "chart")
    path = tmp_path / "chart/files/crds" / file
    assert change(path.read_text()) != path.read_text()
    path.write_text(change(path.read_text()))
    setup.upgrade(tmp_path / "chart")
    [kept] = [one for one in setup.release.lives if one["name"] == life]
    names = iter(range(1000))

    def is_refused() -> bool:
        replay = setup.replay(f"{life}-{refused}-{next(names)}", kept)
        replay.create()
        try:
            replay.play(0)
        except AssertionError as error:
            return bool(error.args[0][2] == refused)
        return False

    until(is_refused, 20, "the refusal")
    setup.upgrade(CHART)
