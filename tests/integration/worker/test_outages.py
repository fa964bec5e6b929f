"""An API server that is away, comes back, or lacks what a worker needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from support.processes.probes import Probes
from support.processes.workers import CRDS, ROLES, WorkerNamespace, until, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(180)]


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[WorkerNamespace]:
    """Prepare a namespace on a control plane without CRDs and policies."""
    with ControlPlane(ControlPlaneOptions(with_controller_manager=False)) as plane:
        plane.kubectl("apply", f"--filename={ROLES}")
        with worker_namespace(plane, tmp_path) as prepared:
            yield prepared


def test_a_worker_outlasts_whatever_happens_to_its_api_server(bare: WorkerNamespace) -> None:
    plane = bare.plane

    early = bare.worker("worker-0")
    bare.until_log(early, "apply the CRDs")
    plane.kubectl("apply", f"--filename={CRDS}")
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    bare.create("first", "echo", 1)
    bare.until_phase("first", "Succeeded", within=60)

    bare.create("during", "wait", "go")
    bare.until_trace("begin during 1")
    plane.kill_apiserver()
    bare.open("go")
    bare.until_trace("end during 1")
    bare.until_log(early, "outcome not stored yet")
    plane.start_apiserver()
    status = bare.until_phase("during", "Succeeded", within=40)
    assert (status["attempt"], status["result"]) == (1, "waited")
    assert [entry["phase"] for entry in status["history"]] == ["Succeeded"]

    bare.create("after", "echo", 2)
    bare.until_phase("after", "Succeeded", within=60)
    assert bare.trace("begin") == ["begin first 1", "begin during 1", "begin after 1"]
    assert early.process.running


def test_a_worker_waits_for_an_api_server_that_is_away_and_can_be_stopped_meanwhile(
    ns: WorkerNamespace, tmp_path: Path
) -> None:
    away = ns.identity("away").kubeconfig
    lost = tmp_path / "lost"
    lost.write_text(away.read_text().replace(ns.api.url, "https://127.0.0.1:1"))
    probes = Probes.on_free_port()
    waiting = ns.start_worker("worker-0", f"--kubeconfig={lost}", probes.option)
    ns.until_log(waiting, "waiting for the API server")
    assert probes.ask("/livez") == (200, "ok\n")
    code, body = probes.ask("/readyz")
    assert (code, body.split(":")[0]) == (503, "not registered")
    waiting.terminate()
    waiting.wait_ended(10)
    assert waiting.process.returncode == 0


def test_without_the_policy_a_worker_refuses_to_run(fragile: WorkerNamespace) -> None:
    fragile.plane.kubectl(
        "delete", "validatingadmissionpolicybinding", "--all", "--timeout=30s", timeout=40
    )
    worker = fragile.worker("worker-0")
    fragile.create("j", "echo", 1)
    worker.wait_ended(60)
    assert worker.process.returncode == 1
    last = fragile.log(worker).splitlines()[-1]
    assert last.startswith("Error: ")
    assert "kubectl apply -f crds/" in last
    assert fragile.status("j")["attempt"] == 0
    assert fragile.trace() == []

    trusting = fragile.worker("worker-1", "--allow-unenforced")
    fragile.until_phase("j", "Succeeded")
    assert "not enforced" not in fragile.log(trusting)


def test_without_permission_a_worker_says_so_in_one_line(ns: WorkerNamespace) -> None:
    rules = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns.namespace}/rolebindings"
    ns.api.delete(f"{rules}/asyncjob-worker")
    worker = ns.start_worker("worker-0")
    worker.wait_ended(30)
    assert worker.process.returncode == 1
    last = ns.log(worker).splitlines()[-1]
    assert last.startswith("Error: ")
    assert "check the worker's RBAC" in last


def test_permission_that_is_lost_later_is_waited_for(ns: WorkerNamespace) -> None:
    rules = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns.namespace}/rolebindings"
    worker = ns.worker("worker-0")
    ns.create("first", "echo", 1)
    ns.until_phase("first", "Succeeded")
    binding = ns.api.get(f"{rules}/asyncjob-worker")
    ns.api.delete(f"{rules}/asyncjob-worker")
    ns.create("later", "echo", 2)
    until(lambda: "cannot claim" in ns.log(worker), 20, lambda: ns.log(worker))
    assert "may not claim jobs" in ns.log(worker)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        binding["metadata"].pop(name, None)
    ns.api.create(rules, binding)
    ns.until_phase("later", "Succeeded", within=30)
