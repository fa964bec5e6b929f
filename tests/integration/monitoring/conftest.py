"""Operators, workers and a gateway in a namespace of the test's own; one control plane."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.processes.gateway import GatewayProcess, gateway_kubeconfig
from support.processes.operator import Replicas
from support.processes.workers import WorkerNamespace, worker_namespace


@pytest.fixture
def ns(control_plane: ControlPlane, tmp_path: Path) -> Iterator[WorkerNamespace]:
    with worker_namespace(control_plane, tmp_path) as prepared:
        yield prepared


@pytest.fixture
def replicas(control_plane: ControlPlane, ns: WorkerNamespace) -> Iterator[Replicas]:
    with ExitStack() as stack:
        yield Replicas(control_plane.kubeconfig, ns, stack)


@pytest.fixture
def gateway_access(
    control_plane: ControlPlane, admin: Client, ns: WorkerNamespace, tmp_path: Path
) -> Path:
    """Give gateways their roles in the namespace."""
    space = Space(ns.namespace, admin)
    return gateway_kubeconfig(control_plane, space, tmp_path / "gateway")


@pytest.fixture
def gateway(gateway_access: Path, tmp_path: Path) -> Iterator[GatewayProcess]:
    """Run one that is open."""
    log = tmp_path / "gateway.log"
    log.touch()
    with GatewayProcess(gateway_access, log, "--open") as running:
        yield running.until_ready()
