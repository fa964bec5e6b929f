"""A namespace with its roles, pods and submitter, and the processes that run in it.

These are worker and operator processes as users start them.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.error import HTTPError
from urllib.request import urlopen

import yaml

from asyncjob.names import (
    COMPONENT_LABEL,
    GATEWAY_COMPONENT,
    GROUP,
    JOBS,
    OPERATOR_COMPONENT,
    WORKER_COMPONENT,
    collection_path,
)
from asyncjob_bench.errors import BenchError
from asyncjob_bench.harness import procfs
from asyncjob_bench.harness.templates import SUBMITTER
from asyncjob_bench.stats.exposition import Scrape
from asyncjob_dev.api import Api, Object, write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.environment.components import (
    GATEWAY_ACCOUNT,
    OPERATOR_ACCOUNT,
    WORKER_ACCOUNT,
    script_path,
)
from asyncjob_dev.environment.readiness import await_enforcement
from asyncjob_dev.ports import free_port, free_ports
from asyncjob_dev.process import wait_until
from asyncjob_dev.supervisor import DevPods, DevWorker, WorkerSpec, objects

RBAC: Final = "rbac.authorization.k8s.io"
SUBMITTER_VERBS: Final = ("create", "get", "list", "watch", "patch", "signal")
"""Those of a submitter who may answer jobs that wait."""


def roles(namespace: str) -> list[Object]:
    """Return the roles and bindings of submitter, workers, operator and gateway."""
    rules = [
        {"apiGroups": [GROUP], "resources": [JOBS], "verbs": list(SUBMITTER_VERBS)},
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
        _binding(namespace, GATEWAY_ACCOUNT, {"kind": "ClusterRole", "name": GATEWAY_ACCOUNT}),
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


READY_SECONDS: Final = 300.0
REQUEST_SECONDS: Final = 30.0
LEADING_METRIC: Final = "asyncjob_operator_leading"


class ManagedWorker:
    """One such process and where its health and metrics are."""

    def __init__(self, worker: DevWorker, health_port: int, metrics_port: int) -> None:
        self.worker = worker
        self._health, self._metrics = health_port, metrics_port

    @property
    def pid(self) -> int:
        """The process id; raises BenchError once it has ended."""
        if not self.worker.process.running or (pid := self.worker.process.pid) is None:
            log = self.worker.process.log_tail()
            raise BenchError(f"{self.worker.name} has ended, and its log with:\n{log}")
        return pid

    def wait_ready(self) -> "ManagedWorker":
        """Wait until it works."""
        return self._wait_until(lambda: self._request(self._health, "/readyz")[0] == 200)

    def wait_leading(self) -> "ManagedWorker":
        """Wait until this operator may act."""
        return self._wait_until(lambda: self.metrics().total(LEADING_METRIC) == 1)

    def metrics(self) -> Scrape:
        """Return its metrics; none while it cannot be asked."""
        return Scrape.of(self._request(self._metrics, "/metrics")[1])

    @property
    def resident_mib(self) -> float:
        """What it occupies now."""
        return procfs.resident_mib(self.pid)

    @property
    def peak_mib(self) -> float:
        """The most it has occupied."""
        return procfs.peak_mib(self.pid)

    def _wait_until(self, ready: Callable[[], bool]) -> "ManagedWorker":
        process = self.worker.process
        wait_until(ready, self.worker.name, within=READY_SECONDS, alive=[process])
        return self

    def _request(self, port: int, path: str) -> tuple[int, str]:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=REQUEST_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, ""
        except OSError:
            return 0, ""


APP: Final = "asyncjob_bench.harness.handlers:app"
OPERATOR: Final = "operator"
GATEWAY: Final = "gateway"
BY_KOPF: Final = ("--job-watch=kopf",)
"""Options of an operator that sees jobs by kopf."""

PROFILED: Final = "asyncjob_bench.harness.profiled"
TOKEN_SECONDS: Final = 7200
GRACE_SECONDS: Final = 10.0
ACCOUNTS: Final = (WORKER_ACCOUNT, OPERATOR_ACCOUNT, GATEWAY_ACCOUNT, SUBMITTER)


@dataclass(frozen=True, slots=True)
class PodToken:
    """A pod that runs no process, and a token bound to it: the generator speaks for it."""

    name: str
    uid: str
    token: str


class Space:
    """One namespace. `pods` starts processes; `api` has the admin's rights.

    A process whose name is in `profiles` leaves a profile in that file when it ends.
    """

    def __init__(self, plane: ControlPlane, folder: Path, pods: DevPods) -> None:
        self.plane = plane
        self.api: Api = plane.api
        self.folder = folder
        self.name = pods.namespace
        self.profiles: dict[str, Path] = {}
        self._pods = pods

    @classmethod
    @contextmanager
    def open(cls, plane: ControlPlane, folder: Path, name: str) -> Iterator[Self]:
        """Make the namespace with its accounts and roles; stop its processes at the end."""
        folder.mkdir(parents=True)
        file = folder / "roles.yaml"
        file.write_text(yaml.safe_dump_all(roles(name)), encoding="utf-8")
        with DevPods(plane.api, folder / "pods", namespace=name) as pods:
            pods.prepare(service_accounts=ACCOUNTS, rbac=[file])
            await_enforcement(plane.api, WORKER_ACCOUNT, name)
            yield cls(plane, folder, pods)

    def start_worker(self, name: str, *options: str, **env: str) -> ManagedWorker:
        """Start a worker process; `ManagedWorker.wait_ready` waits for it."""
        port = free_port()
        argv = [script_path("asyncjob-worker"), "run", APP, f"--health-port={port}", *options]
        spec = WorkerSpec(
            name=name,
            argv=self._profiled(name, argv),
            service_account=WORKER_ACCOUNT,
            labels={COMPONENT_LABEL: WORKER_COMPONENT},
            env=env,
            grace=GRACE_SECONDS,
        )
        return ManagedWorker(self._pods.start(spec), port, port)

    def start_operator(self, *options: str) -> ManagedWorker:
        """Start an operator for this namespace alone."""
        health, metrics = free_ports(2)
        argv = [
            script_path("asyncjob-operator"),
            "run",
            f"--namespace={self.name}",
            f"--health-port={health}",
            f"--metrics-port={metrics}",
            *options,
        ]
        spec = WorkerSpec(
            name=OPERATOR,
            argv=self._profiled(OPERATOR, argv),
            service_account=OPERATOR_ACCOUNT,
            labels={COMPONENT_LABEL: OPERATOR_COMPONENT},
            grace=GRACE_SECONDS,
        )
        return ManagedWorker(self._pods.start(spec), health, metrics)

    def start_gateway(self, *options: str) -> ManagedWorker:
        """Start a gateway for this namespace, open to this machine only."""
        port, metrics = free_ports(2)
        argv = [
            *(script_path("asyncjob-gateway"), "run", f"--namespace={self.name}"),
            *("--open", "--host=127.0.0.1", f"--port={port}"),
            *("--metrics-host=127.0.0.1", f"--metrics-port={metrics}", *options),
        ]
        spec = WorkerSpec(
            name=GATEWAY,
            argv=self._profiled(GATEWAY, argv),
            service_account=GATEWAY_ACCOUNT,
            labels={COMPONENT_LABEL: GATEWAY_COMPONENT},
            grace=GRACE_SECONDS,
        )
        return ManagedWorker(self._pods.start(spec), port, metrics)

    def pod_token(self, name: str) -> PodToken:
        """Make a pod without a process, and a token bound to it."""
        body = objects.build_pod(
            name, account=WORKER_ACCOUNT, node="nowhere", labels={}, restart=False
        )
        uid = self.api.create(f"/api/v1/namespaces/{self.name}/pods", body)["metadata"]["uid"]
        return PodToken(name, uid, self._token(WORKER_ACCOUNT, pod=(name, uid)))

    def submitter_token(self) -> str:
        """Return a token that may create and read jobs, ours and native ones."""
        return self._token(SUBMITTER)

    def submitter_kubeconfig(self) -> Path:
        """Write a kubeconfig of the submitter's."""
        path = self.folder / "submitter-kubeconfig"
        user = {"token": self.submitter_token()}
        write_kubeconfig(
            path,
            url=self.plane.url,
            ca_file=self.plane.ca_file,
            user=user,
            namespace=self.name,
        )
        return path

    def jobs(self) -> Iterator[Object]:
        """Yield all AsyncJobs."""
        query = {"limit": "500"}
        while True:
            page = self.api.get(collection_path(self.name, JOBS), **query)
            yield from page["items"]
            if not (token := page["metadata"].get("continue")):
                return
            query["continue"] = token

    def any_in(self, *phases: str) -> bool:
        """Return whether some job is in one of the phases; name them in the order jobs take."""
        path = collection_path(self.name, JOBS)
        selectors = (f"status.phase={phase}" for phase in phases)
        return any(self.api.get(path, fieldSelector=it, limit="1")["items"] for it in selectors)

    def _profiled(self, name: str, argv: list[str]) -> list[str]:
        file = self.profiles.get(name)
        return [sys.executable, "-m", PROFILED, str(file), *argv] if file else argv

    def _token(self, account: str, pod: tuple[str, str] | None = None) -> str:
        status = self.api.request_token(self.name, account, pod=pod, seconds=TOKEN_SECONDS)
        token: str = status["token"]
        return token
