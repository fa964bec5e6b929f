"""Operator, gateway and worker as processes use the rights that the chart gives, and no others.

They run through a day of jobs, queues, cron jobs and arrays; the API server's own log says what
they asked for, and whether they might.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    API_VERSION,
    ARRAY_KIND,
    ARRAYS,
    COMPONENT_LABEL,
    CRON_JOBS,
    GROUP,
    JOBS,
    OPERATE_VERB,
    QUEUES,
    VOUCH_VERB,
    WORKER_COMPONENT,
    WORKER_LEASE_PREFIX,
    collection_path,
)
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.charts import NAMESPACE, Rendered
from support.cluster.identities import Worker
from support.cluster.impersonation import as_pod
from support.driven.jobs import until
from support.driven.lives import Life
from support.objects import builders
from support.processes.gateway import ROOT, GatewayProcess
from support.processes.operator import QUICK, OperatorProcess
from support.rights import Part, Principal, Right, parts_of, rights_of
from support.rights.audit import Audit
from support.rights.preparation import as_worker
from support.rights.principals import make_principals
from support.rights.probes.operating import ELECTIONS
from support.rights.probes.worker import SOURCE, source

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

HERE = "at-work"
ACCOUNTS = ("asyncjob-operator", "asyncjob-gateway", "asyncjob-worker-rich")
VIRTUAL = {OPERATE_VERB, VOUCH_VERB}
SELF = "selfsubjectaccessreviews"
RARE = {
    "asyncjob-operator": {Right(GROUP, QUEUES, "get")},
    "asyncjob-gateway": set[Right](),
    "asyncjob-worker-rich": set[Right](),
}
"""What takes a coincidence: to see a queue again that somebody else wrote at the same moment."""

JOB_PATHS, QUEUE_PATHS, CRON_PATHS, ARRAY_PATHS = (
    collection_path(HERE, one) for one in (JOBS, QUEUES, CRON_JOBS, ARRAYS)
)
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{HERE}/leases"
OPERATOR = (
    *QUICK,
    f"--namespace={HERE}",
    f"--lease-namespace={ELECTIONS}",
    "--resync-interval=1",
    "--worker-timeout=1",
    "--retention-max-age=0",
)


@pytest.fixture
def parts(rendered: Rendered) -> dict[str, Part]:
    """Move the parts to a namespace of their own."""
    return {part.account: moved(part) for part in parts_of(rendered, NAMESPACE)}


def moved(part: Part) -> Part:
    grants = [
        replace(grant, namespace=HERE if grant.namespace == NAMESPACE else grant.namespace)
        for grant in part.grants
    ]
    return replace(part, namespace=HERE, grants=tuple(grants))


@pytest.fixture
def principals(
    control_plane: ControlPlane, admin: Client, folder: Path, parts: dict[str, Part]
) -> dict[str, Principal]:
    admin.create("/api/v1/namespaces", {"metadata": {"name": HERE}}).object()
    for kind in ("secrets", "configmaps"):
        data = {"stringData" if kind == "secrets" else "data": {"payload": "1"}}
        body = {"metadata": {"name": SOURCE}, **data}
        admin.create(f"/api/v1/namespaces/{HERE}/{kind}", body).object()
    return make_principals(control_plane, admin, folder, {name: parts[name] for name in ACCOUNTS})


@contextmanager
def working(principal: Principal, folder: Path) -> Iterator[None]:
    """Run a worker process in the name of the principal's pod."""
    program = str(Path(sys.executable).with_name("asyncjob-worker"))
    environ = {
        **{name: text for name, text in os.environ.items() if "ASYNCJOB_" not in name},
        "PYTHONPATH": str(ROOT / "tests"),
        "KUBECONFIG": str(principal.kubeconfig),
        "POD_NAME": principal.holder.pod,
        "POD_UID": principal.holder.pod_uid,
    }
    command = [program, "run", "support.rights.worker_app:app", "--grace=0"]
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, stderr=log, env=environ)
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


class Day:
    """What happens to jobs, queues, cron jobs and arrays."""

    def __init__(self, admin: Client, http: httpx.Client, worker: Worker) -> None:
        self._admin = admin
        self._http = http
        self._worker = worker

    def run(self) -> None:
        """Have it all happen; what comes of it is for the log to tell."""
        self._queues_and_schedules()
        self._dead_workers()
        self._control_fields()
        self._arrays()
        for more in (
            {"payload": 1},
            {"type": "parent"},
            {"type": "mapper"},
            {"payloadFrom": source("secretKeyRef")["payloadFrom"]},
            {"payloadFrom": source("configMapKeyRef")["payloadFrom"]},
        ):
            self._ask("POST", "/jobs", {"type": "echo", **more})

    def _queues_and_schedules(self) -> None:
        self._create(QUEUE_PATHS, builders.queue("limited", maxConcurrency=1))
        self._create(CRON_PATHS, builders.cron_job("nightly"))
        self._ask("POST", "/queues/limited/pause")
        self._ask("POST", "/queues/bare/pause")
        self._ask("POST", "/queues/without-object/resume")
        self._ask("POST", "/jobs", {"type": "none", "queue": "limited", "name": "waits"})
        self._ask("GET", "/jobs/waits")
        self._ask("POST", "/queues/limited/resume")
        self._ask("GET", "/cron-jobs")
        self._ask("GET", "/cron-jobs/nightly")
        self._ask("POST", "/cron-jobs/nightly/trigger")

    def _dead_workers(self) -> None:
        """Let one pod be gone, and another have a newer process."""
        for name, gone in (("orphan", True), ("replaced", False)):
            body = {
                "metadata": {"name": name, "labels": {COMPONENT_LABEL: WORKER_COMPONENT}},
                "spec": {"containers": [{"name": "worker", "image": "worker"}]},
            }
            pods = f"/api/v1/namespaces/{HERE}/pods"
            uid = self._create(pods, body)["metadata"]["uid"]
            holder = self._admin.sending(as_pod(HERE, name, uid))
            life = Life(HERE, name, self._admin, Worker(name, uid, holder))
            life.create(queue="nobodys", leaseDurationSeconds=5)
            life.bring(Phase.RUNNING)
            if gone:
                self._admin.delete(f"{pods}/{name}").object()
            else:
                self._announce(name)

    def _announce(self, name: str) -> None:
        """Announce a newer process of a pod, which then goes silent."""
        labels = {COMPONENT_LABEL: WORKER_COMPONENT}
        lease = {"name": f"{WORKER_LEASE_PREFIX}{name}", "labels": labels}
        self._create(LEASES, {"metadata": lease, "spec": {"holderIdentity": f"{name}/new"}})

    def _control_fields(self) -> None:
        """Cancel with children and an array; ask for a rerun whose name another job has."""
        parent = self._create(JOB_PATHS, builders.job("tree", queue="nobodys"))
        child = builders.job("leaf", queue="nobodys")
        child["metadata"]["labels"] = {f"{GROUP}/parent": parent["metadata"]["uid"]}
        self._create(JOB_PATHS, child)
        array = builders.array("leaves", queue="nobodys")
        array["metadata"]["labels"] = child["metadata"]["labels"]
        self._create(ARRAY_PATHS, array)
        for name in ("again", "again-r1"):
            self._create(JOB_PATHS, builders.job(name, queue="nobodys", ttlSecondsAfterFinished=99))
        self._ask("DELETE", "/jobs/tree?cascade=true")
        self._ask("DELETE", "/jobs/again")
        control = {"spec": {"rerun": 1}}
        self._admin.merge(f"{JOB_PATHS}/again", control).object()

    def _arrays(self) -> None:
        """Run an array, which is removed once it has ended."""
        spec = {"type": "number", "items": {"count": 3}, "ttlSecondsAfterFinished": 0}
        metadata = {"name": "numbers"}
        body = {"apiVersion": API_VERSION, "kind": ARRAY_KIND, "metadata": metadata, "spec": spec}
        self._create(ARRAY_PATHS, body)
        asked = {"type": "number", "name": "asked", "queue": "nobodys", "items": {"count": 3}}
        self._ask("POST", "/arrays", asked)
        self._ask("GET", "/arrays/asked")
        self._ask("POST", "/arrays/asked/cancel")

    def _create(self, path: str, body: Any) -> Any:
        return self._admin.create(path, body).object()

    def _ask(self, method: str, path: str, body: Any = None) -> None:
        answer = self._http.request(method, f"/api/v1{path}", json=body)
        assert not answer.is_error, answer.text


def test_processes_use_every_right_they_have_and_ask_for_no_other(
    principals: dict[str, Principal],
    parts: dict[str, Part],
    admin: Client,
    audit: Audit,
    folder: Path,
) -> None:
    operator, gateway, worker = (principals[name] for name in ACCOUNTS)
    (folder / "at-work.log").touch()
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(OperatorProcess(operator.kubeconfig, folder / "op.log", *OPERATOR)).until_leading()
        site = enter(GatewayProcess(gateway.kubeconfig, folder / "at-work.log"))
        site.until_ready()
        enter(working(worker, folder))
        http = enter(site.client(admin.token))
        Day(admin, http, as_worker(worker)).run()
        for name in ACCOUNTS:
            wanted = granted(parts[name]) - RARE[name]

            def used(name: str = name, wanted: set[Right] = wanted) -> bool:
                return wanted <= audit.rights(principals[name].username, "allow")

            try:
                until(used, 30, name)
            except AssertionError:
                missing = wanted - audit.rights(principals[name].username, "allow")
                raise AssertionError([str(right) for right in missing]) from None

    for name in ACCOUNTS:
        asked = audit.rights(principals[name].username, "allow")
        assert {right for right in asked if right.resource != SELF} <= granted(parts[name])
        assert audit.rights(principals[name].username, "forbid") == set()


def granted(part: Part) -> set[Right]:
    """Return the rights as the log has them: without names, and without verbs of our own."""
    return {
        replace(right, name="")
        for grant in part.grants
        for right in rights_of(grant.rules)
        if right.verb not in VIRTUAL
    }
