"""Finished jobs go when their time is over, whether or not the API server tells when they ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from asyncjob.names import (
    API_VERSION,
    JOB_KIND,
    JOBS,
    OPERATOR_LEASE,
    VERSION_TIMES_ANNOTATION,
    collection_path,
    job_status_path,
)
from asyncjob_dev.api import Api, Object
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions
from asyncjob_dev.errors import ApiStatusError
from support.cluster.impersonation import as_pod
from support.cluster.installation import ROOT, install
from support.cluster.versions import MUTATING_POLICIES, needs
from support.driven.crons import SkewedOperator
from support.driven.fake_worker import LEASES, FakeWorker, renewal_fields, worker_kubeconfig
from support.driven.jobs import Jobs, now, until
from support.processes.operator import QUICK, OperatorProcess, operator_kubeconfig

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

LATER = 8 * 86_400.0
"""Seconds: a day longer than a job stays by default."""

LONG_AGO = "1970-01-01T00:00:00Z"
REPORT = {
    "manager": "forger",
    "operation": "Update",
    "apiVersion": API_VERSION,
    "time": LONG_AGO,
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:status": {}},
    "subresource": "status",
}
KINDS = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
BEFORE_1_36 = (
    "--disable-admission-plugins=MutatingAdmissionPolicy",
    "--runtime-config="
    + ",".join(f"admissionregistration.k8s.io/v1/{kind}=false" for kind in KINDS),
)
"""Flags with which an API server of 1.36 serves no such policies, as one before does not."""


def finish(jobs: Jobs, worker: FakeWorker, name: str) -> None:
    jobs.create(name)
    worker.claim(name, started=LONG_AGO)
    worker.succeed(name)


def is_tracked(jobs: Jobs, name: str) -> bool:
    return "managedFields" in jobs.get(name)["metadata"]


def tries_tracked(jobs: Jobs) -> bool:
    """Return whether a job that was created now would be tracked; yes, while none can be.

    While an API server takes a policy in, it may not know the kind that this is about.
    """
    body = {"apiVersion": API_VERSION, "kind": JOB_KIND, "metadata": {"name": "tried"}}
    path = collection_path(jobs.namespace, JOBS)
    try:
        tried = jobs.api.create(path, {**body, "spec": {"type": "test"}}, dryRun="All")
    except ApiStatusError as error:
        if error.reason != "ServiceUnavailable":
            raise
        return True
    return "managedFields" in tried["metadata"]


def renewed(claimed: Object) -> Object:
    """Return the fields of a heartbeat."""
    return renewal_fields(claimed["status"]["lease"], 1, now())


def worker_client(plane: ControlPlane, jobs: Jobs, folder: Path) -> Api:
    """Return a client with a worker's token, who may patch Leases as far as roles go."""
    thief = FakeWorker(jobs, "worker-7", account="asyncjob-worker")
    kubeconfig = yaml.safe_load(worker_kubeconfig(thief, folder / "stolen").read_text())
    token = kubeconfig["users"][0]["user"]["token"]
    return Api(plane.url, ca_file=plane.ca_file, token=token)


class Operators:
    """Operators of one namespace, one after the other."""

    def __init__(self, plane: ControlPlane, jobs: Jobs, folder: Path) -> None:
        self.access = operator_kubeconfig(plane, folder / "kubeconfig")
        self._jobs, self._folder = jobs, folder
        home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
        self._options = (*QUICK, *home)

    def now(self) -> OperatorProcess:
        return OperatorProcess(self.access, self._folder / "now.log", *self._options)

    def later(self, *options: str) -> OperatorProcess:
        """Return one for which eight days have passed."""
        log = self._folder / "later.log"
        return SkewedOperator(self.access, log, *self._options, *options, skew=LATER)

    @property
    def noted(self) -> str:
        """Return what the leader has noted of versions."""
        lease = self._jobs.api.get(f"{LEASES}/{self._jobs.namespace}/leases/{OPERATOR_LEASE}")
        return str(lease["metadata"].get("annotations", {}).get(VERSION_TIMES_ANNOTATION, ""))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Run a control plane on which all is installed, what is mutating as well."""
    with ControlPlane() as running:
        install(running, mutating=True)
        yield running


def test_what_ended_before_an_operator_stopped_goes_in_time_by_its_version_alone(
    plane: ControlPlane, tmp_path: Path
) -> None:
    jobs = Jobs(plane.api)
    worker, operators = FakeWorker(jobs), Operators(plane, jobs, tmp_path)
    finish(jobs, worker, "before")
    with operators.now() as operator:
        operator.until_leading(within=120)
        until(lambda: operators.noted, 20, "a sample")
    finish(jobs, worker, "after")
    with operators.later() as operator:
        operator.until_leading(within=120)
        until(lambda: not jobs.exists("before"), 30, "the removal")
        assert jobs.exists("after")  # nothing tells that it did not end just now
        assert not is_tracked(jobs, "after")
        assert "managedFields" not in operator.logs()


def test_a_worker_makes_no_job_older_than_it_is(plane: ControlPlane, tmp_path: Path) -> None:
    jobs = Jobs(plane.api)
    worker, operators = FakeWorker(jobs), Operators(plane, jobs, tmp_path)
    finish(jobs, worker, "before")
    with operators.now() as operator:
        operator.until_leading(within=120)
        until(lambda: operators.noted, 20, "a sample")
    jobs.create("forged")
    claimed = worker.claim("forged", started=LONG_AGO)
    forged = {"metadata": {"managedFields": [REPORT]}, "status": renewed(claimed)}
    as_worker = jobs.api.sending(as_pod(jobs.namespace, worker.pod, worker.pod_uid))
    as_worker.merge(job_status_path(jobs.namespace, "forged"), forged)
    worker.succeed("forged")
    assert not is_tracked(jobs, "forged")

    stolen = worker_client(plane, jobs, tmp_path)
    noted = {"metadata": {"annotations": {VERSION_TIMES_ANNOTATION: "999999999@1"}}}
    with pytest.raises(ApiStatusError, match=r"worker-lease\.election"):
        stolen.merge(f"{LEASES}/{jobs.namespace}/leases/{OPERATOR_LEASE}", noted)

    with operators.later() as operator:
        operator.until_leading(within=120)
        until(lambda: not jobs.exists("before"), 30, "the removal")
        assert jobs.exists("forged")


def test_a_job_from_before_an_upgrade_goes_by_the_fields_that_it_has(tmp_path: Path) -> None:
    with ControlPlane() as plane:
        needs(install(plane), MUTATING_POLICIES)
        jobs = Jobs(plane.api)
        worker, operators = FakeWorker(jobs), Operators(plane, jobs, tmp_path)
        jobs.create("running")
        worker.claim("running", lease=300)
        plane.kubectl("apply", f"--filename={ROOT / 'crds/mutating'}")
        until(lambda: not tries_tracked(jobs), 20, "the policy")
        worker.succeed("running")
        finish(jobs, worker, "new")
        assert (is_tracked(jobs, "running"), is_tracked(jobs, "new")) == (True, False)
        with operators.later() as operator:
            operator.until_leading(within=120)
            until(lambda: not jobs.exists("running"), 30, "the removal")
            assert jobs.exists("new")


def test_an_api_server_that_does_not_know_the_kind_works_as_before(tmp_path: Path) -> None:
    with ControlPlane(ControlPlaneOptions(apiserver_flags=BEFORE_1_36)) as plane:
        install(plane)
        jobs = Jobs(plane.api)
        worker, operators = FakeWorker(jobs), Operators(plane, jobs, tmp_path)
        with operators.now() as operator:
            operator.until_leading(within=120)
            assert "mutating" not in operator.logs().lower()
        finish(jobs, worker, "after")
        assert is_tracked(jobs, "after")
        with operators.later() as operator:
            operator.until_leading(within=120)
            until(lambda: not jobs.exists("after"), 30, "the removal")
