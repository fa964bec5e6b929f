"""An environment as an object: it stands while it is entered, and leaves nothing running.

Start order: control plane, CRDs and policies, services, workers; services and workers become ready
beside each other. Stop order: the reverse.

There is no controller-manager, which takes as long to build as it takes memory. So nothing deletes
what an owner leaves behind, no namespace ends, no namespace gets a service account or the root
certificate by itself, and no role is aggregated into `view` or `edit`. Nothing of ours needs that:
operator and workers delete and recover by themselves.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from asyncjob_dev.api import Api
from asyncjob_dev.binaries import resolve
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from asyncjob_dev.environment import components
from asyncjob_dev.environment.components import SERVICES, install
from asyncjob_dev.environment.readiness import (
    await_enforcement,
    await_gateway,
    await_operator,
    await_worker,
    leader,
    worker_process,
)
from asyncjob_dev.environment.settings import ROOT, EnvironmentPaths, EnvironmentSettings
from asyncjob_dev.ports import free_port
from asyncjob_dev.supervisor import DevPods, DevWorker, WorkerSpec

OnStep = Callable[[str], None]


class Environment:
    """Everything in one folder; `on_step` hears each step of the start.

    Workers run in the folder `project`, from which they import their app.
    """

    def __init__(
        self,
        layout: EnvironmentPaths,
        settings: EnvironmentSettings,
        on_step: OnStep,
        project: Path = ROOT,
    ) -> None:
        self.layout = layout
        self.settings = replace(settings, gateway_port=settings.gateway_port or free_port())
        options = ControlPlaneOptions(
            data_dir=layout.control_plane,
            api_port=settings.api_port,
            with_controller_manager=False,
        )
        self.plane = ControlPlane(options)
        self._project = project
        self._on_step = on_step
        self._running = ExitStack()
        self.services: list[DevWorker] = []
        self.workers: list[DevWorker] = []

    @property
    def api(self) -> Api:
        """A client with the admin's rights."""
        return self.plane.api

    @property
    def gateway_url(self) -> str:
        """Where the gateway is."""
        return f"http://127.0.0.1:{self.settings.gateway_port}"

    @property
    def logs(self) -> list[Path]:
        """The log of every part, by name."""
        return sorted(self.layout.logs.iterdir())

    def __enter__(self) -> Self:
        with ExitStack() as started:
            self._start(started)
            self._running = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _start(self, started: ExitStack) -> None:
        self.layout.make()
        self._on_step("starting etcd and kube-apiserver")
        started.enter_context(self.plane)
        self._link()
        self._on_step("applying CRDs, policies and roles")
        install(self.plane)
        await_enforcement(self.api, components.WORKER_ACCOUNT)
        specs = components.worker_specs(self.settings)
        self._on_step(f"starting operator, gateway and workers ({len(specs)}): {self.settings.app}")
        before = leader(self.api)
        services = started.enter_context(self._pods())
        services.end_orphans(keep={"operator", "gateway", *(spec.name for spec in specs)})
        registered = {spec.name: worker_process(self.api, spec.name) for spec in specs}
        self.services = [self._launch(services, build(self.settings)) for build in SERVICES]
        pods = started.enter_context(self._pods())
        self.workers = [self._launch(pods, spec) for spec in specs]
        operator, gateway = self.services
        await_operator(self.api, operator, before)
        await_gateway(self.gateway_url, gateway)
        for worker in self.workers:
            await_worker(self.api, worker, registered[worker.name])

    def _launch(self, pods: DevPods, spec: WorkerSpec) -> DevWorker:
        folder = self.layout.pods / spec.name
        # As a container has one: a killed process leaves its temporary files there.
        temporary = folder / "tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(mode=0o700, parents=True)
        env = {**spec.env, "TMPDIR": str(temporary)}
        worker = pods.start(replace(spec, env=env, cwd=self._project))
        link(self.layout.logs / f"{spec.name}.log", folder / "log")
        return worker

    def _pods(self) -> DevPods:
        return DevPods(self.api, self.layout.pods)

    def _link(self) -> None:
        link(self.layout.kubeconfig, self.plane.kubeconfig)
        link(self.layout.bin / "kubectl", resolve("kubectl").path)
        for log in (self.plane.data_dir / "logs").glob("*.log"):
            link(self.layout.logs / log.name, log)


def link(path: Path, target: Path) -> None:
    """Make `path` a link to `target`, whatever it was before, unless it leads there already.

    So it may be the target itself, as a kubectl that is found by a PATH with our own folder.
    """
    if path.exists() and path.samefile(target):
        return
    path.unlink(missing_ok=True)
    path.symlink_to(target)
