"""The command lines of the three processes. Pure."""

from asyncjob_dev.controlplane.layout import ControlPlanePaths
from asyncjob_dev.controlplane.options import ControlPlaneOptions
from asyncjob_dev.ports import LOOPBACK


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
