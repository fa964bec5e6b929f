"""A gateway process under test, and the namespace that it serves."""

import sys
from pathlib import Path
from typing import Any, Final, Self

import httpx

from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.ports import free_ports
from support.cluster.api import Client
from support.cluster.identities import RBAC, Space
from support.driven.jobs import until
from support.processes.program import ProgramProcess

ROOT = Path(__file__).parents[3]
ACCOUNT = "asyncjob-gateway"
JSON = {"Content-Type": "application/json"}


def gateway_kubeconfig(plane: ControlPlane, space: Space, path: Path) -> Path:
    """Write a kubeconfig of a service account with the gateway's roles, and no others."""
    space.account(ACCOUNT)
    space.bind(ACCOUNT, ACCOUNT)
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": space.name}
    role = "asyncjob-gateway-callers"
    binding = {
        "metadata": {"name": f"{role}-{space.name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    space.admin.create(f"/{RBAC}/clusterrolebindings", binding).object()
    user = {"token": space.as_account(ACCOUNT).token}
    write_kubeconfig(path, url=plane.url, ca_file=plane.ca_file, user=user, namespace=space.name)
    return path


PLAIN: Final = httpx.create_ssl_context(verify=False)
"""Made once: each takes longer than a request."""


def get(url: str, **params: Any) -> httpx.Response:
    """GET on a connection of its own."""
    return httpx.get(url, params=params, trust_env=False, timeout=20, verify=PLAIN)


def post(url: str, body: object) -> httpx.Response:
    """POST on a connection of its own."""
    return httpx.post(url, json=body, trust_env=False, timeout=20, verify=PLAIN)


class GatewayProcess(ProgramProcess):
    """`asyncjob-gateway run` as a process. Started again, it has the same port.

    `module` is one of the tests' modules to be run in the command's stead.
    """

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        *options: str,
        module: str = "",
        environment: dict[str, str] | None = None,
    ) -> None:
        self.port, self.metrics_port = free_ports(2)
        command = [sys.executable, "-m", module] if module else [_program()]
        argv = [
            *(*command, "run", f"--kubeconfig={kubeconfig}"),
            *("--host=127.0.0.1", f"--port={self.port}"),
            *("--metrics-host=127.0.0.1", f"--metrics-port={self.metrics_port}", *options),
        ]
        super().__init__(argv, log, {"PYTHONPATH": str(ROOT / "tests"), **(environment or {})})

    @property
    def url(self) -> str:
        """Where it is."""
        encrypted = any(one.startswith("--tls-cert") for one in self._argv)
        return f"{'https' if encrypted else 'http'}://127.0.0.1:{self.port}"

    def until_ready(self, within: float = 60.0) -> Self:
        """Wait until it has listed all jobs."""
        until(self.ready, within, f"readiness ({self.log.read_text()[-500:]})")
        return self

    def ready(self) -> bool:
        """Return whether it says so."""
        assert self.process
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            return get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def metrics(self) -> str:
        """Return what a scrape shows."""
        return get(f"http://127.0.0.1:{self.metrics_port}/metrics").text

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """Return a client with this token."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=self.url, headers=headers, trust_env=False, timeout=20, verify=PLAIN, **options
        )


def caller(space: Space, name: str, *cluster_roles: str) -> str:
    """Create a service account with these roles in the namespace, and return a token of it."""
    space.account(name)
    for role in cluster_roles:
        space.bind(name, role)
    return space.as_account(name).token


def token_for(client: Client, space: Space, account: str, **spec: Any) -> str:
    """Return a token of an account, for an audience say."""
    path = f"{space.path('serviceaccounts')}/{account}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    token: str = client.create(path, body).object()["status"]["token"]
    return token


def _program() -> str:
    return str(Path(sys.executable).with_name("asyncjob-gateway"))
