"""Operator processes under test."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from asyncjob.metrics import TABLE
from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.ports import free_ports
from support.driven.jobs import NUMBERS, Jobs, until
from support.processes.program import ProgramProcess
from support.processes.workers import WorkerNamespace

QUICK = (
    "--lease-margin=0.3",
    "--timeout-margin=0.5",
    "--missing-dependency-timeout=5",
    "--backoff-initial=0.2",
    "--backoff-max=5",
    "--retention-interval=1",
    "--retention-min-age=0",
)
"""Options under which little patience is needed to see the operator act."""
JOB_WATCHES = ("direct", "kopf")
"""Values of --job-watch; docs/explanation/operator.md says which tests run with both."""

WATCHES_OF_LONG_FILES = ("direct", pytest.param("kopf", marks=pytest.mark.soak))
"""The same where a file takes long: the second watch runs with `make soak`."""

ROOT = Path(__file__).parents[3]
RBAC = "rbac.authorization.k8s.io"


def operator_kubeconfig(plane: ControlPlane, path: Path) -> Path:
    """Write a kubeconfig of a service account with the operator's roles, and no others."""
    namespace = Jobs(plane.api).namespace
    for role in ("asyncjob-operator", "asyncjob-operator-election", "asyncjob-operator-install"):
        subject = {"kind": "ServiceAccount", "name": "asyncjob-operator", "namespace": namespace}
        plane.api.create(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {
                "metadata": {"name": f"{role}-{namespace}"},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            },
        )
    token = service_account(plane, namespace, "asyncjob-operator")
    user = {"token": token}
    write_kubeconfig(path, url=plane.url, ca_file=plane.ca_file, user=user, namespace=namespace)
    return path


def service_account(plane: ControlPlane, namespace: str, name: str) -> str:
    """Create a service account and return a token of it."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    plane.api.create(accounts, {"metadata": {"name": name}})
    token: str = plane.api.request_token(namespace, name)["token"]
    return token


class OperatorProcess(ProgramProcess):
    """`asyncjob-operator run` as a process."""

    def __init__(self, kubeconfig: Path, log: Path, *options: str) -> None:
        self.metrics_port, self.health_port = free_ports(2)
        argv = [
            str(Path(sys.executable).with_name("asyncjob-operator")),
            "run",
            f"--kubeconfig={kubeconfig}",
            f"--metrics-port={self.metrics_port}",
            f"--health-port={self.health_port}",
            *options,
        ]
        super().__init__(argv, log)

    def run_module(self, module: str, environment: dict[str, str]) -> None:
        """Run this module of the tests in the command's stead."""
        self._argv[:1] = [sys.executable, "-m", module]
        self._environment = {**environment, "PYTHONPATH": str(ROOT / "tests")}

    def run_by_kopf(self, *flags: str) -> Self:
        """Run it by `kopf run` with these flags; the options go into the environment."""
        pairs = [option.removeprefix("--").split("=", 1) for option in self._argv[2:]]
        self._environment = {
            f"ASYNCJOB_OPERATOR_{name.replace('-', '_').upper()}": value for name, value in pairs
        }
        program = str(Path(sys.executable).with_name("kopf"))
        self._argv = [program, "run", "--module=asyncjob_operator.kopf_handlers", *flags]
        return self

    @property
    def pid(self) -> int:
        """Return the process's id."""
        assert self.process
        return self.process.pid

    def until_ready(self, within: float = 60.0) -> Self:
        """Wait until it has listed all jobs."""
        until(lambda: self._fetch(self.health_port, "/readyz") == "ok", within, "readiness")
        return self

    def until_leading(self, within: float = 60.0) -> Self:
        """Wait until it leads."""
        until(self.leads, within, "leadership")
        return self

    def leads(self) -> bool:
        """Return whether it leads."""
        return self.metric("asyncjob_operator_leading") == 1.0

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have these labels."""
        total = 0.0
        for line in self._fetch(self.metrics_port, "/metrics").splitlines():
            sample, _, value = line.rpartition(" ")
            wanted = all(f'{key}="{text}"' in sample for key, text in labels.items())
            if sample.split("{")[0] == name and wanted:
                total += float(value)
        return total

    def totals(self) -> dict[str, float]:
        """Return the sum of each metric's samples as of one scrape; nothing if nobody answers."""
        totals: dict[str, float] = {}
        for family in text_string_to_metric_families(self._fetch(self.metrics_port, "/metrics")):
            for sample in family.samples:
                totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
        return totals

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        """Return a metric's samples by the values of their labels, in the order of the table's."""
        [spec] = [one for one in TABLE if one.exposed_name == name]
        text = self._fetch(self.metrics_port, "/metrics")
        return {
            tuple(sample.labels[label] for label in spec.labels): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name
        }

    def health(self, path: str) -> str:
        """Return what a probe is told: `ok`, or what is wrong."""
        return self._fetch(self.health_port, path)

    def _fetch(self, port: int, path: str) -> str:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                body: bytes = answer.read()
                return body.decode()
        except HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""


@contextmanager
def own_operator(ns: WorkerNamespace) -> Iterator[OperatorProcess]:
    """Run an operator for one namespace alone, whose Lease lies there, until it leads and on."""
    options = (f"--namespace={ns.namespace}", f"--lease-namespace={ns.namespace}", *QUICK)
    with OperatorProcess(ns.plane.kubeconfig, ns.folder / "operator.log", *options) as operator:
        operator.until_leading()
        yield operator


class Replicas:
    """Starts operators for one namespace and stops them all in the end."""

    def __init__(self, kubeconfig: Path, ns: WorkerNamespace, stack: ExitStack) -> None:
        self._kubeconfig = kubeconfig
        self._ns = ns
        self._stack = stack

    def start(self, *options: str, module: str = "") -> OperatorProcess:
        """Start one and wait until it has listed all jobs; `module` runs in the command's stead."""
        namespace = self._ns.namespace
        home = (f"--namespace={namespace}", f"--lease-namespace={namespace}")
        log = self._ns.folder / f"operator-{next(NUMBERS)}.log"
        process = OperatorProcess(self._kubeconfig, log, *QUICK, *home, *options)
        if module:
            process.run_module(module, {})
        return self._stack.enter_context(process).until_ready()
