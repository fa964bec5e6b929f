"""An operator process under test, and jobs driven by hand as a worker and its kubelet would."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.request import urlopen

from asyncjob.lifecycle.claim import Candidate, Holder, claim_body, renewal
from asyncjob.lifecycle.move import merge_body, render
from asyncjob.lifecycle.outcome import Failure, fail, succeed
from asyncjob.lifecycle.policy import layer_of, resolve
from asyncjob.lifecycle.timestamps import to_text
from asyncjob.lifecycle.view import read_job
from asyncjob.names import (
    COMPONENT_LABEL,
    JOBS,
    POD_UID_ANNOTATION,
    QUEUES,
    WORKER_COMPONENT,
    WORKER_LEASE_PREFIX,
    collection,
    job_path,
    job_status_path,
)
from asyncjob_dev.api import Api, Object
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.errors import ApiError
from asyncjob_dev.kubeconfig import write_kubeconfig

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
RBAC = "rbac.authorization.k8s.io"
NUMBERS = itertools.count(1)
QUICK = (
    "--lease-margin=0.3",
    "--timeout-margin=0.5",
    "--missing-dependency-timeout=5",
    "--backoff-initial=0.2",
    "--backoff-max=5",
    "--retention-interval=1",
    "--retention-min-age=0",
)
"""Options under which little patience is needed to see the operator act."""

POD_ACCOUNT = "pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces"


def until(
    probe: Callable[[], T | None], within: float, what: str = "it", *, every: float = 0.05
) -> T:
    """Return the first true answer of the probe."""
    give_up_at = time.monotonic() + within
    while not (answer := probe()):
        assert time.monotonic() < give_up_at, f"{what} did not come within {within} s"
        time.sleep(every)
    return answer


def now(seconds: float = 0.0) -> str:
    """Return the time so many seconds from now, as it is stored."""
    return to_text(datetime.now(UTC) + timedelta(seconds=seconds))


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def operator_kubeconfig(plane: ControlPlane, path: Path) -> Path:
    """Write a kubeconfig of a service account with the operator's roles, and no others."""
    namespace = Jobs(plane.api).namespace
    for role in ("asyncjob-operator", "asyncjob-operator-install"):
        subject = {"kind": "ServiceAccount", "name": "asyncjob-operator", "namespace": namespace}
        plane.api.create(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {
                "metadata": {"name": f"{role}-{namespace}"},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            },
        )
    token = service_account(plane, namespace, "asyncjob-operator")
    user = {"token": token}
    write_kubeconfig(path, url=plane.url, ca_file=plane.ca_file, user=user, namespace=namespace)
    return path


def service_account(plane: ControlPlane, namespace: str, name: str) -> str:
    """Create a service account and return a token of it."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    plane.api.create(accounts, {"metadata": {"name": name}})
    token: str = plane.api.create(f"{accounts}/{name}/token", {"spec": {}})["status"]["token"]
    return token


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
    bound = {"kind": "Pod", "apiVersion": "v1", "name": worker.pod, "uid": worker.pod_uid}
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/{worker.account}"
    answer = api.create(f"{account}/token", {"spec": {"boundObjectRef": bound}})
    user = {"token": answer["status"]["token"]}
    write_kubeconfig(path, url=api.url, ca_file=api.ca_file, user=user, namespace=namespace)
    return path


class Jobs:
    """The jobs of one namespace of its own, with the admin's rights."""

    def __init__(self, api: Api, namespace: str | None = None) -> None:
        self.api = api
        self.namespace = namespace or f"ops-{next(NUMBERS)}-{uuid.uuid4().hex[:6]}"
        if namespace is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
            api.create("/api/v1/namespaces", body)
            # Pods need an account, and "default" comes whenever the controller gets to it.
            accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
            api.create(accounts, {"metadata": {"name": POD_ACCOUNT}})

    def create(self, name: str, **spec: Any) -> Object:
        """Create a job."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name},
            "spec": {"type": "test", **spec},
        }
        return self.api.create(collection(self.namespace, JOBS), body)

    def queue(self, name: str, **spec: Any) -> Object:
        """Create an AsyncQueue."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncQueue",
            "metadata": {"name": name},
            "spec": spec,
        }
        return self.api.create(collection(self.namespace, QUEUES), body)

    def get(self, name: str) -> Object:
        """Return the job."""
        return self.api.get(job_path(self.namespace, name))

    def status(self, name: str) -> Object:
        """Return the job's status."""
        status: Object = self.get(name)["status"]
        return status

    def exists(self, name: str) -> bool:
        """Return whether there is such a job."""
        return self.api.answers(job_path(self.namespace, name))

    def wish(self, name: str, **wishes: Any) -> None:
        """Change what a user may change."""
        self.api.merge(job_path(self.namespace, name), {"spec": wishes})

    def until_phase(self, name: str, phase: str, within: float = 10.0) -> Object:
        """Return the status once the job is in the phase."""

        def probe() -> Object | None:
            status = self.status(name)
            return status if status["phase"] == phase else None

        return until(probe, within, f"{name} in {phase} (is {self.status(name)})")

    def until_reason(self, name: str, reason: str, within: float = 10.0) -> Object:
        """Return the status once it has the reason."""

        def probe() -> Object | None:
            status = self.status(name)
            return status if status.get("reason") == reason else None

        return until(probe, within, f"{name} for {reason} (is {self.status(name)})")

    def stays(self, name: str, phase: str, seconds: float) -> None:
        """Check that the job does not leave the phase for so long."""
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            assert self.status(name)["phase"] == phase
            time.sleep(0.1)

    def events(self, name: str) -> list[Object]:
        """Return the Events about a job."""
        answer = self.api.get(
            f"/api/v1/namespaces/{self.namespace}/events",
            fieldSelector=f"involvedObject.name={name}",
        )
        events: list[Object] = answer["items"]
        return events


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
        except ApiError:
            self.jobs.api.merge(self.lease_path, body)

    @property
    def lease_path(self) -> str:
        """Return the path of the Lease in which this worker announces itself."""
        name = WORKER_LEASE_PREFIX + self.pod
        return f"{LEASES}/{self.jobs.namespace}/leases/{name}"

    def announce(self) -> None:
        """Renew the announcement."""
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
        return self.jobs.api.merge(job_status_path(self.jobs.namespace, name), body)

    def claim_of(
        self, obj: Object, lease: int = 5, started: str | None = None, **policy: Any
    ) -> Object:
        """Return the merge-patch that claims this very version of the job."""
        job = read_job(obj)
        spec = obj["spec"]
        defaults: Object = {"leaseDurationSeconds": lease, "retryPolicy": {"jitter": 0, **policy}}
        effective = resolve(layer_of(spec), layer_of(defaults))
        candidate = Candidate(job.name, job.resource_version, job.type, attempt=job.attempt)
        holder = Holder(self.pod, self.pod_uid, self.worker)
        claim = uuid.uuid4().hex
        return dict(claim_body(candidate, holder, effective, claim=claim, now=started or now()))

    def renew(self, name: str) -> None:
        """Send a heartbeat."""
        status = self.jobs.status(name)
        fields = renewal(status["lease"], status["lease"]["renewals"] + 1, now())
        self.jobs.api.merge(job_status_path(self.jobs.namespace, name), {"status": fields})

    def fail(self, name: str, **failure: Any) -> Object:
        """Report a failed attempt."""
        obj = self.jobs.get(name)
        what = Failure(type="ValueError", category="Internal", message="no luck", **failure)
        move = fail(read_job(obj), what, now=now(), draw=0.5)
        return self._report(obj, render(move, obj["status"]))

    def succeed(self, name: str) -> Object:
        """Report success."""
        obj = self.jobs.get(name)
        return self._report(obj, render(succeed(read_job(obj), now=now()), obj["status"]))

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
        body = merge_body(fields, obj["metadata"]["resourceVersion"])
        name = obj["metadata"]["name"]
        return self.jobs.api.merge(job_status_path(self.jobs.namespace, name), dict(body))

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


class OperatorProcess:
    """`asyncjob-operator run` as a process; a context manager that stops it."""

    def __init__(self, kubeconfig: Path, log: Path, *options: str) -> None:
        self.log = log
        self.metrics_port, self.health_port = free_port(), free_port()
        self._argv = [
            str(Path(sys.executable).with_name("asyncjob-operator")),
            "run",
            f"--kubeconfig={kubeconfig}",
            f"--metrics-port={self.metrics_port}",
            f"--health-port={self.health_port}",
            *options,
        ]
        self._environment: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def run_module(self, module: str, environment: dict[str, str]) -> None:
        """Run this module of the tests in the command's stead."""
        self._argv[:1] = [sys.executable, "-m", module]
        self._environment = {**environment, "PYTHONPATH": str(ROOT / "tests")}

    def __enter__(self) -> Self:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ASYNCJOB_")}
        environment |= self._environment
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._argv, stderr=log, env=environment)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.stop()
        if error is not None:
            print(self.logs())  # noqa: T201  # shown with the failure

    @property
    def pid(self) -> int:
        """Return the process's id."""
        assert self.process
        return self.process.pid

    def stop(self, within: float = 10.0) -> int:
        """SIGTERM and return the exit code."""
        assert self.process
        self.process.terminate()
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def logs(self) -> str:
        """Return what it has logged."""
        return self.log.read_text()

    def until_ready(self, within: float = 20.0) -> Self:
        """Wait until it has listed all jobs."""
        until(lambda: self._fetch(self.health_port, "/readyz") == "ok", within, "readiness")
        return self

    def until_leading(self, within: float = 20.0) -> Self:
        """Wait until it leads."""
        until(self.leads, within, "leadership")
        return self

    def leads(self) -> bool:
        """Return whether it leads."""
        return self.metric("asyncjob_operator_leading") == 1.0

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have these labels."""
        total = 0.0
        for line in self._fetch(self.metrics_port, "/metrics").splitlines():
            sample, _, value = line.rpartition(" ")
            wanted = all(f'{key}="{text}"' in sample for key, text in labels.items())
            if sample.split("{")[0] == name and wanted:
                total += float(value)
        return total

    def _fetch(self, port: int, path: str) -> str:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                body: bytes = answer.read()
                return body.decode()
        except OSError:
            return ""
