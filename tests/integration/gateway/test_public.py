"""The public contract: what it shows in every phase, and what it never shows."""

import json
import socket
from typing import Any

import httpx
import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, collection_path
from asyncjob.rest.jobs import PUBLIC_STATUS_BY_PHASE
from integration.gateway.conftest import Site
from support.objects.builders import at, cron_job

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SHOWN = {"jobId", "jobType", "status", "createdAt", "updatedAt"}
SECRET = "ssn-078-05-1120"
"""In all that a job can be given to keep."""

SPEC: dict[str, Any] = {
    "payload": {"ssn": SECRET},
    "request": {"headers": {"x-tenant": [SECRET]}},
    "idempotencyKey": SECRET,
    "concurrencyKey": SECRET,
    "traceparent": f"00-{SECRET}",
}


@pytest.mark.parametrize("phase", Phase)
def test_nothing_but_the_contract_is_shown_in_any_phase(
    site: Site, http: httpx.Client, phase: Phase
) -> None:
    name = f"shown-{phase.value.lower()}"
    life = site.life(name)
    life.create(**SPEC, **({"notBefore": at(9000)} if phase is Phase.SCHEDULED else {}))
    life.bring(phase)
    answer = http.get(f"/jobs/{name}")
    assert answer.status_code == 200
    assert answer.json().keys() == SHOWN
    assert answer.json()["jobId"] == name
    assert answer.json()["jobType"] == "test"
    assert answer.json()["status"] == PUBLIC_STATUS_BY_PHASE[phase]
    for hidden in (SECRET, site.worker.pod, site.worker.pod_uid, "attempt", "no luck", "hopeless"):
        assert hidden not in answer.text
    assert answer.headers["content-type"] == "application/json"
    full = http.get(f"/api/v1/jobs/{name}").json()
    assert full["payload"] == {"ssn": SECRET}
    assert full["history"][0]["phase"] == "Created"


def test_a_submission_answers_with_id_and_state_and_keeps_only_allowed_headers(
    site: Site, http: httpx.Client
) -> None:
    body = {"jobType": "SEND_EMAIL", "payload": {"to": "a"}, "idempotencyKey": "k-1"}
    secret = {"Authorization": "Bearer abc", "Cookie": "a=b", "X-Tenant": "blue", "X-Other": "no"}
    answer = http.post("/jobs", json=body, headers=secret)
    assert answer.status_code == 202
    assert answer.json() == {"jobId": answer.json()["jobId"], "status": "PENDING"}
    assert answer.headers["location"] == f"/jobs/{answer.json()['jobId']}"
    stored = site.life(answer.json()["jobId"]).read()["spec"]
    assert stored["type"] == "SEND_EMAIL"
    assert stored["request"] == {"headers": {"x-tenant": ["blue"]}}
    assert http.post("/jobs", json=body).json() == answer.json()
    by_header = {"jobType": "SEND_EMAIL", "payload": {"to": "a"}}
    again = http.post("/jobs", json=by_header, headers={"Idempotency-Key": "k-1"})
    assert again.json() == answer.json()
    both = http.post("/jobs", json=body, headers={"Idempotency-Key": "k-2"})
    assert both.json()["errors"][0]["field"] == "header.Idempotency-Key"


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/jobs", ["k-3", "k-4"]),
        ("/jobs", ["k-é".encode()]),
        ("/api/v1/jobs", ["k-é".encode("latin-1")]),
        ("/api/v1/jobs/batch", ["k-5"]),
    ],
)
def test_a_key_in_the_header_that_does_not_make_one_job_is_refused(
    http: httpx.Client, path: str, keys: list[str | bytes]
) -> None:
    public = path == "/jobs"
    body = {"jobType": "t"} if public else {"type": "t"}
    headers = [
        (b"Idempotency-Key", one if isinstance(one, bytes) else one.encode()) for one in keys
    ]
    answer = http.post(
        path, json={"jobs": [body]} if path.endswith("batch") else body, headers=headers
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "header.Idempotency-Key"


def test_what_is_not_http_is_told_as_a_problem_and_hung_up_on(http: httpx.Client) -> None:
    address = (http.base_url.host, http.base_url.port)
    for request in (b"NONSENSE\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"):
        with socket.create_connection(address, timeout=5) as connection:
            connection.sendall(request)
            said = b"".join(iter(lambda: connection.recv(4096), b""))
        head, _, body = said.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"content-type: application/problem+json" in head
        assert json.loads(body)["type"] == "/problems/not-http"


def test_what_is_not_there_is_not_there(http: httpx.Client) -> None:
    answer = http.get("/jobs/nobody")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/no-job")
    assert answer.headers["content-type"] == "application/problem+json"
    other = http.get("/jobs/nobody", params={"namespace": "kube-system"})
    assert (other.status_code, other.json()["type"]) == (404, "/problems/not-found")


def deep(levels: int) -> bytes:
    return b'{"jobType":"a","payload":' + b"[" * levels + b"]" * levels + b"}"


ENDLESS = b'{"jobType":"a","payload":' + b"[" * 10_000


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b'{"jobType":"a","payload":"' + b"x" * 10_000_000 + b'"}', 413, "too-large"),
        (b'{"jobType":"a","payload":"' + b"x" * 1_100_000 + b'"}', 422, "invalid"),
        (deep(100), 400, "malformed"),
        (deep(500), 400, "malformed"),
        (ENDLESS, 400, "malformed"),
        (b'{"jobType":"a","payload":NaN}', 400, "malformed"),
        (b'{"jobType":"a","payload":-Infinity}', 400, "malformed"),
        (b'{"jobType":"a","payload":1e999}', 400, "malformed"),
        (b'{"jobType":"a","payload":"\\ud800"}', 400, "malformed"),
        (b'{"jobType":"a","payload":{"\\udc00":1}}', 400, "malformed"),
        (b'{"jobType":"a","payload":"\xed\xa0\x80"}', 400, "malformed"),
        (b'{"jobType":"a","payload":18446744073709551616}', 400, "malformed"),
        (b"\xff\xfe{", 400, "malformed"),
        (b"", 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b"null", 422, "invalid"),
        (b'{"jobType":"no type","payload":1}', 422, "invalid"),
        (b'{"jobType":"a","jobtype":"b"}', 422, "invalid"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_bodies_that_are_no_submission_get_a_clear_refusal(
    http: httpx.Client, body: bytes, status: int, kind: str
) -> None:
    answer = http.post("/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{kind}")
    assert answer.json()["detail"]
    assert len(answer.content) < 4000


@pytest.mark.parametrize("body", [deep(100), deep(500), ENDLESS], ids=len)
def test_a_body_that_is_too_deep_is_told_so_with_the_limit(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["detail"].endswith("is nested deeper than 72 levels")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", ""],
)
def test_a_body_of_another_type_is_refused(http: httpx.Client, content_type: str) -> None:
    answer = http.post("/jobs", content=b'{"jobType":"a"}', headers={"Content-Type": content_type})
    assert (answer.status_code, answer.json()["type"]) == (415, "/problems/unsupported-media-type")


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/..%2f..%2fsecrets",
        "/jobs/%2e%2e",
        "/jobs/a%00b",
        "/jobs/a%0ab",
        "/jobs/UPPER",
        "/jobs/a?b=c",
        "/jobs/" + "a" * 254,
        "/jobs/%f0%28",
        "/jobs/a%3Fb",
        "/jobs/a%2fstatus",
        "/api/v1/queues/..%2fx",
        "/api/v1/cron-jobs/%2e%2e",
        "//jobs",
        "/jobs/",
    ],
)
def test_paths_that_try_tricks_get_a_clear_refusal(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code in {404, 422}
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_unknown_method_says_which_there_are(http: httpx.Client) -> None:
    answer = http.put("/jobs", json={})
    assert (answer.status_code, answer.json()["type"]) == (405, "/problems/method-not-allowed")
    assert answer.headers["allow"] == "POST"


def test_an_open_gateway_answers_no_page_of_another_site(
    http: httpx.Client,
) -> None:
    for headers in (
        {"Host": "rebound.example"},
        {"Host": "127.0.0.1.rebound.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        answer = http.post("/api/v1/queues/a/pause", headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/foreign-request")
    assert http.get("/api/v1/queues", headers={"Host": "localhost:1"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/api/v1/jobs", {"type": "t", "priority": "5"}, "priority"),
        ("POST", "/api/v1/jobs", {"type": "t", "retryPolicy": {"typo": 1}}, "retryPolicy.typo"),
        ("PATCH", "/api/v1/jobs/any", {"suspend": "no"}, "suspend"),
        ("POST", "/api/v1/jobs/redrive", {"limit": "5"}, "limit"),
        ("POST", "/api/v1/jobs?namespace=a&namespace=b", {"type": "t"}, "query.namespace"),
        ("GET", "/api/v1/jobs?limit=5&limit=6", None, "query.limit"),
        ("GET", "/api/v1/jobs?namespace=No_Name", None, "query.namespace"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_by_name(
    http: httpx.Client, method: str, path: str, body: object, field: str
) -> None:
    answer = http.request(method, path, json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid")
    assert [one["field"] for one in answer.json()["errors"]] == [field]


def test_what_is_said_in_one_way_is_taken(http: httpx.Client) -> None:
    assert http.post("/api/v1/jobs", json={"type": "t", "priority": 5.0}).status_code == 202
    listed = http.get("/api/v1/jobs", params={"phase": ["Queued", "Running"], "limit": "5"})
    assert listed.status_code == 200


def test_a_backfill_is_written_once_and_replaced_only_if_asked(
    site: Site, http: httpx.Client
) -> None:
    body = cron_job("past")
    site.space.admin.create(collection_path(site.space.name, CRON_JOBS), body).object()
    path = "/api/v1/cron-jobs/past/backfill"
    span = {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z", "maxActive": 3}
    for _ in range(2):
        done = http.post(path, json=span)
        assert done.status_code == 202, done.text
        assert done.json()["spec"]["backfill"] == {**span, "limit": 100}
    other = {**span, "to": "2020-01-03T00:00:00Z"}
    refused = http.post(path, json=other)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
    assert http.post(path, json={**other, "replace": True}).status_code == 202
    for wrong in ({**span, "to": "2019-01-01T00:00:00Z"}, {**span, "limit": "5"}, {"from": "x"}):
        assert http.post(path, json=wrong).status_code == 422
    assert http.post("/api/v1/cron-jobs/none/backfill", json=span).status_code == 404
