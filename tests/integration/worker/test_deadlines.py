"""Jobs whose deadline passes, with a worker, an operator and a real API server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob.client import KubernetesJobsClient
from asyncjob.client.errors import JobStateError
from asyncjob.names import JOBS
from asyncjob_dev.controlplane import ControlPlane
from support.processes.operator import own_operator
from support.processes.workers import WorkerNamespace, until, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

APP = "support.apps.stepped:app"
LONG = 3600


@pytest.fixture(scope="module")
def limited(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerNamespace]:
    """Prepare a namespace with a worker and an operator for it alone, whose Lease lies there."""
    folder = tmp_path_factory.mktemp("deadlines")
    with worker_namespace(control_plane, folder) as prepared, own_operator(prepared):
        prepared.worker("worker-0", "--concurrency=4", app=APP)
        yield prepared


def until_ended(ns: WorkerNamespace, name: str) -> Any:
    """Return the status of the job once it is cancelled for its deadline."""
    status = ns.until_phase(name, "Cancelled", within=40)
    assert status["reason"] == "DeadlineExceeded"
    assert not {"lease", "waiting", "admitted"} & {*status}
    entry = status["history"][-1]
    assert (entry["phase"], entry["reason"]) == ("Cancelled", "DeadlineExceeded")
    return status


def traces_of(ns: WorkerNamespace, name: str) -> list[str]:
    return [line.split()[0] for line in ns.trace() if line.split()[1] == name]


def test_the_handler_of_a_running_job_is_stopped_and_its_holder_ends_it(
    limited: WorkerNamespace,
) -> None:
    limited.create("running", "tidy", LONG, deadlineSeconds=3)
    limited.until_phase("running", "Running")
    status = until_ended(limited, "running")
    assert traces_of(limited, "running") == ["begun", "tidied"]
    assert status["history"][-1]["worker"].startswith("worker-0/")
    assert status["message"] == "not finished within deadlineSeconds, 3 s from its creation"
    assert (status.get("retries", 0), status.get("crashes", 0), status.get("releases", 0)) == (
        0,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("type_", "payload", "phase"), [("sleeping", LONG, "Scheduled"), ("told", None, "Pending")]
)
def test_a_parked_job_ends_where_it_stands_and_runs_no_code(
    limited: WorkerNamespace, type_: str, payload: Any, phase: str
) -> None:
    name = f"parked-{type_}"
    limited.create(name, type_, payload, deadlineSeconds=6)
    limited.until_phase(name, phase)
    before = traces_of(limited, name)
    status = until_ended(limited, name)
    assert (status.get("parks", 0), status["attempt"]) == (1, 1)
    assert traces_of(limited, name) == before


def test_a_pending_a_scheduled_and_a_queued_job_end_without_having_run(
    limited: WorkerNamespace,
) -> None:
    limited.create("suspended", "tidy", 0, suspend=True, deadlineSeconds=2)
    limited.create("later", "tidy", 0, notBefore="2999-01-01T00:00:00Z", deadlineSeconds=2)
    limited.create("unknown", "nobody-knows-it", deadlineSeconds=2)
    for name in ("suspended", "later", "unknown"):
        assert until_ended(limited, name)["attempt"] == 0
        assert traces_of(limited, name) == []


def test_a_job_that_waits_for_its_next_attempt_ends_before_that(limited: WorkerNamespace) -> None:
    policy = {"initialDelaySeconds": LONG, "maxDelaySeconds": LONG}
    limited.create("again", "stumbles", retryPolicy=policy, deadlineSeconds=4)
    limited.until_phase("again", "Retrying")
    status = until_ended(limited, "again")
    assert not {"nextAttemptTime", "retryDelaySeconds"} & {*status}


def test_a_dead_letter_past_its_deadline_is_refused_a_redrive_in_words(
    limited: WorkerNamespace,
) -> None:
    limited.create("dead", "fails", None, deadlineSeconds=12)
    limited.until_phase("dead", "DeadLetter")
    limited.patch("dead", {"spec": {"redrive": 1}})
    limited.until_status(
        "dead", lambda status: status.get("redrives", 0) == 1 and status["phase"] == "DeadLetter"
    )
    assert traces_of(limited, "dead") == ["failed", "failed"]

    kubeconfig, namespace = str(limited.plane.kubeconfig), limited.namespace
    with KubernetesJobsClient.connect(kubeconfig, namespace=namespace) as client:
        deadline = str(client.get("dead").deadline_at)
        until(lambda: plane_time(limited) > deadline, 20, lambda: "the deadline passes")
        with pytest.raises(JobStateError, match=f"its deadline passed at {deadline}"):
            client.redrive("dead")
    limited.patch("dead", {"spec": {"redrive": 2}})

    def refusal() -> list[str]:
        events = limited.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        return [one["message"] for one in events if one["reason"] == "RedriveRefused"]

    messages = until(refusal, 20, lambda: "an event")
    assert messages == [f"not redriven: the deadline of the job passed at {deadline}"]
    status = limited.status("dead")
    assert (status["phase"], status.get("redrives", 0)) == ("DeadLetter", 1)
    limited.cancel("dead")
    assert limited.until_phase("dead", "Cancelled")["reason"] == "Dismissed"


def plane_time(ns: WorkerNamespace) -> str:
    """Return the time that the API server gives to what is created now."""
    path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{ns.namespace}/{JOBS}?dryRun=All"
    body = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {"name": "clock"},
        "spec": {"type": "clock"},
    }
    created: str = ns.api.create(path, body)["metadata"]["creationTimestamp"]
    return created


def test_the_operator_ends_a_job_whose_worker_was_killed(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns, own_operator(ns):
        worker = ns.worker("worker-0", app=APP)
        ns.create(
            "lost", "tidy", LONG, deadlineSeconds=3, leaseDurationSeconds=600,
            cancelGraceSeconds=1,
        )  # fmt: skip
        ns.until_trace("begun lost 1")
        worker.kill()
        status = until_ended(ns, "lost")
        assert ns.trace() == ["begun lost 1"]
        assert status.get("crashes", 0) <= 1
