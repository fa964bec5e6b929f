"""The three processes of a control plane: their command lines, ports and ready probes."""

import http.client
import json
import secrets
from dataclasses import dataclass

from asyncjob_dev.api import Api
from asyncjob_dev.binaries import Resolver
from asyncjob_dev.controlplane.options import ControlPlaneOptions, ControlPlanePaths
from asyncjob_dev.ports import LOOPBACK, free_ports
from asyncjob_dev.process import ManagedProcess


def etcd_flags(
    options: ControlPlaneOptions,
    layout: ControlPlanePaths,
    name: str,
    client_port: int,
    peer_port: int,
) -> list[str]:
    """Return the flags of a single etcd member."""
    client, peer = f"http://{LOOPBACK}:{client_port}", f"http://{LOOPBACK}:{peer_port}"
    return [
        f"--name={name}",
        f"--data-dir={layout.etcd}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={name}={peer}",
        f"--quota-backend-bytes={options.quota_bytes}",
        "--log-level=warn",
        *([] if options.fsync else ["--unsafe-no-fsync"]),
        *options.etcd_flags,
    ]


def apiserver_flags(
    options: ControlPlaneOptions, layout: ControlPlanePaths, port: int, etcd_port: int
) -> list[str]:
    """Return the flags of the API server."""
    return [
        f"--etcd-servers=http://{LOOPBACK}:{etcd_port}",
        f"--bind-address={options.address}",
        f"--secure-port={port}",
        # A machine without a network has no other address than loopback, and no pod looks for that.
        f"--advertise-address={options.address}",
        *(["--endpoint-reconciler-type=none"] if options.address == LOOPBACK else []),
        f"--cert-dir={layout.certs}",
        f"--token-auth-file={layout.tokens}",
        f"--authorization-mode={options.authorization}",
        f"--service-account-issuer={options.issuer}",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        f"--service-cluster-ip-range={options.service_cidr}",
        *_audience_flags(options),
        # It demands a `default` service account, which only the controller-manager makes.
        *(
            []
            if options.with_controller_manager
            else ["--disable-admission-plugins=ServiceAccount"]
        ),
        *options.apiserver_flags,
    ]


def controller_manager_flags(options: ControlPlaneOptions, layout: ControlPlanePaths) -> list[str]:
    """Return the flags of the controller-manager; it listens nowhere."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        f"--controllers={','.join(options.controllers)}",
        f"--service-account-private-key-file={layout.signing_key}",
        f"--root-ca-file={layout.ca_file}",
        # As on real clusters: each controller has an account and a role of its own. One that may do
        # everything would pass our policies where theirs are refused.
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        *options.controller_manager_flags,
    ]


def _audience_flags(options: ControlPlaneOptions) -> list[str]:
    if not options.audiences:
        return []
    return [f"--api-audiences={','.join([options.issuer, *options.audiences])}"]


# Short, because whoever took the port may accept connections and never answer.
PROBE_SECONDS = 1.0


@dataclass(frozen=True)
class ControlPlaneProcesses:
    """What runs, in start order, and where the API is."""

    url: str
    etcd: ManagedProcess
    apiserver: ManagedProcess
    controller_manager: ManagedProcess | None

    @property
    def in_start_order(self) -> list[ManagedProcess]:
        """All of them."""
        last = [self.controller_manager] if self.controller_manager else []
        return [self.etcd, self.apiserver, *last]


class ControlPlaneProcessFactory:
    """Makes processes for one set of choices; each call takes fresh ports."""

    def __init__(
        self,
        options: ControlPlaneOptions,
        layout: ControlPlanePaths,
        resolver: Resolver,
        token: str,
    ) -> None:
        self._options = options
        self._layout = layout
        self._resolver = resolver
        self._token = token

    def make(self) -> ControlPlaneProcesses:
        """Choose ports and return the processes, none of them started."""
        etcd_port, peer_port, free = free_ports(3)
        port = self._options.api_port or free
        url = f"https://{self._options.address}:{port}"
        return ControlPlaneProcesses(
            url,
            self._etcd(etcd_port, peer_port),
            self._apiserver(url, port, etcd_port),
            self._controller_manager() if self._options.with_controller_manager else None,
        )

    def _etcd(self, port: int, peer_port: int) -> ManagedProcess:
        name = f"dev-{secrets.token_hex(8)}"
        flags = etcd_flags(self._options, self._layout, name, port, peer_port)
        process = self._process("etcd", flags)
        process.ready = lambda: is_member(name, port)
        return process

    def _apiserver(self, url: str, port: int, etcd_port: int) -> ManagedProcess:
        flags = apiserver_flags(self._options, self._layout, port, etcd_port)
        process = self._process("kube-apiserver", flags)
        api = Api(url, ca_file=self._layout.ca_file, token=self._token, timeout=PROBE_SECONDS)
        process.ready = lambda: api.answers("/readyz")
        return process

    def _controller_manager(self) -> ManagedProcess:
        flags = controller_manager_flags(self._options, self._layout)
        return self._process("kube-controller-manager", flags)

    def _process(self, name: str, flags: list[str]) -> ManagedProcess:
        return ManagedProcess(
            name,
            [str(self._resolver.resolve(name).path), *flags],
            log_file=self._layout.log(name),
            ready_within=self._options.ready_within,
            grace=self._options.effective_grace,
        )


def is_member(name: str, port: int) -> bool:
    """Whether the etcd of this name serves on the port.

    An API server must never be let loose on the etcd of another control plane, which would answer
    here if it had been quicker to bind the port.
    """
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PROBE_SECONDS)
    try:
        connection.request("POST", "/v3/cluster/member/list", "{}")
        members = json.loads(connection.getresponse().read()).get("members", [])
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return any(member.get("name") == name for member in members)
