"""A control plane as an object: what it offers while it runs, and the faults it can be put to.

Any number stand side by side. Should this process be killed, the kernel ends their processes.
"""

import subprocess
from pathlib import Path
from typing import Self

from asyncjob_dev.api import Api
from asyncjob_dev.binaries import Resolver, default_resolver
from asyncjob_dev.controlplane import startup
from asyncjob_dev.controlplane.options import ControlPlaneOptions
from asyncjob_dev.controlplane.startup import RunningControlPlane
from asyncjob_dev.errors import DevError, KubectlError
from asyncjob_dev.process import ManagedProcess

KUBECTL_TIMEOUT = 60.0


class ControlPlane:
    """A real Kubernetes API, on 127.0.0.1 unless told otherwise; a context manager.

    All but `options` raises `DevError` before `start` and after `stop`.
    """

    def __init__(
        self, options: ControlPlaneOptions | None = None, *, resolver: Resolver | None = None
    ) -> None:
        self.options = options or ControlPlaneOptions()
        self._resolver = resolver or default_resolver()
        self._started: RunningControlPlane | None = None

    def start(self) -> None:
        """Return when the API serves and the default namespace is there; else leave nothing."""
        if not self._started:
            self._started = startup.start_control_plane(self.options, self._resolver)

    def stop(self) -> None:
        """Stop everything and remove a temporary data directory; may be called twice."""
        if self._started:
            gone, self._started = self._started, None
            startup.stop_control_plane(gone)

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
        return Api(self.url, ca_file=self.ca_file, token=self.admin_token)

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
    def _running(self) -> RunningControlPlane:
        if self._started is None:
            raise DevError("the control plane is not running: call start() first")
        return self._started

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
