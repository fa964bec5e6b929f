"""When a part counts as started: it says so itself, in a Lease that the API server keeps.

The gateway says so where it listens.
"""

from http import HTTPStatus

import httpx

from asyncjob.names import OPERATOR_LEASE, POD_UID_ANNOTATION, WORKER_LEASE_PREFIX
from asyncjob_dev.api import Api, Object
from asyncjob_dev.errors import ApiError
from asyncjob_dev.readiness import wait_until
from asyncjob_dev.supervisor import DevWorker

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
READY_WITHIN_SECONDS = 60.0


def await_worker(api: Api, worker: DevWorker) -> None:
    """Wait until this very start of the worker has announced itself."""
    wait_until(
        lambda: _is_registered(api, worker),
        worker.name,
        within=READY_WITHIN_SECONDS,
        alive=[worker.process],
    )


def await_operator(api: Api, operator: DevWorker, before: str) -> None:
    """Wait until it leads; `before` is who held the lease before it was started."""
    wait_until(
        lambda: leader(api) not in {"", before},
        operator.name,
        within=READY_WITHIN_SECONDS,
        alive=[operator.process],
    )


def await_gateway(url: str, gateway: DevWorker) -> None:
    """Wait until it has listed all jobs."""
    wait_until(
        lambda: _answers(f"{url}/readyz"),
        gateway.name,
        within=READY_WITHIN_SECONDS,
        alive=[gateway.process],
    )


def leader(api: Api) -> str:
    """Return who holds the operators' lease."""
    return _holder(_lease(api, OPERATOR_LEASE))


def _is_registered(api: Api, worker: DevWorker) -> bool:
    lease = _lease(api, WORKER_LEASE_PREFIX + worker.name)
    annotations = lease.get("metadata", {}).get("annotations", {})
    return bool(annotations.get(POD_UID_ANNOTATION) == worker.pod_uid and _holder(lease))


def _answers(url: str) -> bool:
    try:
        return bool(httpx.get(url, timeout=2, trust_env=False).status_code == HTTPStatus.OK)
    except httpx.HTTPError:
        return False


def _holder(lease: Object) -> str:
    return str(lease.get("spec", {}).get("holderIdentity") or "")


def _lease(api: Api, name: str) -> Object:
    try:
        return api.get(f"{LEASES}/{name}")
    except ApiError:
        return {}
