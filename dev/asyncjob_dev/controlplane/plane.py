"""A control plane as an object: what it offers while it runs, and the faults it can be put to.

Any number stand side by side. Should this process be killed, the kernel ends their processes. Keys
and tokens are made once per data directory.
"""

import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from asyncjob_dev.api import Api, write_kubeconfig
from asyncjob_dev.binaries import Resolver, default_resolver
from asyncjob_dev.controlplane import datadir
from asyncjob_dev.controlplane.datadir import DataDir
from asyncjob_dev.controlplane.options import ControlPlaneOptions, ControlPlanePaths
from asyncjob_dev.controlplane.processes import ControlPlaneProcesses, make_processes
from asyncjob_dev.errors import DevError, KubectlError, ProcessPortTakenError
from asyncjob_dev.files import write_private
from asyncjob_dev.ports import free_port
from asyncjob_dev.process import ManagedProcess, wait_until

KUBECTL_TIMEOUT = 60.0
PORT_TRIES = 3
NAMESPACE = "/api/v1/namespaces/default"
SERVICE_ACCOUNT = f"{NAMESPACE}/serviceaccounts/default"


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


@dataclass(frozen=True)
class _Running:
    """What there is between start and stop."""

    data_dir: DataDir
    layout: ControlPlanePaths
    admin_token: str
    processes: ControlPlaneProcesses
    api: Api


class ControlPlane:
    """A real Kubernetes API, on 127.0.0.1 unless told otherwise; a context manager.

    All but `options` raises `DevError` before `start` and after `stop`.
    """

    def __init__(
        self, options: ControlPlaneOptions | None = None, *, resolver: Resolver | None = None
    ) -> None:
        self.options = options or ControlPlaneOptions()
        self._resolver = resolver or default_resolver()
        self._started: _Running | None = None

    def start(self) -> None:
        """Return when the API serves and the default namespace is there; else leave nothing."""
        if self._started:
            return
        chosen = self.options.data_dir
        data_dir = datadir.claim(chosen) if chosen else datadir.claim_temporary()
        try:
            layout = ControlPlanePaths(data_dir.path)
            layout.make()
            token = ensure_credentials(layout)
            processes = self._start_processes(layout, token)
            api = Api(processes.url, ca_file=layout.ca_file, token=token)
            self._started = _Running(data_dir, layout, token, processes, api)
        except BaseException:
            data_dir.release()
            raise

    def _start_processes(self, layout: ControlPlanePaths, token: str) -> ControlPlaneProcesses:
        """Bring them up; again on other ports where another program was quicker to bind one."""
        tries = 1 if self.options.api_port else PORT_TRIES
        for left in reversed(range(tries)):
            made = make_processes(self.options, layout, self._resolver, token)
            try:
                self._bring_up(made, layout, token)
            except BaseException as error:
                made.stop()
                if left and isinstance(error, ProcessPortTakenError):
                    continue
                raise
            return made
        raise AssertionError("at least one try")

    def _bring_up(self, made: ControlPlaneProcesses, layout: ControlPlanePaths, token: str) -> None:
        made.etcd.start()
        made.apiserver.start()
        user = {"token": token}
        write_kubeconfig(layout.kubeconfig, url=made.url, ca_file=layout.ca_file, user=user)
        last = NAMESPACE
        if made.controller_manager:
            made.controller_manager.start()
            last = SERVICE_ACCOUNT
        api = Api(made.url, ca_file=layout.ca_file, token=token)
        wait_until(
            lambda: api.answers(last),
            last,
            within=self.options.ready_within,
            alive=made.in_start_order,
        )

    def stop(self) -> None:
        """Stop everything and remove a temporary data directory; may be called twice."""
        if self._started:
            gone, self._started = self._started, None
            gone.processes.stop()
            gone.data_dir.release()

    @property
    def url(self) -> str:
        """Where the API is, such as `https://127.0.0.1:<port>`."""
        return self._running.processes.url

    @property
    def admin_token(self) -> str:
        """A bearer token that may do everything."""
        return self._running.admin_token

    @property
    def ca_file(self) -> Path:
        """What to check the server's certificate against."""
        return self._running.layout.ca_file

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file for the admin."""
        return self._running.layout.kubeconfig

    @property
    def data_dir(self) -> Path:
        """Where data, keys and logs are (`logs/<process>.log`)."""
        return self._running.layout.root

    @property
    def api(self) -> Api:
        """A small client with the admin's rights."""
        return self._running.api

    @property
    def processes(self) -> list[ManagedProcess]:
        """All of them, in the order in which they start."""
        return self._running.processes.in_start_order

    @property
    def etcd(self) -> ManagedProcess:
        """The store, for faults."""
        return self._running.processes.etcd

    @property
    def apiserver(self) -> ManagedProcess:
        """The API server, for faults."""
        return self._running.processes.apiserver

    @property
    def etcd_address(self) -> str:
        """Host and port at which clients find the store."""
        return self._running.processes.etcd_address

    def another_apiserver(self, etcd_port: int) -> tuple[str, ManagedProcess]:
        """Return where another API server with the same keys and tokens is to be, and its process.

        It is not started, and looks for the store at a port of this machine: what listens there may
        stand in between. Whoever starts it stops it, before this.
        """
        port = free_port()
        return self._running.processes.make_apiserver(port, etcd_port, "another-kube-apiserver")

    def start_apiserver(self) -> None:
        """Start it again on its port and data, and wait until it serves."""
        self.apiserver.start()

    def kill_apiserver(self) -> None:
        """SIGKILL it; the port then refuses connections."""
        self.apiserver.kill()

    def restart_apiserver(self, grace: float = 2.0) -> None:
        """Stop it in good order (open watches last for `grace` seconds) and start it again."""
        self.apiserver.stop(grace)
        self.start_apiserver()

    def pause_etcd(self) -> None:
        """Freeze the store: every request that needs it hangs."""
        self.etcd.pause()

    def resume_etcd(self) -> None:
        """Let the frozen store go on."""
        self.etcd.resume()

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
        timeout: float = KUBECTL_TIMEOUT,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the admin; `KubectlError` with its stderr unless `check` is off."""
        layout = self._running.layout
        program = self._resolver.resolve("kubectl").path
        access = [f"--kubeconfig={layout.kubeconfig}", f"--cache-dir={layout.kubectl_cache}"]
        done = subprocess.run(
            [str(program), *access, *arguments],
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise KubectlError(arguments, done.returncode, done.stderr)
        return done

    @property
    def _running(self) -> _Running:
        if self._started is None:
            raise DevError("the control plane is not running: call start() first")
        return self._started

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
