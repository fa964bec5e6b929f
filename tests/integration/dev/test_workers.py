"""Worker processes with a Pod each: identity, and what is said of their end."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from asyncjob_dev.api import Api
from asyncjob_dev.binaries import resolve
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from asyncjob_dev.errors import ApiStatusError
from asyncjob_dev.supervisor import DevPods, DevWorker, WorkerSpec

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

FOREVER = ["sleep", "1000"]
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def container(worker: DevWorker) -> dict[str, Any]:
    worker.wait_published()
    (status,) = worker.pod()["status"]["containerStatuses"]
    assert isinstance(status, dict)
    return status


def token_of(folder: Path, name: str) -> str:
    return (folder / "pods" / name / "token").read_text()


def whoami(plane: ControlPlane, token: str) -> dict[str, Any]:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    api = Api(plane.url, ca_file=plane.ca_file, token=token)
    user = api.create(REVIEW, review)["status"]["userInfo"]
    assert isinstance(user, dict)
    return user


def test_a_worker_is_known_by_its_pods_name_and_uid(pods: DevPods, tmp_path: Path) -> None:
    kubectl = str(resolve("kubectl").path)
    argv = [kubectl, "auth", "whoami", "-o", "json", f"--cache-dir={tmp_path / 'cache'}"]
    worker = pods.start(WorkerSpec(name="w", argv=argv))
    worker.wait_ended(30)
    log = (tmp_path / "pods" / "w" / "log").read_text()
    user = json.loads(log)["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{pods.namespace}:asyncjob-worker"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["w"]
    assert user["extra"]["authentication.kubernetes.io/pod-uid"] == [worker.pod_uid]


def test_a_worker_finds_its_identity_in_its_environment(pods: DevPods, tmp_path: Path) -> None:
    script = "import os; print(os.environ['POD_NAME'], os.environ['POD_UID'], os.environ['EXTRA'])"
    spec = WorkerSpec(name="w", argv=[sys.executable, "-c", script], env={"EXTRA": "more"})
    worker = pods.start(spec)
    worker.wait_ended(30)
    assert (tmp_path / "pods" / "w" / "log").read_text() == f"w {worker.pod_uid} more\n"


def test_a_renewed_token_is_another_and_works(
    plane: ControlPlane, pods: DevPods, tmp_path: Path
) -> None:
    worker = pods.start(WorkerSpec(name="w", argv=FOREVER, token_seconds=600))
    first = token_of(tmp_path, "w")
    worker.renew_token()
    second = token_of(tmp_path, "w")
    assert first != second
    for token in (first, second):
        assert whoami(plane, token)["extra"]["authentication.kubernetes.io/pod-uid"]


def test_a_running_worker_has_a_ready_pod_that_nobody_schedules(pods: DevPods) -> None:
    worker = pods.start(WorkerSpec(name="w", argv=FOREVER, labels={"queue": "mail"}))
    status = container(worker)
    pod = worker.pod()
    assert "running" in status["state"]
    assert pod["status"]["phase"] == "Running"
    assert pod["spec"]["nodeName"] == "dev-node"
    assert pod["metadata"]["labels"]["queue"] == "mail"


def test_a_worker_killed_from_outside_is_reported_terminated(pods: DevPods) -> None:
    worker = pods.start(WorkerSpec(name="w", argv=FOREVER))
    assert worker.process.pid is not None
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.wait_ended(10)
    terminated = container(worker)["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (137, "Error")
    assert terminated["finishedAt"]
    assert worker.pod()["status"]["phase"] == "Failed"


def test_an_end_in_good_order_is_completed(pods: DevPods) -> None:
    worker = pods.start(WorkerSpec(name="w", argv=["true"]))
    worker.wait_ended(10)
    assert container(worker)["state"]["terminated"]["reason"] == "Completed"
    assert worker.pod()["status"]["phase"] == "Succeeded"


def test_a_memory_kill_can_be_played(pods: DevPods) -> None:
    worker = pods.start(WorkerSpec(name="w", argv=FOREVER))
    worker.kill(reason="OOMKilled")
    worker.wait_ended(10)
    assert container(worker)["state"]["terminated"]["reason"] == "OOMKilled"


def test_a_restarted_container_keeps_its_pod_and_token(
    plane: ControlPlane, pods: DevPods, tmp_path: Path
) -> None:
    argv = ["sh", "-c", "echo up; exec sleep 1000"]
    worker = pods.start(WorkerSpec(name="w", argv=argv, restart=True, restart_delay=0.1))
    uid, first = worker.pod_uid, worker.process.pid
    worker.kill()
    worker.await_restart(1, within=10)
    status = container(worker)
    assert worker.pod()["metadata"]["uid"] == uid
    assert worker.process.pid != first
    assert status["restartCount"] == 1
    assert "running" in status["state"]
    assert status["lastState"]["terminated"]["exitCode"] == 137
    assert whoami(plane, token_of(tmp_path, "w"))


def test_stop_lets_the_worker_drain_and_takes_the_pod_away(pods: DevPods, tmp_path: Path) -> None:
    script = "trap 'echo drained; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    worker = pods.start(WorkerSpec(name="w", argv=["sh", "-c", script], restart=True))
    log = tmp_path / "pods" / "w" / "log"
    while "up" not in log.read_text():
        pass
    worker.stop()
    assert log.read_text() == "up\ndrained\n"
    with pytest.raises(ApiStatusError, match="404"):
        worker.pod()


def test_a_force_deleted_pod_leaves_its_process_alone(pods: DevPods) -> None:
    worker = pods.start(WorkerSpec(name="w", argv=FOREVER))
    worker.delete_pod_object()
    with pytest.raises(ApiStatusError, match="404"):
        worker.pod()
    assert worker.process.running


def test_a_pod_deleted_in_good_order_stays_until_its_process_is_stopped(pods: DevPods) -> None:
    worker = pods.start(WorkerSpec(name="w", argv=FOREVER))
    worker.delete_pod_object(force=False)
    assert worker.pod()["metadata"]["deletionTimestamp"]
    worker.stop()
    with pytest.raises(ApiStatusError, match="404"):
        worker.pod()


def test_a_pod_left_behind_is_replaced(plane: ControlPlane, pods: DevPods, tmp_path: Path) -> None:
    old = pods.start(WorkerSpec(name="w", argv=FOREVER))
    other = DevPods(plane.api, tmp_path / "other", namespace=pods.namespace)
    with other:
        new = other.start(WorkerSpec(name="w", argv=FOREVER))
        assert new.pod_uid != old.pod_uid
        old.kill()
        old.wait_ended(10)
        old.wait_published()
        assert "running" in container(new)["state"]


def test_roles_from_files_are_applied(plane: ControlPlane, pods: DevPods, tmp_path: Path) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    role = {"kind": "Role", "metadata": {"name": "r"}, "rules": [rule]}
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "asyncjob-worker"}],
    }
    version = "rbac.authorization.k8s.io/v1"
    for document in (role, binding):
        document["apiVersion"] = version
    file = tmp_path / "rbac.yaml"
    file.write_text(json.dumps({"kind": "List", "items": [role, binding]}))
    pods.start(WorkerSpec(name="w", argv=FOREVER))
    api = Api(plane.url, ca_file=plane.ca_file, token=token_of(tmp_path, "w"))
    path = f"/api/v1/namespaces/{pods.namespace}/configmaps"
    with pytest.raises(ApiStatusError, match="403"):
        api.get(path)
    pods.prepare(rbac=[file])
    pods.prepare(rbac=[file])
    assert api.get(path)["kind"] == "ConfigMapList"


def test_a_missing_service_account_is_refused_by_name(pods: DevPods) -> None:
    with pytest.raises(ApiStatusError, match="nobody"):
        pods.start(WorkerSpec(name="w", argv=FOREVER, service_account="nobody"))
    assert pods.workers == []


def test_an_end_during_an_outage_is_reported_afterwards(tmp_path: Path) -> None:
    with ControlPlane() as plane, DevPods(plane.api, tmp_path / "pods") as pods:
        pods.prepare()
        worker = pods.start(WorkerSpec(name="w", argv=FOREVER))
        worker.wait_published()
        plane.kill_apiserver()
        worker.kill()
        worker.wait_ended(10)
        plane.start_apiserver()
        assert container(worker)["state"]["terminated"]["exitCode"] == 137


def test_workers_stop_while_the_api_server_is_down(tmp_path: Path) -> None:
    with ControlPlane(ControlPlaneOptions(with_controller_manager=False)) as plane:
        pods = DevPods(plane.api, tmp_path / "pods")
        pods.prepare()
        worker = pods.start(WorkerSpec(name="w", argv=FOREVER))
        plane.kill_apiserver()
        pods.stop()
        assert not worker.process.running


def test_pods_of_a_killed_supervisor_are_said_to_have_ended_and_taken_over_or_deleted(
    plane: ControlPlane, tmp_path: Path
) -> None:
    space = f"left-{tmp_path.name[-8:].lower().replace('_', '-')}"
    killed = DevPods(plane.api, tmp_path / "pods", namespace=space)
    killed.prepare()
    spec = WorkerSpec(name="w", argv=FOREVER, restart=True)
    old, gone = killed.start(spec), killed.start(WorkerSpec(name="gone", argv=FOREVER))
    for worker in (old, gone):
        worker.wait_published()
        worker._reporter.close()  # a killed supervisor says no more
        worker.terminate()
    with DevPods(plane.api, tmp_path / "pods", namespace=space) as pods:
        pods.end_orphans(keep={"w"})
        for worker in (old, gone):
            (left,) = worker.pod()["status"]["containerStatuses"]
            assert left["state"]["terminated"]["exitCode"] == 137
        new = pods.start(spec)
        assert new.pod_uid == old.pod_uid
        status = container(new)
        assert (status["restartCount"], status["ready"], new.restarts) == (1, True, 0)
        assert status["lastState"]["terminated"]["exitCode"] == 137
    for worker in (new, gone):
        with pytest.raises(ApiStatusError, match="404"):
            worker.pod()
