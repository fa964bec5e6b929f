"""What whoever applies, edits and asks meets: the same whether or not other jobs are tracked."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob.names import JOBS, collection_path, job_path
from asyncjob_dev.api import Object
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.installation import install
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

DROPPED, KEPT = "dropped", "kept"


@pytest.fixture(scope="module", params=[DROPPED, KEPT])
def others(request: pytest.FixtureRequest) -> str:
    """Say what becomes of the managedFields of jobs that nobody applies."""
    return str(request.param)


@pytest.fixture(scope="module")
def plane(others: str) -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        install(running, mutating=others == DROPPED)
        yield running


@pytest.fixture
def jobs(plane: ControlPlane) -> Jobs:
    return Jobs(plane.api)


@pytest.fixture
def worker(jobs: Jobs) -> FakeWorker:
    return FakeWorker(jobs)


class Kubectl:
    """kubectl in a test's namespace; returns what it complains about."""

    def __init__(self, plane: ControlPlane, jobs: Jobs) -> None:
        self._plane, self._jobs = plane, jobs

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        where = f"--namespace={self._jobs.namespace}"
        done = self._plane.kubectl(*arguments, where, input=given, check=False)
        return "" if done.returncode == 0 else done.stderr

    def apply(self, name: str, *flags: str, **spec: Any) -> str:
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name},
            "spec": {"type": "test", **spec},
        }
        return self("apply", *flags, "--filename=-", given=json.dumps(body))

    def patch(self, name: str, **spec: Any) -> str:
        return self("patch", "asyncjob", name, "--type=merge", "-p", json.dumps({"spec": spec}))


@pytest.fixture
def kubectl(plane: ControlPlane, jobs: Jobs) -> Kubectl:
    return Kubectl(plane, jobs)


SERVER_SIDE = ("--server-side", "--field-manager=gitops")


def owners(jobs: Jobs, name: str) -> set[str]:
    """Return who owns fields of the job."""
    return {one["manager"] for one in jobs.get(name)["metadata"].get("managedFields", ())}


def spec_of(jobs: Jobs, name: str) -> Object:
    spec: Object = jobs.get(name)["spec"]
    return spec


def test_a_job_that_nobody_applies_is_tracked_throughout_its_life_or_never(
    jobs: Jobs, worker: FakeWorker, kubectl: Kubectl, others: str
) -> None:
    tracked = []
    jobs.create("plain")
    tracked.append(owners(jobs, "plain"))
    assert kubectl.patch("plain", suspend=True) == ""
    assert kubectl.patch("plain", suspend=False, priority=3) == ""
    tracked.append(owners(jobs, "plain"))
    worker.claim("plain")
    worker.renew("plain")
    tracked.append(owners(jobs, "plain"))
    worker.succeed("plain")
    assert kubectl("label", "asyncjob", "plain", "a=b") == ""
    tracked.append(owners(jobs, "plain"))
    assert [bool(found) for found in tracked] == [others == KEPT] * 4
    assert jobs.status("plain")["phase"] == "Succeeded"
    assert spec_of(jobs, "plain")["priority"] == 3


def test_a_job_applied_by_the_client_keeps_what_is_asked_for_beside(
    jobs: Jobs, kubectl: Kubectl
) -> None:
    assert kubectl.apply("mine", priority=1) == ""
    assert owners(jobs, "mine") == {"kubectl-client-side-apply"}
    assert kubectl.patch("mine", suspend=True) == ""
    assert kubectl.apply("mine", priority=2) == ""
    assert (spec_of(jobs, "mine")["priority"], spec_of(jobs, "mine")["suspend"]) == (2, True)
    assert kubectl.apply("mine") == ""  # what is no longer in the file goes back to its default
    assert (spec_of(jobs, "mine")["priority"], spec_of(jobs, "mine")["suspend"]) == (0, True)


def test_who_goes_over_to_the_servers_side_meets_no_conflict_with_what_was_theirs(
    jobs: Jobs, kubectl: Kubectl
) -> None:
    assert kubectl.apply("mine", priority=1) == ""
    assert kubectl.apply("mine", "--server-side", priority=2) == ""
    assert spec_of(jobs, "mine")["priority"] == 2


def test_a_conflict_is_told_to_who_applies_on_the_servers_side(
    jobs: Jobs, kubectl: Kubectl
) -> None:
    assert kubectl.apply("mine", *SERVER_SIDE, priority=1) == ""
    assert kubectl.patch("mine", priority=5) == ""
    refused = kubectl.apply("mine", *SERVER_SIDE, priority=1)
    assert 'conflict with "kubectl-patch"' in refused
    assert ".spec.priority" in refused
    assert spec_of(jobs, "mine")["priority"] == 5
    assert kubectl.apply("mine", *SERVER_SIDE, "--force-conflicts", priority=1) == ""
    assert spec_of(jobs, "mine")["priority"] == 1


def test_a_controller_that_applies_again_and_again_changes_nothing_and_takes_nothing_back(
    jobs: Jobs, worker: FakeWorker, kubectl: Kubectl
) -> None:
    once = {"maxRetries": 0}
    for name in ("run", "cancelled"):
        assert kubectl.apply(name, *SERVER_SIDE, retryPolicy=once) == ""
    made = jobs.get("run")
    assert kubectl.apply("run", *SERVER_SIDE, retryPolicy=once) == ""
    assert [jobs.get("run")[part] for part in ("spec", "status")] == [made["spec"], made["status"]]
    assert kubectl.patch("cancelled", cancel=True, suspend=True, priority=4) == ""
    worker.claim("run")
    worker.renew("run")
    assert kubectl.apply("run", *SERVER_SIDE, retryPolicy=once) == ""
    worker.fail("run")
    assert kubectl.patch("run", redrive=1) == ""
    for name in ("run", "cancelled"):
        assert kubectl.apply(name, *SERVER_SIDE, retryPolicy=once) == ""
    assert (jobs.status("run")["phase"], spec_of(jobs, "run")["redrive"]) == ("DeadLetter", 1)
    asked = spec_of(jobs, "cancelled")
    assert (asked["cancel"], asked["suspend"], asked["priority"]) == (True, True, 4)
    assert "gitops" in owners(jobs, "run") & owners(jobs, "cancelled")


def test_a_job_can_be_edited(jobs: Jobs, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/priority:.0/priority:\\ 7/")
    jobs.create("plain")
    assert kubectl.apply("applied", *SERVER_SIDE) == ""
    for name in ("plain", "applied"):
        assert kubectl("edit", "asyncjob", name) == ""
        assert spec_of(jobs, name)["priority"] == 7
    assert "kubectl-edit" in owners(jobs, "applied")


def test_who_first_applies_a_job_that_others_made_meets_a_conflict_where_it_differs(
    jobs: Jobs, worker: FakeWorker, kubectl: Kubectl, others: str
) -> None:
    jobs.create("plain", priority=3)
    [before] = owners(jobs, "plain") or {"before-first-apply"}
    assert (before == "before-first-apply") is (others == DROPPED)
    assert kubectl.apply("plain", *SERVER_SIDE, priority=3) == ""
    refused = kubectl.apply("plain", *SERVER_SIDE, priority=4)
    assert f'conflict with "{before}"' in refused
    assert kubectl.apply("plain", *SERVER_SIDE, "--force-conflicts", priority=4) == ""
    worker.claim("plain")
    worker.succeed("plain")
    assert jobs.status("plain")["phase"] == "Succeeded"
    assert "gitops" in owners(jobs, "plain")


def test_no_managed_fields_that_are_sent_along_keep_a_job_from_being_created_or_run(
    jobs: Jobs, worker: FakeWorker
) -> None:
    forged = {
        "manager": "forger",
        "operation": "Apply",
        "apiVersion": "asyncjob.dev/v1alpha1",
        "time": "1970-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {}},
        "subresource": "status",
    }
    unknown = {**forged, "operation": "Update", "apiVersion": "asyncjob.dev/v9"}
    for number, told in enumerate(([forged], [unknown], [{}])):
        name = f"job-{number}"
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name, "managedFields": told},
            "spec": {"type": "test"},
        }
        jobs.api.create(collection_path(jobs.namespace, JOBS), body)
        worker.claim(name)
        worker.succeed(name)
        entries = jobs.api.get(job_path(jobs.namespace, name))["metadata"].get("managedFields", ())
        reports = [one["time"] for one in entries if one.get("subresource") == "status"]
        assert not [time for time in reports if time < "2000"]
