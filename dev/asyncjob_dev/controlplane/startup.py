"""Starts a control plane and stops it.

Start order etcd, API server, controller-manager; stop order the reverse, because an API server
whose etcd is gone does not end on SIGTERM. Keys and tokens are made once per data directory.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from asyncjob_dev.api import Api, write_kubeconfig
from asyncjob_dev.binaries import Resolver
from asyncjob_dev.controlplane import datadir
from asyncjob_dev.controlplane.datadir import DataDir
from asyncjob_dev.controlplane.options import ControlPlaneOptions, ControlPlanePaths
from asyncjob_dev.controlplane.processes import ControlPlaneProcesses, ControlPlaneProcessFactory
from asyncjob_dev.errors import PortTakenError
from asyncjob_dev.files import write_private
from asyncjob_dev.process import wait_until


def ensure_credentials(layout: ControlPlanePaths) -> str:
    """Make the signing key and the admin token unless they are there; return the token."""
    if not layout.signing_key.exists():
        write_private(layout.signing_key, _new_key())
    if not layout.tokens.exists():
        write_private(layout.tokens, f'{secrets.token_urlsafe(32)},admin,admin,"system:masters"\n')
    return layout.tokens.read_text(encoding="ascii").split(",", 1)[0]


def _new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return pem.decode("ascii")


PORT_TRIES = 3
NAMESPACE = "/api/v1/namespaces/default"
SERVICE_ACCOUNT = f"{NAMESPACE}/serviceaccounts/default"


@dataclass(frozen=True)
class RunningControlPlane:
    """A control plane that runs."""

    options: ControlPlaneOptions
    data_dir: DataDir
    layout: ControlPlanePaths
    admin_token: str
    processes: ControlPlaneProcesses

    @property
    def api(self) -> Api:
        """A client with the admin's rights."""
        return Api(self.processes.url, ca_file=self.layout.ca_file, token=self.admin_token)


def start_control_plane(options: ControlPlaneOptions, resolver: Resolver) -> RunningControlPlane:
    """Return when the API serves and the default namespace is there; else leave nothing behind."""
    chosen = options.data_dir
    claimed = datadir.claim(chosen) if chosen else datadir.claim_temporary()
    try:
        layout = ControlPlanePaths(claimed.path)
        layout.make()
        token = ensure_credentials(layout)
        maker = ControlPlaneProcessFactory(options, layout, resolver, token)
        return _on_free_ports(
            lambda: RunningControlPlane(options, claimed, layout, token, maker.make()), options
        )
    except BaseException:
        claimed.release()
        raise


def stop_control_plane(plane: RunningControlPlane) -> None:
    """End the processes, then give up the folder."""
    _stop_processes(plane.processes)
    plane.data_dir.release()


def _on_free_ports(
    prepare: Callable[[], RunningControlPlane], options: ControlPlaneOptions
) -> RunningControlPlane:
    """Bring it up; again on other ports where another program was quicker to bind one."""
    tries = 1 if options.api_port else PORT_TRIES
    for left in reversed(range(tries)):
        plane = prepare()
        try:
            _start_processes(plane)
        except BaseException as error:
            _stop_processes(plane.processes)
            if left and isinstance(error, PortTakenError):
                continue
            raise
        return plane
    raise AssertionError("at least one try")


def _start_processes(plane: RunningControlPlane) -> None:
    processes, layout = plane.processes, plane.layout
    processes.etcd.start()
    processes.apiserver.start()
    user = {"token": plane.admin_token}
    write_kubeconfig(layout.kubeconfig, url=processes.url, ca_file=layout.ca_file, user=user)
    last = NAMESPACE
    if processes.controller_manager:
        processes.controller_manager.start()
        last = SERVICE_ACCOUNT
    wait_until(
        lambda: plane.api.answers(last),
        last,
        within=plane.options.ready_within,
        alive=processes.in_start_order,
    )


def _stop_processes(processes: ControlPlaneProcesses) -> None:
    for process in reversed(processes.in_start_order):
        process.stop()
