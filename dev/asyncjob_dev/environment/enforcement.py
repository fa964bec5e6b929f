"""Waits until the API server enforces ownership, which begins a moment after the policies exist.

A worker refuses to run where it is not enforced, so none is started before.
"""

from datetime import UTC, datetime

from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.policy import BUILT_IN_POLICY
from asyncjob.names import API_VERSION, JOB_KIND, JOBS, collection_path, job_path, job_status_path
from asyncjob_dev.api import Api, Object
from asyncjob_dev.errors import ApiError
from asyncjob_dev.readiness import wait_until

PROBE = "asyncjob-dev-probe"
ENFORCED_WITHIN_SECONDS = 30.0
FOREIGN_HOLDER = LeaseHolder("nobody", "00000000-0000-0000-0000-000000000000", "nobody")


def await_enforcement(api: Api, account: str, namespace: str = "default") -> None:
    """Have a claim in a foreign pod's name refused; `account` is the workers' service account."""
    job = api.create(collection_path(namespace, JOBS), _probe())
    try:
        intruder = _foreign_client(api, account, namespace)
        wait_until(
            lambda: _is_refused(intruder, namespace, job),
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
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    token = api.create(path, request)["status"]["token"]
    return Api(api.url, ca_file=api.ca_file, token=token)


def _is_refused(intruder: Api, namespace: str, job: Object) -> bool:
    candidate = Candidate(PROBE, job["metadata"]["resourceVersion"], PROBE)
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    body = claim_patch(candidate, FOREIGN_HOLDER, BUILT_IN_POLICY, claim="probe", now=now)
    try:
        intruder.merge(job_status_path(namespace, PROBE), dict(body), dryRun="All")
    except ApiError as error:
        return "ValidatingAdmissionPolicy" in str(error)
    return False
