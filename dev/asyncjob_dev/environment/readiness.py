"""When the parts of an environment count as started.

Policies begin to be enforced a moment after they exist, and a worker refuses to run before;
operator and workers are ready by their Leases, the gateway by its health endpoint.
"""

from datetime import UTC, datetime
from http import HTTPStatus

import httpx

from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.policy import BUILT_IN_POLICY
from asyncjob.names import (
    API_VERSION,
    JOB_KIND,
    JOBS,
    OPERATOR_LEASE,
    POD_UID_ANNOTATION,
    WORKER_LEASE_PREFIX,
    collection_path,
    job_path,
    job_status_path,
)
from asyncjob_dev.api import Api, Object
from asyncjob_dev.errors import ApiStatusError
from asyncjob_dev.process import wait_until
from asyncjob_dev.supervisor import DevWorker

PROBE = "asyncjob-dev-probe"
ENFORCED_WITHIN_SECONDS = 30.0
FOREIGN_HOLDER = LeaseHolder("nobody", "00000000-0000-0000-0000-000000000000", "nobody")


def await_enforcement(
    api: Api, account: str, namespace: str = "default", *, enforced: bool = True
) -> None:
    """Have a claim in a foreign pod's name refused; `account` is the workers' service account.

    Without `enforced`, have it pass: the policies are gone.
    """
    job = api.create(collection_path(namespace, JOBS), _probe())
    try:
        intruder = _foreign_client(api, account, namespace)
        wait_until(
            lambda: _is_refused(intruder, namespace, job) is enforced,
            "the policy that only a lease's holder writes",
            within=ENFORCED_WITHIN_SECONDS,
        )
    finally:
        api.delete(job_path(namespace, PROBE))


def _probe() -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {"name": PROBE},
        "spec": {"type": PROBE},
    }


def _foreign_client(api: Api, account: str, namespace: str) -> Api:
    """Return a client with a worker's rights but without a pod."""
    token = api.request_token(namespace, account, seconds=600)["token"]
    return Api(api.url, ca_file=api.ca_file, token=token)


def _is_refused(intruder: Api, namespace: str, job: Object) -> bool:
    candidate = Candidate(PROBE, job["metadata"]["resourceVersion"], PROBE)
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    body = claim_patch(candidate, FOREIGN_HOLDER, BUILT_IN_POLICY, claim_id="probe", now=now)
    try:
        intruder.merge(job_status_path(namespace, PROBE), dict(body), dryRun="All")
    except ApiStatusError as error:
        return "ValidatingAdmissionPolicy" in str(error)
    return False


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
READY_WITHIN_SECONDS = 120.0
"""They become ready beside each other. One that ends before is told at once."""


def await_worker(api: Api, worker: DevWorker, before: str = "") -> None:
    """Wait until this very start of the worker has announced itself.

    `before` is the process that had registered by its name before it was started.
    """
    wait_until(
        lambda: _is_registered(api, worker, before),
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


def worker_process(api: Api, name: str) -> str:
    """Return which process registered last as the worker of this name."""
    return _holder(_lease(api, WORKER_LEASE_PREFIX + name))


def _is_registered(api: Api, worker: DevWorker, before: str) -> bool:
    lease = _lease(api, WORKER_LEASE_PREFIX + worker.name)
    annotations = lease.get("metadata", {}).get("annotations", {})
    is_its_own = annotations.get(POD_UID_ANNOTATION) == worker.pod_uid
    return bool(is_its_own and _holder(lease) not in {"", before})


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
    except ApiStatusError:
        return {}
