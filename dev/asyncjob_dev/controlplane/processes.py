"""The three processes of a control plane: their command lines, ports and ready probes."""

import http.client
import json
import secrets
from collections.abc import Callable
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
    etcd_address: str
    """Host and port at which clients find etcd."""

    etcd: ManagedProcess
    apiserver: ManagedProcess
    controller_manager: ManagedProcess | None
    make_apiserver: Callable[[int, int, str], tuple[str, ManagedProcess]]
    """Returns the URL and process of an API server, by its port, that of etcd, and its name."""

    @property
    def in_start_order(self) -> list[ManagedProcess]:
        """All of them."""
        last = [self.controller_manager] if self.controller_manager else []
        return [self.etcd, self.apiserver, *last]

    def stop(self) -> None:
        """Stop them backwards: an API server whose etcd is gone does not end on SIGTERM."""
        for process in reversed(self.in_start_order):
            process.stop()


def make_processes(
    options: ControlPlaneOptions, layout: ControlPlanePaths, resolver: Resolver, token: str
) -> ControlPlaneProcesses:
    """Choose ports and return the processes, none of them started."""

    def process(program: str, flags: list[str], name: str = "") -> ManagedProcess:
        return ManagedProcess(
            name or program,
            [str(resolver.resolve(program).path), *flags],
            log_file=layout.log(name or program),
            ready_within=options.ready_within,
            grace=options.effective_grace,
        )

    def make_apiserver(port: int, etcd_port: int, name: str) -> tuple[str, ManagedProcess]:
        url = f"https://{options.address}:{port}"
        api = Api(url, ca_file=layout.ca_file, token=token, timeout=PROBE_SECONDS)
        flags = apiserver_flags(options, layout, port, etcd_port)
        made = process("kube-apiserver", flags, name)
        made.ready = lambda: api.answers("/readyz")
        return url, made

    etcd_port, peer_port, free = free_ports(3)
    member = f"dev-{secrets.token_hex(8)}"
    etcd = process("etcd", etcd_flags(options, layout, member, etcd_port, peer_port))
    etcd.ready = lambda: is_member(member, etcd_port)
    url, apiserver = make_apiserver(options.api_port or free, etcd_port, "kube-apiserver")
    controllers = None
    if options.with_controller_manager:
        flags = controller_manager_flags(options, layout)
        controllers = process("kube-controller-manager", flags)
    address = f"{LOOPBACK}:{etcd_port}"
    return ControlPlaneProcesses(url, address, etcd, apiserver, controllers, make_apiserver)


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
