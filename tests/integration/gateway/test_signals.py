"""Signals through the gateway: in whose name, for which job, and in which words it refuses."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.signals import MAX_SIGNAL_BYTES
from integration.gateway.conftest import Site
from support.driven.lives import waiting_for_approval
from support.processes.gateway import GatewayProcess, caller

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

Answer = tuple[int, str, str]


@pytest.fixture(scope="module")
def gateway(site: Site) -> Iterator[GatewayProcess]:
    with site.gateway("--auth-cache=0.2") as running:
        yield running.until_ready()


@pytest.fixture(scope="module")
def approver(site: Site, gateway: GatewayProcess) -> Iterator[httpx.Client]:
    token = caller(site.space, "approver", "asyncjob-job-signaller")
    with gateway.client(token) as client:
        yield client


@pytest.fixture(scope="module")
def job(site: Site) -> str:
    site.life("release").create()
    return "release"


def send(client: httpx.Client, job: str, name: str, payload: Any = None, **more: Any) -> Answer:
    """Send a signal and return code, kind of problem and words."""
    body = {"payload": payload, **more}
    answer = client.post(f"/api/v1/jobs/{job}/signals/{name}", json=body)
    said = answer.json()
    return answer.status_code, said.get("type", ""), answer.text


def stored(site: Site, job: str) -> Any:
    return site.life(job).read()["spec"].get("signals", {})


def test_a_signal_is_stored_in_the_callers_name(
    site: Site, approver: httpx.Client, job: str
) -> None:
    path = f"/api/v1/jobs/{job}/signals/approval"
    payload = {"ok": True, "none": None}
    told = approver.post(path, json={"payload": payload})
    assert told.status_code == 200, told.text
    who = f"system:serviceaccount:{site.space.name}:approver"
    [signal] = told.json()["signals"]
    assert (signal["name"], signal["sentBy"]) == ("approval", who)
    assert "payload" not in signal or signal["payload"] is None
    assert stored(site, job)["approval"]["sentBy"] == who
    assert stored(site, job)["approval"]["payload"] == payload
    again = approver.post(path, json={"payload": payload})
    assert again.status_code == 200
    seen = site.space.admin.get(site.life(job).path).object()["metadata"]["generation"]
    assert seen == 2


def test_a_signal_of_the_same_name_is_refused_and_says_who_sent_the_first(
    site: Site, approver: httpx.Client, job: str
) -> None:
    send(approver, job, "twice", 1)
    status, kind, words = send(approver, job, "twice", 2)
    assert (status, kind) == (409, "/problems/conflict")
    assert "has been sent twice by" in words
    assert ":approver: a signal is never changed" in words
    assert stored(site, job)["twice"]["payload"] == 1


@pytest.mark.parametrize(
    ("name", "payload", "field"),
    [
        ("no%20name", 1, "signal"),
        ("-x", 1, "signal"),
        ("x" * 64, 1, "signal"),
        ("large", "x" * MAX_SIGNAL_BYTES, "payload"),
    ],
)
def test_what_no_signal_can_be_is_refused_by_its_field(
    site: Site, approver: httpx.Client, job: str, name: str, payload: Any, field: str
) -> None:
    before = stored(site, job)
    status, kind, words = send(approver, job, name, payload)
    assert (status, kind) == (422, "/problems/invalid"), words
    assert field in words
    assert stored(site, job) == before


def test_an_unknown_field_is_refused(approver: httpx.Client, job: str) -> None:
    status, _, words = send(approver, job, "approval", sentBy="somebody else")
    assert status == 422
    assert "sentBy" in words


def test_a_signal_with_a_uid_is_for_that_job_and_no_other_of_its_name(
    site: Site, approver: httpx.Client, job: str
) -> None:
    uid = site.life(job).read()["metadata"]["uid"]
    assert send(approver, job, "for-one", 1, uid=uid)[0] == 200
    status, kind, words = send(approver, job, "for-other", 1, uid="u" * 36)
    assert (status, kind) == (409, "/problems/conflict"), words
    assert f"job {job} is another job now" in words
    assert "for-other" not in stored(site, job)
    assert send(approver, job, "for-other", 1, uid="")[0] == 422


def test_an_unknown_job_a_finished_one_and_one_that_no_longer_waits(
    site: Site, approver: httpx.Client
) -> None:
    status, kind, words = send(approver, "nobody", "approval")
    assert (status, kind) == (404, "/problems/no-job"), words
    done = site.life("done")
    done.create()
    done.bring(Phase.SUCCEEDED)
    status, kind, words = send(approver, "done", "approval")
    assert (status, kind) == (409, "/problems/conflict")
    assert "job done is Succeeded: it takes no signals" in words
    late = site.life("late")
    late.create()
    late.bring(Phase.RUNNING)
    over = {"approval": {"kind": "Signal", "until": "2026-01-01T00:00:00Z", "over": True}}
    added = [{"op": "add", "path": "/status/waits", "value": over}]
    site.worker.client.patch(late.status_path, added).object()
    status, kind, words = send(approver, "late", "approval")
    assert (status, kind) == (409, "/problems/conflict")
    assert "no longer waits for approval" in words


def test_a_right_for_one_job_is_for_that_job_alone(site: Site, gateway: GatewayProcess) -> None:
    for name in ("mine", "theirs"):
        life = site.life(name)
        life.create()
        life.bring(Phase.RUNNING)
        life.move(waiting_for_approval, site.worker.client).object()
    one = {
        "apiGroups": ["asyncjob.dev"],
        "resources": ["asyncjobs"],
        "resourceNames": ["mine"],
        "verbs": ["signal", "get"],
    }
    site.space.grant("one-job", one)
    with gateway.client(site.space.as_account("one-job").token) as client:
        assert send(client, "mine", "approval", 1)[0] == 200
        status, kind, words = send(client, "theirs", "approval", 1)
    assert (status, kind) == (403, "/problems/forbidden")
    assert "one-job may not" in words
    assert "theirs" in words
    assert stored(site, "theirs") == {}


def test_who_may_control_but_not_signal_is_refused(
    site: Site, gateway: GatewayProcess, approver: httpx.Client
) -> None:
    site.life("decided").create()
    assert send(approver, "decided", "approval", 1)[0] == 200
    with gateway.client(caller(site.space, "chief", "asyncjob-job-admin")) as client:
        status, kind, words = send(client, "decided", "chief", 1)
        assert (status, kind) == (403, "/problems/forbidden")
        assert "send it signals" in words
        assert client.get("/api/v1/jobs/decided").json()["signals"][0]["payload"] == 1


def test_an_open_gateway_sends_in_its_own_name_for_everyone(
    site: Site, http: httpx.Client, job: str
) -> None:
    assert send(http, job, "open", 1)[0] == 200
    assert stored(site, job)["open"]["sentBy"]
