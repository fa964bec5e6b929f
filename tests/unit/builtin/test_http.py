"""The handler `http` against a real server on the loopback address."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from asyncjob import Fail, Retry, WorkerApp
from asyncjob.app.errors import categorize
from asyncjob.free_json import normalize
from asyncjob_dev.ports import free_port
from asyncjob_worker.builtin import build_app
from asyncjob_worker.builtin.errors import (
    RateLimitedError,
    ServiceFailedError,
    TimedOutError,
    UnreachableError,
)
from support.loopback.web_server import WebServer, web_server
from support.parts.handler_runs import context, run_handler

PATIENCE = 10.0


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with web_server() as running:
        yield running


@pytest.fixture
async def other() -> AsyncIterator[WebServer]:
    """Another origin."""
    async with web_server() as running:
        yield running


def app_for(*servers: WebServer) -> WorkerApp:
    return build_app({"ASYNCJOB_HTTP_ALLOW": ",".join(server.host for server in servers)})


async def call(server: WebServer, path: str = "/", **fields: Any) -> Any:
    return await run_handler(app_for(server), "http", {"url": server.url(path), **fields})


async def test_a_json_answer_comes_back_as_json_with_chosen_headers(server: WebServer) -> None:
    server.answer(
        "/", 201, '{"n": [1, 2.5, null]}', Content_Type="application/json", Set_Cookie="a=b"
    )
    answer = await call(server)
    assert (answer.status, answer.body_format, answer.body) == (201, "json", {"n": [1, 2.5, None]})
    assert answer.size == 21
    assert answer.headers["content-type"].startswith("application/json")
    assert "set-cookie" not in answer.headers


async def test_method_headers_and_a_json_body_are_sent(server: WebServer) -> None:
    server.answer("/x")
    await call(server, "/x?a=1", method="PUT", headers={"X-Own": "yes"}, body={"k": "ü"})
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PUT", "/x?a=1")
    assert asked.body == '{"k":"ü"}'.encode()
    assert asked.headers["X-Own"] == "yes"
    assert asked.headers["Content-Type"] == "application/json"


async def test_a_text_body_is_sent_as_it_is(server: WebServer) -> None:
    server.answer("/")
    await call(server, method="POST", headers={"content-type": "text/csv"}, body="a;b\n")
    assert server.asked[0].body == b"a;b\n"
    assert server.asked[0].headers.getall("Content-Type") == ["text/csv"]


async def test_the_key_is_that_of_the_job_in_every_attempt_and_the_trace_goes_on(
    server: WebServer,
) -> None:
    server.answer("/")
    for attempt in (1, 2):
        job = context(uid="uid-7", attempt=attempt, traceparent="00-aa-bb-01")
        await run_handler(app_for(server), "http", {"url": server.url()}, job)
    assert [asked.headers["Idempotency-Key"] for asked in server.asked] == ["uid-7", "uid-7"]
    assert server.asked[0].headers["traceparent"] == "00-aa-bb-01"


async def test_a_key_of_the_callers_own_is_kept(server: WebServer) -> None:
    server.answer("/")
    await call(server, headers={"idempotency-key": "mine"})
    assert server.asked[0].headers.getall("Idempotency-Key") == ["mine"]


async def test_a_host_that_is_not_listed_is_never_asked(server: WebServer) -> None:
    with pytest.raises(Fail, match="ASYNCJOB_HTTP_ALLOW") as refusal:
        await run_handler(build_app({}), "http", {"url": server.url()})
    assert refusal.value.category == "Permission"
    assert server.asked == []


async def test_no_proxy_of_the_environment_is_used(
    server: WebServer, other: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{other.host}")
    server.answer("/")
    await call(server)
    assert (len(server.asked), other.asked) == (1, [])


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("url", {"url": "http://user:secret@a.test/"}),
        ("url", {"url": "http://0x7f.1/"}),
        ("method", {"url": "http://a.test/", "method": "TRACE"}),
        ("headers.Host", {"url": "http://a.test/", "headers": {"Host": "b.test"}}),
        ("headers.X", {"url": "http://a.test/", "headers": {"X": "a\r\nY: b"}}),
        ("headers.A B", {"url": "http://a.test/", "headers": {"A B": "x"}}),
        ("expectedStatus.0", {"url": "http://a.test/", "expectedStatus": ["2x"]}),
        ("timeoutSeconds", {"url": "http://a.test/", "timeoutSeconds": 0}),
        ("maxBodyBytes", {"url": "http://a.test/", "maxBodyBytes": 10**7}),
        ("verify", {"url": "http://a.test/", "verify": False}),
    ],
)
async def test_a_bad_payload_is_refused_by_field(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refusal:
        await run_handler(build_app({}), "http", fields)
    places = [".".join(map(str, error["loc"])) for error in refusal.value.errors()]
    assert any(place.startswith(field) for place in places)


@pytest.mark.parametrize(
    ("status", "category"), [(400, "Validation"), (401, "Permission"), (404, "NotFound")]
)
async def test_a_refusal_is_final_and_says_what_was_answered(
    server: WebServer, status: int, category: str
) -> None:
    server.answer("/p", status, "the field\nis wrong")
    with pytest.raises(Fail, match="the field is wrong") as end:
        await call(server, "/p?token=secret", method="POST")
    assert end.value.category == category
    assert f"/p was answered {status}" in str(end.value)
    assert "secret" not in str(end.value)


MALFORMED = {
    "header too long": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000 + b"\r\n\r\n",
    "status line": b"nonsense\r\n\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    "cut off": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "nothing": b"",
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
async def test_no_answer_however_malformed_brings_the_query_into_an_error(answer: bytes) -> None:
    async def malformed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(malformed, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    app = build_app({"ASYNCJOB_HTTP_ALLOW": f"127.0.0.1:{port}"})
    url = f"http://127.0.0.1:{port}/p?api_key=SECRET"
    async with server:
        with pytest.raises(UnreachableError) as end:
            await run_handler(app, "http", {"url": url})
    assert "/p" in str(end.value)
    assert "SECRET" not in str(end.value)


async def test_a_redirect_that_is_not_followed_is_told_without_its_query(
    server: WebServer,
) -> None:
    server.answer("/", 302, Location="/other?signature=SECRET#SECRET")
    with pytest.raises(Fail, match=r"a redirect to /other \(") as end:
        await call(server, followRedirects=False)
    assert "SECRET" not in str(end.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, ServiceFailedError), (503, ServiceFailedError), (429, RateLimitedError)],
)
async def test_a_passing_failure_is_left_to_the_retry_policy(
    server: WebServer, status: int, kind: type[Exception]
) -> None:
    server.answer("/", status)
    with pytest.raises(kind):
        await call(server)


async def test_retry_after_decides_the_wait_and_the_category_stays(server: WebServer) -> None:
    server.answer("/", 429, Retry_After="17")
    with pytest.raises(Retry) as end:
        await call(server)
    assert end.value.after == 17
    assert end.value.__cause__ is not None
    assert categorize(end.value.__cause__, app_for(server).categories) == "RateLimited"


async def test_the_author_decides_what_is_expected_and_what_is_retried(server: WebServer) -> None:
    server.answer("/", 404)
    assert (await call(server, expectedStatus=["200-204", 404])).status == 404
    with pytest.raises(ServiceFailedError):
        await call(server, retryStatus=[404])
    server.answer("/", 200)
    with pytest.raises(Fail, match="200"):
        await call(server, expectedStatus=[201])


async def test_a_long_body_is_cut_and_its_size_told(server: WebServer) -> None:
    server.answer("/", text="x" * 100_000)
    answer = await call(server, maxBodyBytes=1000)
    assert (answer.body, answer.truncated, answer.size) == ("x" * 1000, True, 100_000)


async def test_a_body_that_grows_as_json_still_fits(server: WebServer) -> None:
    server.answer("/", text="\x01" * 5000)
    answer = await call(server, maxBodyBytes=6000)
    assert (len(answer.body), answer.truncated, answer.size) == (1000, True, 5000)


async def test_a_compressed_flood_is_not_unpacked_beyond_the_limit(server: WebServer) -> None:
    async def flood(_: web.Request) -> web.Response:
        body = gzip.compress(b"\0" * 50_000_000)
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    server.answers["/"] = flood
    answer = await call(server, maxBodyBytes=600)
    assert (answer.truncated, answer.size, len(answer.body)) == (True, None, 100)


async def test_a_body_without_end_is_not_read_to_its_end(server: WebServer) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"x" * 10_000)
        return response

    server.answers["/"] = endless
    answer = await call(server, maxBodyBytes=1000, timeoutSeconds=PATIENCE)
    assert (answer.body, answer.truncated, answer.size) == ("x" * 1000, True, None)


async def test_what_is_no_text_comes_as_base64_and_nothing_as_none(server: WebServer) -> None:
    async def binary(_: web.Request) -> web.Response:
        return web.Response(body=b"\xff\xfe\x00")

    server.answers["/"] = binary
    answer = await call(server)
    assert (answer.body_format, answer.body) == ("base64", "//4A")
    server.answer("/", 204)
    assert (await call(server)).body_format == "none"


@pytest.mark.parametrize(
    ("claimed", "sent", "text"),
    [
        ("text/plain; charset=latin-1", b"\xfc", "ü"),
        ('text/plain; charset="UTF-16"; x=y', "ü".encode("utf-16"), "ü"),
        ("text/plain; charset=utf-7", b"+2AA-", "?"),
        ("text/plain; charset=zlib", b"plain", "plain"),
        ("text/plain; charset=punycode", b"abc-", "abc-"),
        ("text/plain; charset=unicode_escape", b"\\n", "\\n"),
        ("text/plain; charset=nonsense", "ü".encode(), "ü"),
        ("text/plain; charset=", b"x", "x"),
    ],
)
async def test_a_body_is_read_in_the_charset_it_claims_if_that_is_one(
    server: WebServer, claimed: str, sent: bytes, text: str
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=sent, headers={"Content-Type": claimed})

    server.answers["/"] = answer
    assert (await call(server)).body == text


async def test_a_character_that_was_cut_in_two_is_left_out(server: WebServer) -> None:
    server.answer("/", text="ü" * 1000)
    answer = await call(server, maxBodyBytes=701)
    assert (answer.body, answer.body_format, answer.truncated) == ("ü" * 350, "text", True)


async def test_a_header_that_is_no_utf_8_does_no_harm() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nETag: a\xffb\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as raw:
        host = f"127.0.0.1:{raw.sockets[0].getsockname()[1]}"
        app = build_app({"ASYNCJOB_HTTP_ALLOW": host})
        answered = await run_handler(app, "http", {"url": f"http://{host}/"})
    assert normalize(answered, what="the result") is not None
    assert answered.headers["etag"] == "a?b"


async def test_json_that_cannot_be_stored_as_such_comes_as_text(server: WebServer) -> None:
    for text in ('{"n": 36893488147419103232}', "[NaN]", "{broken", "[" * 500 + "]" * 500):
        server.answer("/", text=text, Content_Type="application/json")
        answer = await call(server)
        assert (answer.body_format, answer.body) == ("text", text)


async def test_a_redirect_is_not_followed_unasked(server: WebServer) -> None:
    server.answer("/", 302, Location="/there")
    with pytest.raises(Fail, match="followRedirects is false"):
        await call(server)
    assert len(server.asked) == 1
    for follows in (False, True):
        answer = await call(server, expectedStatus=[302], followRedirects=follows)
        assert answer.headers["location"] == "/there"


async def test_redirects_are_followed_when_asked(server: WebServer) -> None:
    server.answer("/", 302, Location="/there")
    server.answer("/there", text="here")
    answer = await call(server, method="POST", body={"a": 1}, followRedirects=True)
    assert (answer.body, answer.url) == ("here", server.url("/there"))
    assert [(asked.method, asked.body) for asked in server.asked] == [
        ("POST", b'{"a":1}'),
        ("GET", b""),
    ]


async def test_a_redirect_that_keeps_the_method_keeps_the_body(server: WebServer) -> None:
    server.answer("/", 307, Location="/there")
    server.answer("/there")
    await call(server, method="POST", body="text", followRedirects=True)
    assert (server.asked[1].method, server.asked[1].body) == ("POST", b"text")


async def test_a_redirect_cannot_leave_the_allow_list(server: WebServer, other: WebServer) -> None:
    server.answer("/", 302, Location=other.url("/secret"))
    with pytest.raises(Fail, match=f"may not call {other.host}") as end:
        await call(server, followRedirects=True)
    assert end.value.category == "Permission"
    assert other.asked == []


@pytest.mark.parametrize("location", ["http://u:p@a.test/", "file:///etc/passwd", "http://0x7f.1/"])
async def test_a_redirect_to_what_is_no_plain_address_is_final(
    server: WebServer, location: str
) -> None:
    server.answer("/", 302, Location=location)
    with pytest.raises(Fail, match="redirect is not followed") as refusal:
        await call(server, followRedirects=True)
    assert refusal.value.category == "Validation"


async def test_redirects_end(server: WebServer) -> None:
    server.answer("/", 302, Location="/")
    with pytest.raises(Fail, match="more than 5 redirects") as refusal:
        await call(server, followRedirects=True)
    assert refusal.value.category == "Validation"
    assert len(server.asked) == 6


async def test_the_jobs_secrets_do_not_go_to_another_origin(
    server: WebServer, other: WebServer
) -> None:
    server.answer("/", 307, Location=other.url("/there"))
    other.answer("/there")
    payload = {
        "url": server.url(),
        "method": "POST",
        "headers": {"Authorization": "Bearer x", "X-Api-Key": "y", "Accept": "text/html"},
        "body": "b",
        "followRedirects": True,
    }
    await run_handler(app_for(server, other), "http", payload)
    sent = other.asked[0].headers
    assert "Authorization" not in sent
    assert "X-Api-Key" not in sent
    assert (sent["Accept"], sent["Idempotency-Key"]) == ("text/html", "0a1b-uid")


async def test_a_server_that_does_not_answer_is_a_timeout(server: WebServer) -> None:
    released = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    server.answers["/"] = hang
    try:
        with pytest.raises(TimedOutError, match=r"took longer than 0\.05 s"):
            await call(server, timeoutSeconds=0.05)
    finally:
        released.set()
    assert categorize(TimedOutError(), app_for().categories) == "Timeout"


async def test_a_refused_connection_is_a_network_error() -> None:
    host = f"127.0.0.1:{free_port()}"
    app = build_app({"ASYNCJOB_HTTP_ALLOW": host})
    with pytest.raises(UnreachableError, match=host):
        await run_handler(app, "http", {"url": f"http://{host}/"})
    assert categorize(UnreachableError(), app.categories) == "Network"


async def test_an_answer_that_is_no_http_or_no_tls_is_a_network_error(server: WebServer) -> None:
    with pytest.raises(UnreachableError) as error:
        await run_handler(app_for(server), "http", {"url": f"https://{server.host}/"})
    assert isinstance(error.value.__cause__, OSError | ssl.SSLError)
