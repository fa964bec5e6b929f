"""Coordination Leases that are not the worker's own."""

from typing import Any, Final

from asyncjob.names import OPERATOR_LEASE, POD_UID_ANNOTATION, WORKER_LEASE_PREFIX
from support.api import Answer
from support.forbidden.case import Case, Scene

_GROUP: Final = "apis/coordination.k8s.io/v1"


def _lease(name: str, uid: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "annotations": {POD_UID_ANNOTATION: uid}},
        "spec": {"holderIdentity": "worker-0/1"},
    }


def _create(scene: Scene, name: str, uid: str) -> Answer:
    path = scene.space.path("leases", _GROUP)
    return scene.acting(scene.worker.client).create(path, _lease(name, uid))


def _of_another(scene: Scene) -> Answer:
    return _create(scene, WORKER_LEASE_PREFIX + scene.other.pod, scene.worker.pod_uid)


def _with_anothers_uid(scene: Scene) -> Answer:
    return _create(scene, WORKER_LEASE_PREFIX + scene.worker.pod, scene.other.pod_uid)


def _without_uid(scene: Scene) -> Answer:
    return _create(scene, WORKER_LEASE_PREFIX + scene.worker.pod, "")


def _taken_over(scene: Scene) -> Answer:
    path = scene.space.path("leases", _GROUP)
    name = WORKER_LEASE_PREFIX + scene.other.pod
    scene.other.client.create(path, _lease(name, scene.other.pod_uid))
    body = {"spec": {"holderIdentity": "worker-0/1"}}
    return scene.acting(scene.worker.client).merge(f"{path}/{name}", body)


def _election(scene: Scene) -> Answer:
    return _create(scene, OPERATOR_LEASE, scene.worker.pod_uid)


def _of_another_controller(scene: Scene) -> Answer:
    return _create(scene, "another-controller", scene.worker.pod_uid)


def _taken_from_another_controller(scene: Scene) -> Answer:
    path = scene.space.path("leases", _GROUP)
    scene.space.admin.create(path, _lease("another-leader", ""))
    body = {"spec": {"holderIdentity": "worker-0/1"}}
    return scene.acting(scene.worker.client).merge(f"{path}/another-leader", body)


LEASES: Final[tuple[Case, ...]] = (
    Case("worker-lease.own", "a worker lease for another pod", _of_another),
    Case("worker-lease.own", "a worker lease with another pod's UID", _with_anothers_uid),
    Case("worker-lease.own", "a worker lease without a UID", _without_uid),
    Case("worker-lease.own", "a change of another's worker lease", _taken_over),
    Case("worker-lease.election", "a worker that stands for election", _election),
    Case("worker-lease.no-other", "a worker that stands for another's", _of_another_controller),
    Case(
        "worker-lease.no-other",
        "a worker that takes another controller's lease",
        _taken_from_another_controller,
    ),
)
