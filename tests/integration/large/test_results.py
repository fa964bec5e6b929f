"""Many jobs with large results: who lists them all stays small and goes on meanwhile.

The bars are those of the smallest pods, with room to spare: the chart gives a gateway 512 MiB.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob.json_types import child
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import status_fields, status_json_patch
from asyncjob.names import JOBS, collection_path, job_status_path
from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.cluster.installation import install
from support.driven.jobs import until
from support.objects.builders import at, claim_of, job
from support.processes.gateway import ROOT, GatewayProcess, gateway_kubeconfig
from support.processes.operator import OperatorProcess, operator_kubeconfig
from support.programs.loop_watch import held, peak_mib, times_listed

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(900)]

JOBS_EACH = 500
BYTES = 200 * 1024
MOST_MIB = 300.0
MOST_HELD_SECONDS = 0.1

ROWS: Any = [{"id": n, "name": f"row {n}", "ok": True} for n in range(BYTES // 41)]
TEXT = "x" * BYTES
RESULTS = {"rows": ROWS, "text": TEXT}


async def fill(plane: ControlPlane, folder: Path, namespace: str, result: Any) -> None:
    """Let a worker bring so many jobs to their end, three requests each."""
    space = Space(namespace, Client(plane.url, plane.ca_file, plane.admin_token)).create()
    worker = space.worker("worker-0")
    kubeconfig = folder / f"{namespace}-worker"
    user = {"token": worker.client.token}
    write_kubeconfig(
        kubeconfig, url=plane.url, ca_file=plane.ca_file, user=user, namespace=namespace
    )
    numbers = iter(range(JOBS_EACH))

    async def bring_to_their_end(admin: KubeSession, session: KubeSession) -> None:
        for number in numbers:
            name = f"{namespace}-{number:03}"
            status = job_status_path(namespace, name)
            made = await admin.create(collection_path(namespace, JOBS), job(name))
            claim = claim_of(dict(made), worker.pod, worker.pod_uid)
            claimed = await session.merge_patch(status, claim)
            before = child(claimed, "status")
            done = status_fields(
                phase_change.succeed(read_job(claimed), now=at(9), result=result), before
            )
            await session.json_patch(status, list(status_json_patch(done, before)))

    async with (
        KubeSession(await load_access(str(plane.kubeconfig)), field_manager="test") as admin,
        KubeSession(await load_access(str(kubeconfig)), field_manager="test") as session,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(8):
            group.create_task(bring_to_their_end(admin, session))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Run a control plane of its own: large lists hold it up."""
    with ControlPlane() as running:
        install(running)
        yield running


@pytest.fixture(scope="module", params=RESULTS)
def namespace(
    plane: ControlPlane, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Return a namespace with so many finished jobs with one kind of result."""
    name: str = request.param
    asyncio.run(fill(plane, tmp_path_factory.mktemp("fill"), name, RESULTS[name]))
    return name


@pytest.fixture
def watched(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process whose loop is measured."""
    return {"LOOP_WATCH": str(tmp_path / "held")}


def assert_bounded(pid: int, watched: dict[str, str], what: str) -> None:
    assert peak_mib(pid) < MOST_MIB, what
    assert 0 < held(Path(watched["LOOP_WATCH"])) < MOST_HELD_SECONDS, what


def relisted(plane: ControlPlane, namespace: str) -> None:
    """Make every version that has been seen expire: a new API server knows only the present."""
    space = Space(namespace, Client(plane.url, plane.ca_file, plane.admin_token))
    space.label(touched="yes")
    plane.restart_apiserver()


def test_a_gateway_lists_many_large_results_within_its_bounds(
    plane: ControlPlane, namespace: str, watched: dict[str, str], tmp_path: Path
) -> None:
    file = Path(watched["LOOP_WATCH"])
    space = Space(namespace, Client(plane.url, plane.ca_file, plane.admin_token))
    kubeconfig = gateway_kubeconfig(plane, space, tmp_path / "kubeconfig")
    log = tmp_path / "log"
    log.touch()
    gateway = GatewayProcess(
        kubeconfig, log, "--open", module="support.programs.watched_gateway", environment=watched
    )
    with gateway as running:
        running.until_ready(120)
        assert running.process
        assert_bounded(running.process.pid, watched, "at the start")
        relisted(plane, namespace)
        until(lambda: times_listed(file, JOBS) == 2, 120, "the second list", every=0.5)
        assert_bounded(running.process.pid, watched, "with a second list")


def test_an_operator_lists_many_large_results_within_its_bounds(
    plane: ControlPlane, namespace: str, watched: dict[str, str], tmp_path: Path
) -> None:
    file = Path(watched["LOOP_WATCH"])
    kubeconfig = operator_kubeconfig(plane, tmp_path / "kubeconfig")
    operator = OperatorProcess(kubeconfig, tmp_path / "log", "--resync-interval=5")
    operator.run_module("support.programs.watched_operator", watched)
    with operator as running:
        running.until_ready(120)
        assert_bounded(running.pid, watched, "at the start")
        seen = times_listed(file, JOBS)
        relisted(plane, namespace)
        until(lambda: times_listed(file, JOBS) > seen, 120, "a comparison", every=0.5)
        assert_bounded(running.pid, watched, "with a second list")


def test_a_client_lists_many_large_results_within_its_bounds(
    plane: ControlPlane, namespace: str, watched: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.programs.watched_client", str(plane.kubeconfig), namespace],
        env={**os.environ, **watched, "PYTHONPATH": str(ROOT / "tests")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    count, mib = done.stdout.split()
    assert int(count) == JOBS_EACH
    assert float(mib) < MOST_MIB
    assert 0 < held(Path(watched["LOOP_WATCH"])) < MOST_HELD_SECONDS
