"""Single requests: what is sent, and what an answer means."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from asyncjob.client.connection import Call
from asyncjob.client.kubernetes.connection import KubeConnection
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.kube import ClusterAccess, KubeSession, watch
from asyncjob.kube.transport import KubeRequest
from support.loopback.kube_answers import Server, error, hang_up, ok


async def test_a_merge_patch_says_what_it_is_and_who_sends_it(
    server: Server, session: KubeSession
) -> None:
    server.answers = [ok({"kind": "X"})]
    assert await session.merge_patch("/apis/x", {"a": None}) == {"kind": "X"}
    (request,) = server.requests
    assert request.method == "PATCH"
    assert request.query["fieldManager"] == "tester"
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert await request.read() == b'{"a":null}'


@pytest.mark.parametrize(
    ("code", "reason", "message", "kind"),
    [
        (400, "BadRequest", "", InvalidError),
        (401, "Unauthorized", "", UnauthorizedError),
        (403, "Forbidden", "", ForbiddenError),
        (404, "NotFound", "", ObjectNotFoundError),
        (409, "Conflict", "", ConflictError),
        (409, "AlreadyExists", "", AlreadyExistsError),
        (410, "Expired", "", ExpiredError),
        (413, "RequestEntityTooLarge", "", TooLargeError),
        (422, "Invalid", "", InvalidError),
        (418, "", "", ApiError),
        (500, "InternalError", "", UnknownOutcomeError),
        (503, "ServiceUnavailable", "", UnknownOutcomeError),
        (504, "Timeout", "", UnknownOutcomeError),
        (500, "", "etcdserver: request is too large", TooLargeError),
        (500, "", "trying to send message larger than max (2 vs. 1)", TooLargeError),
        (500, "", "etcdserver: mvcc: database space exceeded", UnknownOutcomeError),
    ],
)
async def test_every_code_has_its_error(
    server: Server, session: KubeSession, code: int, reason: str, message: str, kind: type[ApiError]
) -> None:
    server.answers = [error(code, reason, message or "words")]
    with pytest.raises(ApiError) as raised:
        await session.get("/x")
    assert type(raised.value) is kind
    assert (raised.value.status, raised.value.reason) == (code, reason)
    assert (message or "words") in str(raised.value)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


async def test_what_is_too_deep_to_be_written_is_refused_and_not_sent(
    server: Server, session: KubeSession
) -> None:
    deep = {"spec": {"payload": nested(300)}}
    for write in (
        session.create("/x", deep),
        session.replace("/x", deep),
        session.merge_patch("/x", deep),
        session.json_patch("/x", [{"op": "add", "path": "/spec", "value": deep["spec"]}]),
        session.delete("/x", deep),
        KubeConnection(session).send(Call("POST", "/x", body=deep)),
    ):
        with pytest.raises(InvalidError, match=r"^spec\.payload is nested too deeply"):
            await write
    assert not server.requests


async def test_a_connection_that_breaks_off_leaves_the_outcome_unknown(
    server: Server, session: KubeSession
) -> None:
    server.answers = [hang_up]
    with pytest.raises(UnknownOutcomeError, match="no answer to PATCH /x"):
        await session.json_patch("/x", [])
    assert len(server.requests) == 1


async def test_a_server_that_is_away_leaves_the_outcome_unknown(session: KubeSession) -> None:
    session.access.configuration.host = "http://127.0.0.1:1"
    with pytest.raises(UnknownOutcomeError):
        await session.merge_patch("/x", {})


async def test_an_answer_that_takes_too_long_leaves_the_outcome_unknown(
    server: Server, session: KubeSession
) -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.answers = [never]
    with pytest.raises(UnknownOutcomeError, match="Timeout"):
        await session.send(KubeRequest("PATCH", "/x", {}, timeout_seconds=0.05))


async def test_a_request_to_slow_down_is_heeded(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = pauses(monkeypatch)
    server.answers = [error(429, Retry_After="3"), error(429), ok()]
    await session.merge_patch("/x", {})
    assert [3.0 <= waits[0] <= 4.5, 1.0 <= waits[1] <= 1.5] == [True, True]


async def test_slowing_down_has_an_end(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = pauses(monkeypatch)
    server.answers = [error(429, Retry_After="9999")]
    with pytest.raises(ThrottledError):
        await session.merge_patch("/x", {})
    assert max(waits) <= 15.0
    assert len(server.requests) == 5


def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("asyncjob.kube.transport.asyncio.sleep", note)
    return waits


def rotate(token: Path) -> None:
    token.write_text("second")


def remove(file: Path) -> None:
    file.unlink()


async def test_a_refused_token_is_read_again_once(
    server: Server, session: KubeSession, token: Path
) -> None:
    async def refuse_and_rotate(request: web.Request) -> Any:
        rotate(token)
        return await error(401)(request)

    server.answers = [refuse_and_rotate, ok()]
    await session.get("/x")
    assert server.tokens == ["Bearer first", "Bearer second"]


async def test_a_token_refused_twice_is_unauthorized(server: Server, session: KubeSession) -> None:
    server.answers = [error(401)]
    with pytest.raises(UnauthorizedError):
        await session.get("/x")
    assert len(server.requests) == 2


async def test_a_refused_token_that_cannot_be_read_again_proves_nothing(
    server: Server, session: KubeSession, kubeconfig: Path
) -> None:
    server.answers = [error(401)]
    remove(kubeconfig)
    with pytest.raises(UnknownOutcomeError, match="credentials"):
        await session.get("/x")


async def test_a_token_is_read_again_when_it_has_grown_old(
    server: Server, session: KubeSession, access: ClusterAccess, token: Path
) -> None:
    server.answers = [ok()]
    await session.get("/x")
    rotate(token)
    access._loaded_at -= 1000.0
    await session.get("/x")
    assert server.tokens == ["Bearer first", "Bearer second"]


async def test_an_old_token_is_used_while_no_newer_can_be_read(
    server: Server, session: KubeSession, access: ClusterAccess, kubeconfig: Path
) -> None:
    server.answers = [ok()]
    await session.get("/x")
    remove(kubeconfig)
    access._loaded_at -= 1000.0
    await session.get("/x")
    await session.get("/x")
    assert server.tokens == ["Bearer first"] * 3


async def test_a_collection_is_read_in_pages(server: Server, session: KubeSession) -> None:
    server.answers = [
        ok({"metadata": {"continue": "more"}, "items": [{"n": 1}, {"n": 2}]}),
        ok({"metadata": {}, "items": [{"n": 3}]}),
    ]
    found = [item["n"] async for item in session.list("/x")]
    assert found == [1, 2, 3]
    assert server.requests[1].query["continue"] == "more"


async def test_every_request_is_observed(server: Server, access: ClusterAccess) -> None:
    seen: list[tuple[str, int]] = []
    server.answers = [ok(), error(409), hang_up]
    observer = lambda verb, code, _: seen.append((verb, code))  # noqa: E731
    async with KubeSession(access, field_manager="t", observer=observer) as session:
        await session.get("/x")
        for _ in range(2):
            with pytest.raises(ApiError):
                await session.create("/x", {})
    assert seen == [("GET", 200), ("POST", 409), ("POST", 0)]


async def test_watches_leave_requests_their_connections(
    server: Server, access: ClusterAccess
) -> None:
    opened, ended = asyncio.Semaphore(0), asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"kind": "Other"})
        response = web.StreamResponse()
        await response.prepare(request)
        opened.release()
        await ended.wait()
        return response

    async def watching(session: KubeSession) -> None:
        async for _ in watch(session, "/x"):
            pass

    server.answers = [endless]
    async with (
        KubeSession(access, field_manager="tester", connections=1) as session,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(3):
            group.create_task(watching(session))
        async with asyncio.timeout(5):
            for _ in range(3):
                await opened.acquire()
            assert await session.get("/y") == {"kind": "Other"}
        ended.set()


def dated(date: str) -> Any:
    """Answer 200 with this Date."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text="{}", headers={"Date": date})

    return answer


async def test_the_api_servers_clock_is_known_from_its_newest_answer(
    server: Server, session: KubeSession
) -> None:
    assert session.server_time() is None
    for date, seconds in (
        ("Fri, 20 Nov 2026 03:00:00 GMT", 1795143600.0),
        ("Fri, 20 Nov 2026 02:00:00 GMT", 1795140000.0),
    ):
        server.answers = [dated(date)]
        await session.get("/apis/x")
        known = session.server_time()
        assert known is not None
        assert 0 <= known - seconds < 30
    server.answers = [dated("yesterday")]
    await session.get("/apis/x")
    assert session.server_time() is None
