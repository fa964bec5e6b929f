"""A namespace with a gateway's service account for each module, and a gateway without tokens."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space, Worker
from support.driven.lives import Life
from support.processes.gateway import GatewayProcess, gateway_kubeconfig

NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Site:
    """Where gateways run: a namespace, their kubeconfig, a folder for logs."""

    space: Space
    kubeconfig: Path
    folder: Path
    worker: Worker

    def gateway(self, *options: str, **more: object) -> GatewayProcess:
        """Return a gateway of the namespace, not started yet."""
        log = self.folder / f"gateway-{next(NUMBERS)}.log"
        log.touch()
        return GatewayProcess(self.kubeconfig, log, *options, **more)  # type: ignore[arg-type]  # passed on

    def life(self, name: str) -> Life:
        """Return a job of this name, not created yet."""
        return Life(self.space.name, name, self.space.admin, self.worker)


@pytest.fixture(scope="module")
def site(
    control_plane: ControlPlane, admin: Client, tmp_path_factory: pytest.TempPathFactory
) -> Site:
    space = Space(f"gateway-{next(NUMBERS)}", admin).create()
    folder = tmp_path_factory.mktemp("gateway")
    kubeconfig = gateway_kubeconfig(control_plane, space, folder / "kubeconfig")
    return Site(space, kubeconfig, folder, space.worker("worker-0"))


@pytest.fixture(scope="module")
def open_gateway(site: Site) -> Iterator[GatewayProcess]:
    with site.gateway("--open", "--forward-header=X-Tenant", "--heartbeat=0.5") as running:
        yield running.until_ready()


@pytest.fixture(scope="module")
def http(open_gateway: GatewayProcess) -> Iterator[httpx.Client]:
    with open_gateway.client() as client:
        yield client
