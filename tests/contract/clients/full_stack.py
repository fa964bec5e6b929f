"""Where the clients' scenarios take place: a control plane, an operator, a worker, a gateway."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncjob.names import API_VERSION, CRON_JOB_KIND, CRON_JOBS, JOB_KIND, JOBS, collection_path
from asyncjob_dev.api import Object, write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.cluster.installation import install
from support.processes.gateway import GatewayProcess, gateway_kubeconfig
from support.processes.operator import OperatorProcess
from support.processes.workers import WorkerNamespace, worker_namespace

CALLER = "caller"
OPERATOR = ("--lease-margin=0.3", "--backoff-initial=0.2", "--backoff-max=2", "--no-retention")

_numbers = itertools.count(1)


@dataclass(frozen=True)
class FullStack:
    """Everything, and one caller with the rights of `asyncjob-job-admin` and `-signaller`."""

    ns: WorkerNamespace
    kubeconfig: Path
    token: str
    gateway: GatewayProcess

    @property
    def namespace(self) -> str:
        """The one namespace."""
        return self.ns.namespace


@contextlib.contextmanager
def run_full_stack(folder: Path) -> Iterator[FullStack]:
    """Run it all."""
    with ControlPlane() as plane:
        install(plane)
        with (
            OperatorProcess(plane.kubeconfig, folder / "operator.log", *OPERATOR) as operator,
            worker_namespace(plane, folder) as ns,
        ):
            space = Space(ns.namespace, Client(plane.url, plane.ca_file, plane.admin_token))
            token, kubeconfig = _caller(space, ns, folder)
            rights = gateway_kubeconfig(plane, space, folder / "gateway-kubeconfig")
            with GatewayProcess(rights, folder / "gateway.log") as gateway:
                ns.start_worker("worker-0", "--concurrency=16")
                operator.until_ready().until_leading()
                gateway.until_ready()
                yield FullStack(ns, kubeconfig, token, gateway)


def _caller(space: Space, ns: WorkerNamespace, folder: Path) -> tuple[str, Path]:
    space.account(CALLER)
    space.bind(CALLER, "asyncjob-job-admin")
    space.bind(CALLER, "asyncjob-job-signaller", called=f"{CALLER}-signals")
    token = space.as_account(CALLER).token
    path = folder / "caller-kubeconfig"
    api = ns.api
    write_kubeconfig(
        path,
        url=api.url,
        ca_file=api.ca_file,
        user={"token": token},
        namespace=space.name,
        name=CALLER,
    )
    return token, path


@dataclass(frozen=True)
class ScenarioScope:
    """One scenario's own part of the full stack: a queue without workers, and names of its own."""

    full_stack: FullStack
    number: int

    @classmethod
    def again(cls, full_stack: FullStack) -> "ScenarioScope":
        """Return a part that nobody has used."""
        return cls(full_stack, next(_numbers))

    @property
    def queue(self) -> str:
        """A queue that no worker serves."""
        return f"idle-{self.number}"

    @property
    def label(self) -> dict[str, str]:
        """A label that only this scenario's jobs have."""
        return {"scenario": str(self.number)}

    @property
    def selector(self) -> str:
        """What selects them."""
        return f"scenario={self.number}"

    def name(self, word: str) -> str:
        """Return a name, key or id of this scenario's own."""
        return f"{word}-{self.number}"

    def open(self, gate: str) -> None:
        """Let handlers pass that wait for the gate."""
        self.full_stack.ns.open(gate)

    def apply(self, name: str, **spec: Any) -> Object:
        """Create a job as kubectl would."""
        return self._create(JOBS, JOB_KIND, name, {"type": "echo", "queue": self.queue, **spec})

    def apply_cron_job(self, name: str, **template: Any) -> Object:
        """Create a cron job that never fires in a test's time."""
        job = {"type": "echo", "queue": self.queue, **template}
        return self._create(
            CRON_JOBS,
            CRON_JOB_KIND,
            name,
            {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}},
        )

    def delete(self, name: str) -> None:
        """Delete a job."""
        self.full_stack.ns.api.delete(f"{self._path(JOBS)}/{name}")

    def count(self, **labels: str) -> int:
        """Return how many jobs of this scenario there are."""
        found = self.full_stack.ns.jobs()
        wanted = (labels or self.label).items()
        return sum(wanted <= one["metadata"].get("labels", {}).items() for one in found)

    def _create(self, plural: str, kind: str, name: str, spec: Any) -> Object:
        body = {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": name, "labels": self.label},
            "spec": spec,
        }
        return self.full_stack.ns.api.create(self._path(plural), body)

    def _path(self, plural: str) -> str:
        return collection_path(self.full_stack.namespace, plural)
