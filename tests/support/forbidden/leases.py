"""Coordination Leases that are not the worker's own."""

from typing import Any, Final

from asyncjob.names import OPERATOR_LEASE, POD_UID_ANNOTATION, WORKER_LEASE_PREFIX
from support.cluster.api import Answer
from support.forbidden.case import Case, ForbiddenSetup

_GROUP: Final = "apis/coordination.k8s.io/v1"


def _lease(name: str, uid: str, pod: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "annotations": {POD_UID_ANNOTATION: uid}},
        "spec": _held_by(pod),
    }


def _held_by(pod: str) -> dict[str, Any]:
    return {"holderIdentity": f"{pod}/1"}


def _create(setup: ForbiddenSetup, name: str, uid: str) -> Answer:
    path = setup.space.path("leases", _GROUP)
    return setup.acting(setup.worker.client).create(path, _lease(name, uid, setup.worker.pod))


def _of_another(setup: ForbiddenSetup) -> Answer:
    return _create(setup, WORKER_LEASE_PREFIX + setup.other.pod, setup.worker.pod_uid)


def _with_anothers_uid(setup: ForbiddenSetup) -> Answer:
    return _create(setup, WORKER_LEASE_PREFIX + setup.worker.pod, setup.other.pod_uid)


def _without_uid(setup: ForbiddenSetup) -> Answer:
    return _create(setup, WORKER_LEASE_PREFIX + setup.worker.pod, "")


def _taken_over(setup: ForbiddenSetup) -> Answer:
    path = setup.space.path("leases", _GROUP)
    name = WORKER_LEASE_PREFIX + setup.other.pod
    setup.other.client.create(path, _lease(name, setup.other.pod_uid, setup.other.pod))
    body = {"spec": _held_by(setup.worker.pod)}
    return setup.acting(setup.worker.client).merge(f"{path}/{name}", body)


def _election(setup: ForbiddenSetup) -> Answer:
    return _create(setup, OPERATOR_LEASE, setup.worker.pod_uid)


def _of_another_controller(setup: ForbiddenSetup) -> Answer:
    return _create(setup, "another-controller", setup.worker.pod_uid)


def _taken_from_another_controller(setup: ForbiddenSetup) -> Answer:
    path = setup.space.path("leases", _GROUP)
    setup.space.admin.create(path, _lease("another-leader", "", "another"))
    body = {"spec": _held_by(setup.worker.pod)}
    return setup.acting(setup.worker.client).merge(f"{path}/another-leader", body)


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
