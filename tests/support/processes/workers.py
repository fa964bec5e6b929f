"""Worker processes and worker sessions under test, each with a Pod and a token bound to it."""

import itertools
import re
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.names import (
    COMPONENT_LABEL,
    JOBS,
    QUEUES,
    WORKER_COMPONENT,
    collection_path,
    job_path,
)
from asyncjob_dev.api import Api, Object, write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.errors import ApiStatusError
from asyncjob_dev.supervisor import DevPods, DevWorker, WorkerSpec, objects
from asyncjob_worker.settings import identify

T = TypeVar("T")

ROOT = Path(__file__).parents[3]
CRDS = ROOT / "crds"
ROLES = ROOT / "dev" / "manifests" / "rbac.yaml"
ACCOUNT = "asyncjob-worker"
CHILDREN_ROLE = "asyncjob-worker-children"
LOOK_SECONDS = 0.05

_numbers = itertools.count(1)


def until(probe: Callable[[], T | None], within: float, what: Callable[[], str]) -> T:
    """Return the first true answer of the probe."""
    give_up_at = time.monotonic() + within
    while not (answer := probe()):
        assert time.monotonic() < give_up_at, f"not within {within} s: {what()}"
        time.sleep(LOOK_SECONDS)
    return answer


@dataclass(frozen=True)
class Identity:
    """A Pod that runs no process: a worker inside the test uses its token."""

    holder: LeaseHolder
    kubeconfig: Path


class WorkerNamespace:
    """A namespace of its own: workers, jobs, and the admin's eyes on them."""

    def __init__(self, plane: ControlPlane, folder: Path, pods: DevPods) -> None:
        self.plane = plane
        self.api: Api = plane.api
        self.namespace = pods.namespace
        self.folder = folder
        self._pods = pods

    # ---- jobs

    def create(self, name: str, type: str, payload: Any = None, **spec: Any) -> Object:  # noqa: A002
        """Create a job."""
        more = {} if payload is None else {"payload": payload}
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name},
            "spec": {"type": type, **more, **spec},
        }
        return self.api.create(collection_path(self.namespace, JOBS), body)

    def queue(self, name: str, **spec: Any) -> Object:
        """Create an AsyncQueue."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncQueue",
            "metadata": {"name": name},
            "spec": spec,
        }
        return self.api.create(collection_path(self.namespace, QUEUES), body)

    def jobs(self) -> list[Object]:
        """Return all jobs."""
        items: list[Object] = self.api.get(collection_path(self.namespace, JOBS))["items"]
        return items

    def get(self, name: str) -> Object:
        """Return the job."""
        return self.api.get(job_path(self.namespace, name))

    def status(self, name: str) -> Object:
        """Return the job's status."""
        status: Object = self.get(name)["status"]
        return status

    def patch(self, name: str, body: Object) -> Object:
        """Change the job as a user may."""
        return self.api.merge(job_path(self.namespace, name), body)

    def cancel(self, name: str) -> None:
        """Request the cancellation of the job."""
        self.patch(name, {"spec": {"cancel": True}})

    def until_status(
        self, name: str, probe: Callable[[Object], Any], within: float = 15.0
    ) -> Object:
        """Return the status once the probe holds for it."""

        def look() -> Object | None:
            status = self.status(name)
            return status if probe(status) else None

        return until(look, within, lambda: f"{name} is {self.status(name)}")

    def until_phase(self, name: str, phase: str, within: float = 15.0) -> Object:
        """Return the status once the job is in the phase."""
        return self.until_status(name, lambda status: status["phase"] == phase, within)

    # ---- workers

    def worker(
        self,
        name: str = "worker-0",
        *options: str,
        app: str = "support.apps.worker:app",
        env: Mapping[str, str] | None = None,
        restart: bool = False,
    ) -> DevWorker:
        """Start a worker process and wait until it works."""
        started = self.start_worker(name, *options, app=app, env=env, restart=restart)
        self.until_log(started, "worker started")
        return started

    def start_worker(
        self,
        name: str,
        *options: str,
        app: str = "support.apps.worker:app",
        env: Mapping[str, str] | None = None,
        restart: bool = False,
        cwd: Path | None = None,
    ) -> DevWorker:
        """Start a worker process; with `restart` it is started again in the same Pod."""
        program = str(Path(sys.executable).with_name("asyncjob-worker"))
        paths = {"PYTHONPATH": str(ROOT / "tests"), "WORKER_APP_FOLDER": str(self.folder)}
        spec = WorkerSpec(
            name=name,
            argv=[program, "run", app, *options],
            env={**paths, **(env or {})},
            labels={COMPONENT_LABEL: WORKER_COMPONENT},
            cwd=cwd,
            restart=restart,
            restart_delay=0.2,
        )
        return self._pods.start(spec)

    def log(self, worker: DevWorker) -> str:
        """Return what the worker has logged."""
        return worker.process.log_file.read_text(errors="replace")

    def until_log(self, worker: DevWorker, text: str, within: float = 20.0) -> None:
        """Wait until the worker has logged a text."""
        until(lambda: text in self.log(worker), within, lambda: self.log(worker))

    def identity(self, name: str) -> Identity:
        """Make a Pod with a bound token for a worker inside the test."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        body = objects.build_pod(name, account=ACCOUNT, node="nowhere", labels={}, restart=False)
        uid = self.api.create(pods, body)["metadata"]["uid"]
        token = self.api.request_token(self.namespace, ACCOUNT, pod=(name, uid))["token"]
        kubeconfig = self.folder / f"kubeconfig-{name}"
        write_kubeconfig(
            kubeconfig,
            url=self.api.url,
            ca_file=self.api.ca_file,
            user={"token": token},
            namespace=self.namespace,
            name=name,
        )
        return Identity(identify(name, uid), kubeconfig)

    def writes(self) -> Counter[str]:
        """Return how often each kind of write on jobs was made so far, on the whole server."""
        text = self.plane.kubectl("get", "--raw", "/metrics").stdout
        counts: Counter[str] = Counter()
        for line in text.splitlines():
            if line.startswith("apiserver_request_total{") and f'resource="{JOBS}"' in line:
                labels, _, value = line.rpartition(" ")
                found = dict(re.findall(r'(\w+)="([^"]*)"', labels))
                if found["verb"] in {"POST", "PUT", "PATCH", "APPLY", "DELETE"}:
                    kind = f"{found['verb']} {found['subresource']} {found['code']}"
                    counts[kind + found["dry_run"]] += int(float(value))
        return counts

    # ---- what handlers see and leave

    def open(self, gate: str) -> None:
        """Let handlers pass that wait for the gate."""
        (self.folder / gate).touch()

    def trace(self, word: str = "") -> list[str]:
        """Return the lines that handlers have left, those with the word only."""
        file = self.folder / "trace"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(word)]

    def until_trace(self, line: str, within: float = 15.0) -> None:
        """Wait for a line of a handler."""
        until(lambda: line in self.trace(), within, lambda: f"{line} in {self.trace()}")


@contextmanager
def worker_namespace(plane: ControlPlane, folder: Path) -> Iterator[WorkerNamespace]:
    """Prepare a namespace with a worker's rights; its workers are stopped at the end."""
    namespace = f"work-{next(_numbers)}-{uuid.uuid4().hex[:6]}"
    roles = folder / "roles.yaml"
    bindings = [_binding(namespace, role) for role in (ACCOUNT, CHILDREN_ROLE)]
    roles.write_text(yaml.safe_dump_all(bindings))
    with DevPods(plane.api, folder / "pods", namespace=namespace) as pods:
        pods.prepare(rbac=[roles])
        try:
            yield WorkerNamespace(plane, folder, pods)
        finally:
            for worker in pods.workers:
                worker.process.resume()
                worker.spec = _hurried(worker.spec)


def _hurried(spec: WorkerSpec) -> WorkerSpec:
    return replace(spec, grace=0.0)


def _binding(namespace: str, role: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }


def is_gone(api: Api, path: str) -> bool:
    """Return whether there is no such object."""
    try:
        api.get(path)
    except ApiStatusError as error:
        return error.status == 404
    return False
