"""Jobs held and reported on by hand, as a worker and its kubelet would."""

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import (
    Failure,
    fail,
    status_fields,
    status_merge_patch,
    succeed,
)
from asyncjob.lifecycle.policy import read_policy_layer, resolve_policy
from asyncjob.names import (
    COMPONENT_LABEL,
    POD_UID_ANNOTATION,
    WORKER_COMPONENT,
    WORKER_LEASE_PREFIX,
    job_status_path,
)
from asyncjob_dev.api import Object, write_kubeconfig
from asyncjob_dev.errors import ApiStatusError
from support.cluster.impersonation import as_pod
from support.driven.jobs import POD_ACCOUNT, Jobs, now
from support.processes.operator import RBAC

LEASES = "/apis/coordination.k8s.io/v1/namespaces"


def worker_kubeconfig(worker: "FakeWorker", path: Path) -> Path:
    """Write a kubeconfig with a token bound to the worker's pod, with the worker's role."""
    api, namespace = worker.jobs.api, worker.jobs.namespace
    subject = {"kind": "ServiceAccount", "name": worker.account, "namespace": namespace}
    api.create(
        f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings",
        {
            "metadata": {"name": worker.account},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "asyncjob-worker"},
            "subjects": [subject],
        },
    )
    status = api.request_token(namespace, worker.account, pod=(worker.pod, worker.pod_uid))
    user = {"token": status["token"]}
    write_kubeconfig(path, url=api.url, ca_file=api.ca_file, user=user, namespace=namespace)
    return path


def renewal_fields(lease: Object, renewals: int, time: str) -> Object:
    """Return the status fields of a heartbeat; `lease` is the one of the claim."""
    return {"lease": {**lease, "renewals": renewals, "renewTime": time}, "lastUpdateTime": time}


class FakeWorker:
    """Claims, renews and reports as a worker would, and is its own kubelet."""

    def __init__(
        self, jobs: Jobs, pod: str = "worker-0", *, with_pod: bool = True, account: str = ""
    ) -> None:
        self.jobs, self.pod, self.account = jobs, pod, account
        self.pod_uid = str(uuid.uuid4())
        self._pods = f"/api/v1/namespaces/{jobs.namespace}/pods"
        if with_pod:
            self._create_pod()
        self.start()

    def start(self) -> None:
        """Announce a new process of the pod."""
        self.worker = f"{self.pod}/{uuid.uuid4().hex[:8]}"
        path, _, name = self.lease_path.rpartition("/")
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "labels": {COMPONENT_LABEL: WORKER_COMPONENT},
                "annotations": {POD_UID_ANNOTATION: self.pod_uid},
            },
            "spec": {"holderIdentity": self.worker},
        }
        try:
            self.jobs.api.create(path, body)
        except ApiStatusError:
            self.jobs.api.merge(self.lease_path, body)

    @property
    def lease_path(self) -> str:
        """Return the path of the Lease in which this worker announces itself."""
        name = WORKER_LEASE_PREFIX + self.pod
        return f"{LEASES}/{self.jobs.namespace}/leases/{name}"

    def announce(self) -> None:
        """Renew the registration."""
        time = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        self.jobs.api.merge(self.lease_path, {"spec": {"renewTime": time}})

    def withdraw(self) -> None:
        """Say that this worker is gone."""
        self.jobs.api.merge(self.lease_path, {"spec": {"holderIdentity": ""}})

    @property
    def announced(self) -> bool:
        """Return whether there is such a Lease."""
        return self.jobs.api.answers(self.lease_path)

    def claim(self, name: str, lease: int = 5, started: str | None = None, **policy: Any) -> Object:
        """Claim a queued job; `policy` stands for what its handler says."""
        body = self.claim_of(self.jobs.get(name), lease, started, **policy)
        return self._write(name, body)

    def claim_of(
        self, obj: Object, lease: int = 5, started: str | None = None, **policy: Any
    ) -> Object:
        """Return the merge-patch that claims this very version of the job."""
        job = read_job(obj)
        spec = obj["spec"]
        defaults: Object = {"leaseDurationSeconds": lease, "retryPolicy": {"jitter": 0, **policy}}
        effective = resolve_policy(read_policy_layer(spec), read_policy_layer(defaults))
        candidate = Candidate(job.name, job.resource_version, job.type, attempt=job.attempt)
        holder = LeaseHolder(self.pod, self.pod_uid, self.worker)
        claim = uuid.uuid4().hex
        return dict(claim_patch(candidate, holder, effective, claim_id=claim, now=started or now()))

    def renew(self, name: str) -> None:
        """Send a heartbeat."""
        status = self.jobs.status(name)
        fields = renewal_fields(status["lease"], status["lease"]["renewals"] + 1, now())
        self._write(name, {"status": fields})

    def fail(self, name: str, **failure: Any) -> Object:
        """Report a failed attempt."""
        obj = self.jobs.get(name)
        what = Failure(type="ValueError", category="Internal", message="no luck", **failure)
        move = fail(read_job(obj), what, now=now(), jitter_sample=0.5)
        return self._report(obj, status_fields(move, obj["status"]))

    def succeed(self, name: str) -> Object:
        """Report success."""
        obj = self.jobs.get(name)
        return self._report(obj, status_fields(succeed(read_job(obj), now=now()), obj["status"]))

    def end_container(
        self,
        exit_code: int,
        *,
        reason: str = "Error",
        phase: str = "Running",
        finished: str | None = None,
    ) -> None:
        """Say as a kubelet would that the container has ended."""
        terminated = {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": now(-60),
            "finishedAt": (finished or now(1.0))[:19] + "Z",
        }
        self._pod_status(phase, {"terminated": terminated})

    def pod_status(self, status: Object) -> None:
        """Replace the pod's status."""
        self.jobs.api.merge(f"{self._pods}/{self.pod}/status", {"status": status})

    def delete_pod(self) -> None:
        """Delete the pod at once, as a force-delete does."""
        self.jobs.api.delete(f"{self._pods}/{self.pod}", {"gracePeriodSeconds": 0})

    def _report(self, obj: Object, fields: Any) -> Object:
        body = status_merge_patch(fields, obj["metadata"]["resourceVersion"])
        return self._write(obj["metadata"]["name"], dict(body))

    def _write(self, name: str, body: Object) -> Object:
        """Write a job's status in the pod's name, as the API server demands of a holder."""
        me = self.jobs.api.sending(as_pod(self.jobs.namespace, self.pod, self.pod_uid))
        return me.merge(job_status_path(self.jobs.namespace, name), body)

    def _create_pod(self) -> None:
        if self.account:
            accounts = f"/api/v1/namespaces/{self.jobs.namespace}/serviceaccounts"
            self.jobs.api.create(accounts, {"metadata": {"name": self.account}})
        spec: Object = {
            "nodeName": "nowhere",
            "containers": [{"name": "worker", "image": "w"}],
            "serviceAccountName": self.account or POD_ACCOUNT,
            "automountServiceAccountToken": False,
        }
        pod = self.jobs.api.create(
            self._pods,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": self.pod, "labels": {COMPONENT_LABEL: WORKER_COMPONENT}},
                "spec": spec,
            },
        )
        self.pod_uid = pod["metadata"]["uid"]
        self._pod_status("Running", {"running": {"startedAt": now()}})

    def _pod_status(self, phase: str, state: Object) -> None:
        container = {
            "name": "worker",
            "image": "w",
            "imageID": "",
            "ready": "running" in state,
            "restartCount": 0,
            "state": state,
        }
        self.pod_status({"phase": phase, "containerStatuses": [container]})
