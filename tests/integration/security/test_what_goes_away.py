"""Namespaces, and what belongs to what is gone, are removed by the accounts of Kubernetes' own.

On real clusters the namespace controller and the garbage collector are no administrators: they have
roles that may delete everything, and operate nothing.
"""

from http import HTTPStatus

import pytest

from asyncjob.names import OPERATOR_LEASE
from support.cluster.api import Client
from support.cluster.enforcement import until_gone
from support.cluster.identities import Space
from support.cluster.inhabited import LEASES, announce, inhabit
from support.driven.lives import Life
from support.tenants.stolen import HOME, StolenTokenSetup

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

WITHIN = 60.0
WORKER_ROLE = "asyncjob-worker-default"


@pytest.fixture
def tenant(admin: Client, setup: StolenTokenSetup) -> Space:
    """Return another namespace with a worker's rights, those that the chart gives at home."""
    space = Space("tenant", admin)
    admin.create("/api/v1/namespaces", {"metadata": {"name": space.name}}).object()
    role = admin.get(f"{setup.space.path('roles', RBAC)}/{WORKER_ROLE}").object()
    space.grant(WORKER_ROLE, *role["rules"])
    return space


RBAC = "apis/rbac.authorization.k8s.io/v1"


def test_a_namespace_with_workers_operator_jobs_queues_and_schedules_goes_within_a_minute(
    admin: Client, tenant: Space
) -> None:
    inhabit(tenant, tenant.worker("worker-0", WORKER_ROLE), admin)

    admin.delete(f"/api/v1/namespaces/{tenant.name}").object()

    until_gone(admin, f"/api/v1/namespaces/{tenant.name}", WITHIN)


def test_the_lease_of_a_deleted_pod_is_collected(admin: Client, setup: StolenTokenSetup) -> None:
    gone = setup.pod(WORKER_ROLE)
    lease = announce(setup.space, gone)

    admin.delete(f"{setup.space.path('pods')}/{gone.pod}").object()

    until_gone(admin, lease, WITHIN)


def test_a_job_that_is_deleted_in_the_foreground_goes(
    admin: Client, setup: StolenTokenSetup
) -> None:
    """The garbage collector takes the finalizer away that the API server has set."""
    life = setup.life()
    options = {"propagationPolicy": "Foreground"}

    admin.request("DELETE", life.path, options).object()

    until_gone(admin, life.path, WITHIN)


def test_a_job_goes_with_its_owner(admin: Client, setup: StolenTokenSetup) -> None:
    pod = setup.pod(WORKER_ROLE)
    life = Life(HOME, "owned", admin, setup.worker)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.pod, "uid": pod.pod_uid}
    life.create()
    admin.merge(life.path, {"metadata": {"ownerReferences": [owner]}}).object()

    admin.delete(f"{setup.space.path('pods')}/{pod.pod}").object()

    until_gone(admin, life.path, WITHIN)


def test_who_may_not_delete_leases_is_refused_them_by_its_role(setup: StolenTokenSetup) -> None:
    thief = setup.pod(WORKER_ROLE)
    own = announce(setup.space, thief)
    for path in (own, f"{setup.space.path('leases', LEASES)}/{OPERATOR_LEASE}"):
        assert thief.client.delete(path).status == HTTPStatus.FORBIDDEN
