"""Any request to the gateway is answered, and what is wrong with it is the caller's fault."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from asyncjob.kube import KubeSession
from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE
from asyncjob_gateway.app import make_asgi_app
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.server import make_context
from asyncjob_gateway.settings import GatewaySettings
from asyncjob_gateway.telemetry import GatewayMetrics
from asyncjob_simulation.apiserver import MemoryAccess, MemoryConnections
from asyncjob_simulation.apiserver.identities import ADMIN
from support.in_memory.memory import memory_server
from support.objects.fuzz import NASTY_TEXTS, fuzzed, mutated, mutated_object

JSON_TYPE = (b"content-type", b"application/json")
SUBMISSION = {
    "type": "mail",
    "queue": "default",
    "payload": {"a": [1, None, "é"]},
    "priority": 3,
    "idempotencyKey": "k",
    "labels": {"team": "mail"},
    "notBefore": "2030-01-01T00:00:00Z",
    "retryPolicy": {"maxRetries": 2, "backoff": "Fixed"},
    "dependsOn": [{"name": "a"}],
}
BODIES: dict[str, Any] = {
    "/api/v1/jobs": SUBMISSION,
    "/api/v1/jobs/batch": {"jobs": [SUBMISSION, {"type": "t"}]},
    "/api/v1/jobs/a/redrive": {"reason": "again"},
    "/api/v1/dead-letters/redrive": {
        "selection": {"queue": "default", "olderThanSeconds": 60},
        "dryRun": True,
    },
}
PATHS = [
    b"/api/v1/jobs",
    b"/api/v1/jobs?limit=3&phase=Queued&label=a%3Db&cursor=WyIiLCIiXQ",
    b"/api/v1/jobs/a",
    b"/api/v1/jobs/a/result",
    b"/api/v1/queues",
    b"/api/v1/queues/default",
    b"/api/v1/workers",
    b"/api/v1/cron-jobs/nightly",
    b"/api/v1/namespaces/ns/jobs",
    b"/openapi.json",
    b"/jobs",
    b"/",
]
HEADERS = [
    b"application/json; charset=utf-8",
    b"k-1",
    b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    b"7",
    b"Bearer abc",
    b"gzip, deflate",
    b"text/html,*/*;q=0.8",
    b"a=b; asyncjob_session=c",
]
HEADER_NAMES = [
    b"content-type",
    b"content-length",
    b"idempotency-key",
    b"traceparent",
    b"tracestate",
    b"last-event-id",
    b"authorization",
    b"accept",
    b"accept-language",
    b"cookie",
    b"origin",
    b"x-request-id",
    b"x-forwarded-for",
    b"if-none-match",
    b"range",
    b"x-tenant",
]
AS_H11_LETS_THROUGH = bytes([*range(0x20, 0x7F), *range(0x80, 0x100), 0x09])
"""Other bytes never come out of a header: the server's parser refuses them."""


@dataclass
class Answer:
    """What the gateway said."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""
    starts: int = 0


class Door:
    """A gateway in front of an API server in memory; requests come as bytes."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._server = memory_server()
        self._server.create("/api/v1/namespaces", {"metadata": {"name": "ns"}})
        self._keeping: asyncio.Task[None] | None = None
        self._app: ASGIApp = self.loop.run_until_complete(self._open())

    async def _open(self) -> ASGIApp:
        access = MemoryAccess(
            MemoryConnections(self._server), self._server.tokens.issue(ADMIN), "ns"
        )
        self._session = KubeSession(access, field_manager="gateway")
        await self._session.__aenter__()
        view, metrics = NamespaceCache("ns"), GatewayMetrics()
        self._keeping = self.loop.create_task(view.run(self._session, metrics.watch_observer))
        while not view.synced:  # noqa: ASYNC110 - it has no event, and it is soon
            await asyncio.sleep(0)
        settings = GatewaySettings(open=True, host="127.0.0.1", forward_headers=("x-tenant",))
        return make_asgi_app(make_context(settings, self._session, {"ns": view}, metrics))

    def close(self) -> None:
        async def end() -> None:
            assert self._keeping
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping
            await self._session.__aexit__(None, None, None)

        self.loop.run_until_complete(end())
        self.loop.close()

    def ask(
        self, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes = b""
    ) -> Answer:
        raw_path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": unquote(raw_path.decode("ascii")),
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": [(b"host", b"localhost"), *headers],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        answer, parts = Answer(), [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.starts += 1
                answer.status, answer.headers = message["status"], dict(message["headers"])
            else:
                answer.body += message.get("body", b"")

        async def call() -> None:
            async with asyncio.timeout(30):
                await self._app(scope, receive, send)

        self.loop.run_until_complete(call())
        return answer


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.close()


def is_answered(answer: Answer) -> None:
    assert answer.starts == 1
    assert 200 <= answer.status < 500, answer
    if answer.status >= 400 and answer.headers.get(b"content-type", b"").startswith(
        PROBLEM_CONTENT_TYPE.encode()
    ):
        problem = json.loads(answer.body)
        assert problem["status"] == answer.status
        assert problem["type"].startswith("/problems/")


def test_the_requests_of_these_tests_are_good_ones(door: Door) -> None:
    answer = door.ask(
        "POST", b"/api/v1/jobs", [JSON_TYPE], json.dumps({**SUBMISSION, "dependsOn": []}).encode()
    )
    assert (answer.status, b"location" in answer.headers) == (202, True)
    for path in PATHS[:5]:
        assert door.ask("GET", path, []).status in {200, 404}


@fuzzed
@given(st.data())
def test_a_body_of_any_bytes_is_answered(door: Door, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(BODIES)))
    body = data.draw(mutated([json.dumps(BODIES[path], ensure_ascii=False).encode()]))
    is_answered(door.ask("POST", path.encode(), [JSON_TYPE], body))


@fuzzed
@given(st.data())
def test_a_body_of_any_values_is_answered(door: Door, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(BODIES)))
    body = data.draw(mutated_object([BODIES[path]], encodable=False))
    answer = door.ask("POST", path.encode(), [JSON_TYPE], json.dumps(body).encode())
    is_answered(answer)
    if answer.status >= 400:
        assert answer.headers[b"content-type"].startswith(PROBLEM_CONTENT_TYPE.encode())


HEADER = st.tuples(
    st.sampled_from(HEADER_NAMES),
    (
        mutated(HEADERS)
        | st.sampled_from([text.encode("utf-8", "replace") for text in NASTY_TEXTS])
    ).map(
        lambda value: value.translate(None, bytes(set(range(256)) - set(AS_H11_LETS_THROUGH)))[
            :8000
        ]
    ),
)


@fuzzed
@given(
    st.sampled_from(["GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]),
    st.sampled_from(PATHS),
    st.lists(HEADER, max_size=4),
    mutated([json.dumps(SUBMISSION).encode(), b""]),
)
@example("POST", PATHS[0], [JSON_TYPE, (b"content-length", b"\xb2")], b"{}")
@example("POST", PATHS[0], [(b"idempotency-key", b"\xff"), JSON_TYPE], b'{"type": "t"}')
@example("GET", PATHS[2] + b"/events", [(b"last-event-id", b"9" * 64)], b"")
def test_headers_of_any_bytes_are_answered(
    door: Door, method: str, path: bytes, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    is_answered(door.ask(method, path, headers, body))


@fuzzed
@given(mutated(PATHS))
@example(b"/api/v1/jobs?older_than_seconds=" + b"9" * 5000)
def test_a_path_of_any_bytes_is_answered(door: Door, target: bytes) -> None:
    """The server's parser lets visible ASCII through, so that other bytes come as escapes."""
    visible = b"".join(
        bytes([byte]) if 0x21 <= byte <= 0x7E else b"%%%02X" % byte for byte in target
    )
    is_answered(door.ask("GET", visible.replace(b"/events", b""), []))
