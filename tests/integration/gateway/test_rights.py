"""Who may do what: real tokens, real roles, and the API server's own authorisers."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import ARRAYS, CRON_JOBS, array_status_path, collection_path
from integration.gateway.conftest import Site
from support.cluster.api import Client
from support.cluster.identities import RBAC
from support.driven.jobs import until
from support.objects.builders import array, cron_job
from support.processes.gateway import GatewayProcess, caller, token_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

PAYLOAD = {"iban": "DE02120300000000202051"}
PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Callers:
    """A client for each kind of caller."""

    stranger: httpx.Client
    submitter: httpx.Client
    viewer: httpx.Client
    admin: httpx.Client
    approver: httpx.Client
    """Who may only send signals."""

    owner: httpx.Client
    """A submitter who may read one Secret."""


@pytest.fixture(scope="module")
def gateway(site: Site) -> Iterator[GatewayProcess]:
    with site.gateway("--auth-cache=0.2", "--max-streams-per-caller=1") as running:
        yield running.until_ready()


@pytest.fixture(scope="module")
def callers(site: Site, gateway: GatewayProcess) -> Iterator[Callers]:
    space = site.space
    for kind in ("secrets", "configmaps"):
        for name in ("mine", "theirs"):
            body = {"metadata": {"name": name}, "data": {}}
            space.admin.create(space.path(kind), body).object()
    read = {
        "apiGroups": [""],
        "resources": ["secrets", "configmaps"],
        "resourceNames": ["mine"],
        "verbs": ["get"],
    }
    create = {"apiGroups": ["asyncjob.dev"], "resources": ["asyncjobs"], "verbs": ["create"]}
    space.grant("owner", create, read)
    tokens = [
        caller(space, "stranger"),
        caller(space, "submitter", "asyncjob-job-submitter"),
        caller(space, "viewer", "asyncjob-job-viewer"),
        caller(space, "admin", "asyncjob-job-admin"),
        caller(space, "approver", "asyncjob-job-signaller"),
        space.as_account("owner").token,
    ]
    with ExitStack() as open_clients:
        yield Callers(*(open_clients.enter_context(gateway.client(token)) for token in tokens))


SUBMIT = ("POST", "/api/v1/jobs", {"type": "test", "payload": PAYLOAD})
PUBLIC = ("POST", "/jobs", {"jobType": "test"})
BATCH = ("POST", "/api/v1/jobs/batch", {"jobs": [{"type": "test"}]})
RULES: list[tuple[tuple[str, str, Any], set[str]]] = [
    (SUBMIT, {"submitter", "admin", "owner"}),
    (PUBLIC, {"submitter", "admin", "owner"}),
    (BATCH, {"submitter", "admin", "owner"}),
    (("GET", "/jobs/dead", None), {"submitter", "viewer", "admin", "approver"}),
    (("GET", "/api/v1/jobs", None), {"submitter", "viewer", "admin"}),
    (("GET", "/api/v1/jobs/dead", None), {"submitter", "viewer", "admin", "approver"}),
    (("GET", "/api/v1/jobs/dead/history", None), {"submitter", "viewer", "admin", "approver"}),
    (("GET", "/api/v1/jobs/done/result", None), {"admin"}),
    (("DELETE", "/api/v1/jobs/free", None), {"admin"}),
    (("PATCH", "/api/v1/jobs/free", {"priority": 3}), {"admin"}),
    (("POST", "/api/v1/jobs/free/signals/go", {"payload": 1}), {"approver"}),
    (("POST", "/api/v1/jobs/done/rerun", None), {"admin"}),
    (("POST", "/api/v1/jobs/dead/redrive", None), {"admin"}),
    (("POST", "/api/v1/jobs/lost/dismiss", None), {"admin"}),
    (("POST", "/api/v1/jobs/redrive", {"dryRun": True}), {"admin"}),
    (("POST", "/api/v1/jobs/dismiss", {"dryRun": True}), {"admin"}),
    (("GET", "/api/v1/queues", None), {"viewer", "admin"}),
    (("GET", "/api/v1/queues/default", None), {"viewer", "admin"}),
    (("POST", "/api/v1/queues/other/pause", None), {"admin"}),
    (("POST", "/api/v1/queues/other/resume", None), {"admin"}),
    (("GET", "/api/v1/workers", None), {"viewer", "admin"}),
    (("GET", "/api/v1/cron-jobs", None), {"viewer", "admin"}),
    (("GET", "/api/v1/cron-jobs/nightly", None), {"viewer", "admin"}),
    (("POST", "/api/v1/cron-jobs/nightly/trigger", None), {"admin"}),
    (
        (
            "POST",
            "/api/v1/cron-jobs/nightly/backfill",
            {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"},
        ),
        {"admin"},
    ),
    (("POST", "/api/v1/cron-jobs/nightly/suspend", None), {"admin"}),
    (("POST", "/api/v1/cron-jobs/nightly/resume", None), {"admin"}),
    (
        ("POST", "/api/v1/arrays", {"type": "test", "items": {"count": 1}}),
        {"submitter", "admin"},
    ),
    (("GET", "/api/v1/arrays", None), {"submitter", "viewer", "admin"}),
    (("GET", "/api/v1/arrays/thumbs", None), {"submitter", "viewer", "admin"}),
    (("GET", "/api/v1/arrays/thumbs/failed-items", None), {"submitter", "viewer", "admin"}),
    (("POST", "/api/v1/arrays/thumbs/suspend", None), {"admin"}),
    (("POST", "/api/v1/arrays/thumbs/resume", None), {"admin"}),
    (("POST", "/api/v1/arrays/thumbs/redrive", None), {"admin"}),
    (("POST", "/api/v1/arrays/thumbs/cancel", None), {"admin"}),
]

CUT = {
    "phase": "Running",
    "total": 2,
    "next": 2,
    "generation": 1,
    "open": [{"name": "thumbs-1", "items": "0-1", "generation": 1}],
}
FAILED = {
    "phase": "Failed",
    "open": None,
    "total": 2,
    "next": 2,
    "succeeded": 1,
    "failed": 1,
    "failedItems": "1",
    "completionTime": "2026-01-01T00:00:00Z",
    "conditions": [
        {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ],
}


@pytest.fixture(scope="module")
def jobs(site: Site) -> None:
    """Create jobs in the phases that the rules need."""
    for name, phase in (
        ("dead", Phase.DEAD_LETTER),
        ("lost", Phase.DEAD_LETTER),
        ("done", Phase.SUCCEEDED),
        ("free", Phase.QUEUED),
    ):
        life = site.life(name)
        life.create(payload=PAYLOAD)
        life.bring(phase)
    body = cron_job("nightly", payload=PAYLOAD)
    site.space.admin.create(collection_path(site.space.name, CRON_JOBS), body).object()
    items = {"inline": [PAYLOAD, PAYLOAD]}
    failed = array("thumbs", payload=PAYLOAD, items=items)
    site.space.admin.create(collection_path(site.space.name, ARRAYS), failed).object()
    path = array_status_path(site.space.name, "thumbs")
    for status in (CUT, FAILED):
        site.space.admin.merge(path, {"status": status}).object()


def _said(value: Any) -> str:
    return "-".join(value[:2]) if isinstance(value, tuple) else "-".join(sorted(value))


@pytest.mark.parametrize(("request_", "allowed"), RULES, ids=_said)
def test_each_route_takes_the_right_that_is_documented(
    callers: Callers,
    gateway: GatewayProcess,
    jobs: None,
    request_: tuple[str, str, Any],
    allowed: set[str],
) -> None:
    method, path, body = request_
    with gateway.client() as nobody:
        answer = nobody.request(method, path, json=body)
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    for name in ("stranger", "owner", "submitter", "viewer", "admin", "approver"):
        client: httpx.Client = getattr(callers, name)
        answer = client.request(method, path, json=body)
        if name in allowed:
            assert answer.status_code in {200, 202}, (name, answer.text)
        else:
            assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM), name
            assert "may not" in answer.json()["detail"]


def test_who_may_not_read_payloads_sees_none(callers: Callers, site: Site, jobs: None) -> None:
    seen = callers.viewer.get("/api/v1/jobs/done")
    assert seen.json()["payload"] is None
    assert seen.json()["result"] is None
    assert seen.json()["hasResult"] is True
    everything = (
        callers.viewer.get("/api/v1/jobs").text
        + callers.viewer.get("/api/v1/cron-jobs/nightly").text
        + callers.viewer.get("/api/v1/arrays").text
        + callers.viewer.get("/api/v1/arrays/thumbs").text
    )
    assert PAYLOAD["iban"] not in seen.text + everything
    assert callers.admin.get("/api/v1/jobs/done").json()["payload"] == PAYLOAD
    assert PAYLOAD["iban"] in callers.admin.get("/api/v1/cron-jobs/nightly").text
    assert PAYLOAD["iban"] in callers.admin.get("/api/v1/arrays/thumbs").text
    with callers.viewer.stream("GET", "/api/v1/jobs/done/events") as events:
        assert PAYLOAD["iban"] not in "".join(events.iter_text())


@pytest.mark.parametrize("kind", ["secretKeyRef", "configMapKeyRef"])
def test_a_payload_comes_only_from_where_the_caller_may_read(
    callers: Callers, site: Site, kind: str
) -> None:
    def submit(client: httpx.Client, name: str) -> httpx.Response:
        source = {kind: {"name": name, "key": "payload"}}
        return client.post("/api/v1/jobs", json={"type": "test", "payloadFrom": source})

    mine = submit(callers.owner, "mine")
    assert mine.status_code == 202, mine.text
    assert site.life(mine.json()["id"]).read()["spec"]["payloadFrom"][kind]["name"] == "mine"
    theirs = submit(callers.owner, "theirs")
    assert (theirs.status_code, theirs.headers["content-type"]) == (403, PROBLEM)
    assert "may not get" in theirs.json()["detail"]
    batch = {"jobs": [{"type": "t", "payloadFrom": {kind: {"name": "theirs", "key": "p"}}}]}
    [item] = callers.owner.post("/api/v1/jobs/batch", json=batch).json()["items"]
    assert item["error"]["status"] == 403
    # Neither may who controls jobs have another's secret read once more.
    again = callers.admin.post(f"/api/v1/jobs/{mine.json()['id']}/rerun")
    assert again.status_code == 403, again.text
    # The gateway itself may read neither.
    path = site.space.path("secrets" if kind == "secretKeyRef" else "configmaps")
    assert site.space.as_account("asyncjob-gateway").get(f"{path}/mine").status == 403


def test_a_schedule_that_reads_a_secret_is_triggered_only_by_who_may_read_it(
    callers: Callers, site: Site
) -> None:
    source = {"secretKeyRef": {"name": "theirs", "key": "payload"}}
    body = cron_job("from-secret", payloadFrom=source)
    site.space.admin.create(collection_path(site.space.name, CRON_JOBS), body).object()
    span = {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}
    for control, asked in (("trigger", None), ("backfill", span)):
        answer = callers.admin.post(f"/api/v1/cron-jobs/from-secret/{control}", json=asked)
        assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)


def test_a_bad_token_is_refused_and_one_for_another_audience_too(
    admin: Client, site: Site, gateway: GatewayProcess
) -> None:
    caller(site.space, "elsewhere", "asyncjob-job-viewer")
    foreign = token_for(admin, site.space, "elsewhere", audiences=["another"])
    for token in ("abc", "a.b.c", foreign, "x" * 20_000):
        with gateway.client(token) as client:
            answer = client.get("/api/v1/jobs")
        assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthenticated")
    with gateway.client() as client:
        basic = client.get("/api/v1/jobs", headers={"Authorization": "Basic YTpi"})
    assert basic.status_code == 401
    with site.gateway("--audience=another") as choosy:
        choosy.until_ready()
        with choosy.client(foreign) as client:
            assert client.get("/api/v1/jobs").status_code == 200
        with choosy.client(site.space.as_account("elsewhere").token) as client:
            assert client.get("/api/v1/jobs").status_code == 401


def test_a_caller_has_so_many_streams_and_no_more(callers: Callers) -> None:
    with callers.viewer.stream("GET", "/api/v1/events") as first:
        lines = first.iter_lines()  # kept: the stream ends with it
        assert next(lines) == ": following"
        second = callers.viewer.get("/api/v1/events")
        assert (second.status_code, second.json()["type"]) == (429, "/problems/throttled")
        assert int(second.headers["retry-after"]) >= 1


def test_a_stream_ends_once_its_right_is_withdrawn(
    callers: Callers, site: Site, gateway: GatewayProcess
) -> None:
    token = caller(site.space, "leaving", "asyncjob-job-viewer")
    with gateway.client(token) as client, client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": following"
        reader = threading.Thread(target=lambda: list(lines))
        reader.start()
        site.space.admin.delete(site.space.path("rolebindings", RBAC) + "/leaving")

        def ended() -> bool:
            callers.submitter.post("/api/v1/jobs", json={"type": "unseen"})
            return not reader.is_alive()

        until(ended, 15, "the end of the stream")


def test_an_open_gateway_starts_on_loopback_only(site: Site) -> None:
    with site.gateway("--open", "--host=0.0.0.0") as refused:
        assert refused.process
        assert refused.process.wait(30) == 1
        assert "an open gateway may only listen on loopback" in refused.log.read_text()
