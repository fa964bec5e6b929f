"""The same request of two runs has the same name, whatever their UIDs are."""

import pytest

from asyncjob_perturbation.calls import Call, CallCounter, describe, is_write, may_be_past

JOBS = "/apis/asyncjob.dev/v1alpha1/namespaces/retry-worker-3/asyncjobs"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "what"),
    [
        ("GET", JOBS, "limit=500", b"", "LIST asyncjobs"),
        ("GET", JOBS, "watch=1&resourceVersion=7", b"", "WATCH asyncjobs"),
        ("GET", f"{JOBS}/plain", "", b"", "GET asyncjobs/plain"),
        ("POST", JOBS, "", b"{}", "POST asyncjobs"),
        ("PATCH", f"{JOBS}/a", "dryRun=All", b"{}", "PATCH asyncjobs/a dry run"),
        ("POST", REVIEWS, "", b"{}", "POST selfsubjectaccessreviews"),
        ("GET", "/api/v1/namespaces/a/pods", "", b"", "LIST pods"),
        ("DELETE", "/api/v1/namespaces/a/pods/p", "", b"", "DELETE pods/p"),
        ("GET", "/api/v1/namespaces", "", b"", "LIST namespaces"),
        (
            "PATCH",
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/w-12345678-1234-abcd",
            "",
            b"{}",
            "PATCH leases/w-*",
        ),
    ],
)
def test_a_request_is_named_by_what_it_asks_for(
    method: str, path: str, query: str, body: bytes, what: str
) -> None:
    assert describe(method, path, query, body) == what


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"status": {"phase": "Running", "attempt": 1}}', " Running"),
        (b'[{"op": "replace", "path": "/status/phase", "value": "Succeeded"}]', " Succeeded"),
        (b'[{"op": "add", "path": "/status", "value": {"phase": "Retrying"}}]', " Retrying"),
        (b'[{"op": "test", "path": "/status/phase", "value": "Running"}]', ""),
        (b'[{"op": "add", "path": "/status/steps", "value": {"a": {}}}]', " step a"),
        (b'[{"op": "add", "path": "/status/steps/b", "value": {}}]', " step b"),
        (b'[{"op": "add", "path": "/status/waits/go", "value": {}}]', " wait go"),
        (b'{"status": {"progress": {"percent": 7}}}', ""),
        (b"{", ""),
    ],
)
def test_a_patch_is_named_by_the_phase_that_it_writes(body: bytes, words: str) -> None:
    assert describe("PATCH", f"{JOBS}/plain/status", "", body) == (
        f"PATCH asyncjobs/plain/status{words}"
    )


def test_like_requests_are_told_apart_by_number() -> None:
    counter = CallCounter()
    calls = [counter.next(what) for what in ("LIST pods", "LIST leases", "LIST pods")]
    assert calls == [Call("LIST pods", 1), Call("LIST leases", 1), Call("LIST pods", 2)]
    assert str(calls[2]) == "LIST pods #2"


@pytest.mark.parametrize(
    ("what", "writes"),
    [
        ("PATCH asyncjobs/plain/status Running", True),
        ("DELETE leases/w", True),
        ("LIST pods", False),
        ("WATCH pods", False),
        ("GET asyncjobs/plain", False),
        ("POST selfsubjectaccessreviews", False),
        ("PATCH asyncjobs/a dry run", False),
    ],
)
def test_reviews_of_rights_and_reads_write_nothing(what: str, writes: bool) -> None:
    assert is_write(Call(what, 1)) is writes


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersion=0",
        "resourceVersion=0&watch=1",
        "watch=1",
        "resourceVersion=71",
        "resourceVersion=71&resourceVersionMatch=NotOlderThan",
        "watch=true&sendInitialEvents=true&resourceVersion=0&resourceVersionMatch=NotOlderThan",
    ],
)
def test_what_a_lagging_api_server_answers_from_its_cache_is_known(query: str) -> None:
    assert may_be_past("GET", query)
    assert not may_be_past("PATCH", query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "limit=500",
        "limit=500&continue=abc",
        "watch=1&resourceVersion=71",
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "resourceVersion=71&resourceVersionMatch=Exact",
    ],
)
def test_what_every_api_server_answers_as_of_now_or_of_a_named_version_is_not_past(
    query: str,
) -> None:
    assert not may_be_past("GET", query)
