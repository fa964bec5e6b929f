"""Handlers that wait for a signal, with a worker, an operator and a real API server."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob.client import KubernetesJobsClient
from asyncjob.client.errors import JobStateError, NotAllowedError
from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.processes.operator import own_operator
from support.processes.workers import WorkerNamespace, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

APP = "support.apps.stepped:app"
KINDS = ["told", "told-sync", "told-isolated"]


@pytest.fixture(scope="module")
def woken(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerNamespace]:
    """Prepare a namespace with a worker and an operator for it alone, whose Lease lies there."""
    folder = tmp_path_factory.mktemp("signals")
    with worker_namespace(control_plane, folder) as prepared, own_operator(prepared):
        prepared.worker("worker-0", "--concurrency=4", app=APP)
        yield prepared


@pytest.fixture(scope="module")
def admin(woken: WorkerNamespace) -> str:
    """Return what the API server calls the administrator, who sends most signals here."""
    answer = woken.plane.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    return answer.stdout


def send(ns: WorkerNamespace, name: str, payload: Any, by: str) -> None:
    """Send a signal as kubectl does."""
    ns.patch(name, {"spec": {"signals": {"go": {"payload": payload, "sentBy": by}}}})


def until_waiting(ns: WorkerNamespace, name: str) -> Any:
    return ns.until_status(name, lambda status: "waiting" in status)


@pytest.mark.parametrize("type_", KINDS)
def test_a_signal_after_the_park_wakes_the_job(
    woken: WorkerNamespace, admin: str, type_: str
) -> None:
    name = f"after-{type_}"
    woken.create(name, type_)
    parked = until_waiting(woken, name)
    assert (parked["phase"], parked["reason"]) == ("Pending", "WaitingForSignal")
    assert parked["waiting"] == [{"kind": "Signal", "key": "go"}]
    assert not {"lease", "waits", "history"} & {*parked}
    send(woken, name, {"ok": True}, admin)
    status = woken.until_phase(name, "Succeeded", within=30)
    assert status["result"] == {"told": {"ok": True}, "by": admin, "attempt": 1}
    assert (status.get("parks", 0), status["attempt"], status.get("retries", 0)) == (1, 2, 0)
    assert woken.trace(f"first {name}") == [f"first {name} 1"]
    assert len(woken.trace(f"second {name}")) == 1


def test_a_process_of_its_own_says_what_its_handler_takes(
    woken: WorkerNamespace, admin: str
) -> None:
    woken.create("typed", "approved-isolated")
    parked = until_waiting(woken, "typed")
    assert parked["waiting"] == [
        {"kind": "Signal", "key": "go", "payloadSchema": {"type": "boolean"}}
    ]
    send(woken, "typed", payload=False, by=admin)
    assert woken.until_phase("typed", "Succeeded", within=30)["result"] is False


@pytest.mark.parametrize("type_", KINDS)
def test_a_signal_that_comes_early_costs_no_park(
    woken: WorkerNamespace, admin: str, type_: str
) -> None:
    name = f"early-{type_}"
    woken.create(name, type_, 3600, suspend=True)
    send(woken, name, 7, admin)
    woken.patch(name, {"spec": {"suspend": False}})
    status = woken.until_phase(name, "Succeeded", within=30)
    assert status["result"] == {"told": 7, "by": admin, "attempt": 1}
    assert status.get("parks", 0) == 0


@pytest.mark.parametrize("type_", KINDS)
def test_a_signal_that_does_not_come_raises_and_is_refused_from_then_on(
    woken: WorkerNamespace, admin: str, type_: str
) -> None:
    name = f"late-{type_}"
    woken.create(name, type_, 3)
    parked = until_waiting(woken, name)
    assert parked["waits"]["go"]["until"] == parked["waiting"][0]["until"]
    status = woken.until_phase(name, "Succeeded", within=30)
    assert status["result"] == "late: signal 'go' has not come in time"
    assert (status["waits"]["go"]["over"], status.get("parks", 0)) == (True, 1)
    assert woken.trace(f"second {name}") == []


def test_a_wait_is_three_writes_more_than_none(woken: WorkerNamespace, admin: str) -> None:
    woken.create("warm", "many", {"steps": 0, "size": 1})
    woken.until_phase("warm", "Succeeded")
    before = woken.writes()
    woken.create("counted", "told")
    until_waiting(woken, "counted")
    send(woken, "counted", None, admin)
    woken.until_phase("counted", "Succeeded", within=30)
    # create; claim, step, park, promote, claim, step, complete; the signal
    assert woken.writes() - before == Counter(
        {"POST  201": 1, "PATCH status 200": 7, "PATCH  200": 1}
    )


def test_a_job_that_waits_is_cancelled_where_it_stands(woken: WorkerNamespace) -> None:
    woken.create("unwanted", "told")
    until_waiting(woken, "unwanted")
    woken.cancel("unwanted")
    status = woken.until_phase("unwanted", "Cancelled")
    assert "waiting" not in status
    assert [entry["phase"] for entry in status["history"]] == ["Cancelled"]
    assert woken.trace("second unwanted") == []


def test_kubectl_alone_is_enough(woken: WorkerNamespace, admin: str) -> None:
    woken.create("by-hand", "told")
    until_waiting(woken, "by-hand")
    words = ("patch", "asyncjob", "by-hand", "-n", woken.namespace, "--type=merge", "-p")
    body = '{"spec": {"signals": {"go": {"payload": "now", "sentBy": "%s"}}}}'
    woken.plane.kubectl(*words, body % admin)
    assert woken.until_phase("by-hand", "Succeeded", within=30)["result"]["told"] == "now"


def test_a_client_sends_in_its_own_name_and_nobody_in_anothers(woken: WorkerNamespace) -> None:
    plane = woken.plane
    space = Space(woken.namespace, Client(plane.url, plane.ca_file, plane.admin_token))
    space.account("approver")
    space.bind("approver", "asyncjob-job-signaller")
    approver = space.as_account("approver")
    woken.create("approved", "told")
    until_waiting(woken, "approved")
    path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{woken.namespace}/asyncjobs/approved"
    forged = {"spec": {"signals": {"go": {"payload": 1, "sentBy": "somebody-else"}}}}
    refused = approver.merge(path, forged)
    assert refused.status == 403
    assert "(signal.sender)" in refused.message
    who = f"system:serviceaccount:{woken.namespace}:approver"
    assert f"sentBy must be {who}" in refused.message
    assert approver.merge(path, {"spec": {"cancel": True}}).status == 403

    with KubernetesJobsClient.connect(str(_kubeconfig(woken, approver.token))) as jobs:
        jobs.signal("approved", "go", {"ok": True})
        status = woken.until_phase("approved", "Succeeded", within=30)
        assert status["result"]["by"] == who
        with pytest.raises(JobStateError, match="has been sent go by"):
            jobs.signal("approved", "go", {"ok": False})
    space.account("stranger")
    token = space.as_account("stranger").token
    with (
        KubernetesJobsClient.connect(str(_kubeconfig(woken, token))) as jobs,
        pytest.raises(NotAllowedError, match="asyncjobs"),
    ):
        jobs.signal("approved", "more")


def _kubeconfig(ns: WorkerNamespace, token: str) -> Path:
    path = ns.folder / "approver-kubeconfig"
    api, user = ns.api, {"token": token}
    write_kubeconfig(
        path, url=api.url, ca_file=api.ca_file, user=user, namespace=ns.namespace, name="approver"
    )
    return path


def test_without_a_leader_that_wakes_the_slot_is_held_and_the_signal_is_looked_for(
    control_plane: ControlPlane, tmp_path: Path, admin: str
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns:
        ns.worker("worker-0", app=APP)
        ns.create("held", "told", 3600)
        running = ns.until_status("held", lambda status: "go" in status.get("waits", {}))
        assert running["phase"] == "Running"
        send(ns, "held", "now", admin)
        status = ns.until_phase("held", "Succeeded", within=30)
        assert (status.get("parks", 0), status["attempt"], status["result"]["told"]) == (
            0,
            1,
            "now",
        )
